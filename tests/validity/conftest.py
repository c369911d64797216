"""The simulations are scripts of the documentation; here they run at a size that every change can bear."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "validity"))
