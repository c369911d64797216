"""Experiments whose attempts exist already, run in a folder of their own."""

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

SAMPLES: Final = Path(__file__).parents[1] / "interop_harbor" / "samples" / "jobs"
OTHER_PLUGINS: Final = (
    *("randomly", "rerunfailures", "repeat", "timeout", "html", "html_fixtures", "metadata", "pytest_cov", "sugar"),
    "hypothesispytest",
)


class RecordedLab:
    """A folder with recordings and an experiment that reads them."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path

    def samples(self, *names: str, folder: str = "jobs") -> None:
        """Copy job folders of Harbor into ``jobs/``."""
        for name in names:
            shutil.copytree(SAMPLES / name, self.path / folder / name)

    def make(self, case: dict[str, Any] | None = None, *, runner: dict[str, Any] | None = None, **keys: Any) -> Path:
        """Write an experiment that reads ``jobs/*``. ``runner`` and ``case``: keys that are different or more."""
        experiment = {
            "metricbench": 1,
            "name": "toys",
            "runner": {"kind": "recorded", "form": "harbor", "read": ["jobs/*"], **(runner or {})},
            "cases": [{"id": "toy", **(case or {})}],
            **keys,
        }
        path = self.path / "experiment.yml"
        path.write_text(yaml.safe_dump(experiment, sort_keys=False), encoding="utf-8")
        return path

    def run(self, *args: str) -> pytest.RunResult:
        off = [part for plugin in OTHER_PLUGINS for part in ("-p", f"no:{plugin}")]
        return self.pytester.runpytest_inprocess(*off, "experiment.yml", *args, no_reraise_ctrlc=True)

    def refused(self, *args: str) -> str:
        """What is said of an experiment that cannot be collected."""
        found = self.run(*args)
        assert found.ret == pytest.ExitCode.USAGE_ERROR
        errors = [line for line in [*found.outlines, *found.errlines] if line.startswith("ERROR: ")]
        return "\n".join(errors)

    @property
    def lock(self) -> Any:
        """The recordings in the lock."""
        content = yaml.safe_load((self.path / "experiment.lock.yml").read_text())
        return next(entry for entry in content["expansions"] if entry["kind"] == "recordings")

    @property
    def store(self) -> Path:
        return self.path / ".metricbench" / "toys"

    def summary(self) -> Any:
        return json.loads((self.store / "summary.json").read_text())

    def case(self) -> Any:
        return self.summary()["cases"]["toy"]

    def journal(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.store / "attempts.jsonl").read_text().splitlines()]


def without(summary: Any, *keys: str) -> Any:
    """A summary without what may differ between two runs of one experiment."""
    if isinstance(summary, dict):
        return {key: without(value, *keys) for key, value in summary.items() if key not in keys}
    return [without(entry, *keys) for entry in summary] if isinstance(summary, list) else summary
