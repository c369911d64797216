"""Other people's files: a package for each system whose results are read or written."""
