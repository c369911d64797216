"""A package as it may be yours."""
