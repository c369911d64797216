"""For all tests."""

import numpy  # noqa: F401  (pytester forgets what an in-process run imported, and numpy cannot be imported twice)
