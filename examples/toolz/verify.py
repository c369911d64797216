"""The verifier of this example: turns what ``run_test.py`` found into a score, and refuses what is no finding.

It is a step of its own because of what its failure means. When the agent fails, the library under test broke and the
attempt counts as not passed. When the verifier fails, nobody knows: the attempt is unmeasured and counts nowhere.
"""

import json
import sys
from pathlib import Path

result = json.loads(Path("result.json").read_text(encoding="utf-8"))
if "problem" in result:
    sys.exit(result["problem"])
Path("response.json").write_text(json.dumps({"scores": {"passed": result["passed"]}}), encoding="utf-8")
