"""What pytest sees of experiments: collectors, items, the order, the session. Imported only where one is there."""
