"""The page is tested on results that the analysis' builder makes, and in Chromium where there is one."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "analysis"))

pytest.importorskip("jinja2", reason="needs the extra `report`")
pytest.importorskip("matplotlib", reason="needs the extra `report`")
