"""For all tests."""

import os

import numpy  # noqa: F401  (pytester forgets what an in-process run imported, and numpy cannot be imported twice)

collect_ignore = ["known_answers"]  # an experiment that tests run in a folder of their own, not a test

# Where these are set pytest prints messages whole, and so a second time, in its short summary.
# A run under test does not write into the job summary of the run that tests it.
for name in ("CI", "BUILD_NUMBER", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
    os.environ.pop(name, None)
