"""Tables of results, CSV and JSONL, read as attempts."""
