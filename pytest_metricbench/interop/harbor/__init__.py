"""Jobs of Harbor, read as attempts and counted as Harbor counts them."""
