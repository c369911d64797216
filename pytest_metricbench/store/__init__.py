"""What is kept of an experiment: journals, receipts, and what attempts and coverage requests left."""
