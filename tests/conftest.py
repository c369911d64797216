"""For all tests."""

import numpy  # noqa: F401  (pytester forgets what an in-process run imported, and numpy cannot be imported twice)

collect_ignore = ["known_answers"]  # an experiment that tests run in a folder of their own, not a test
