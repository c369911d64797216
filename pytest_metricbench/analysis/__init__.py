"""What the attempts and the coverage of an experiment mean: pure functions on arrays and records."""
