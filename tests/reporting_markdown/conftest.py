"""Markdown and annotations are tested on summaries of two runs: their builders are in the folders beside."""

import sys
from pathlib import Path

for folder in ("analysis", "comparing"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))
