"""The page is tested on results that the analysis' builder makes, and in Chromium where there is one."""

import pytest

pytest.importorskip("jinja2", reason="needs the extra `report`")
pytest.importorskip("matplotlib", reason="needs the extra `report`")
