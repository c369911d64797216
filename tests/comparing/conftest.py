"""Two runs are compared as summaries that the analysis made: its builder is in the folder beside."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "analysis"))
