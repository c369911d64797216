"""The cases of the reference file that the figures of this package touch."""

import json
from pathlib import Path

CASES = json.loads(Path(__file__).with_name("statistics_cases.json").read_text())
