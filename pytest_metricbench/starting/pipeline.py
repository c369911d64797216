"""The CI workflow that runs an experiment for every change: where it belongs, and what it installs."""

import os
import shlex
from pathlib import Path

from pytest_metricbench.starting.filling import filled, scalar, templates
from pytest_metricbench.starting.placing import existing, repository_of
from pytest_metricbench.starting.proposing import EXPERIMENT, Proposal


def workflow(proposal: Proposal, folder: Path) -> tuple[Path, str] | None:
    """Where the workflow goes and its text: at the top of the repository, or of the folder where there is none.

    A workflow of that name is left alone: this one is then called after the experiment. None where that exists too.
    """
    top = repository_of(folder) or folder
    place = top / ".github" / "workflows"
    titles = dict.fromkeys(("metricbench", f"metricbench-{proposal.name}"))
    title = next((title for title in titles if not existing([place / f"{title}.yml"])), None)
    if title is None:
        return None
    inside = folder.relative_to(top).as_posix()
    before = "" if inside == "." else f"{inside}/"
    values = {
        "title": title,
        "experiment": f"{before}{EXPERIMENT}",
        "folder": scalar(inside),
        "store": f"{before}.metricbench",
        "reports": before,
        "install": _install(proposal, folder),
    }
    return place / f"{title}.yml", filled(templates("common")["workflow.yml"], values)


def _install(proposal: Proposal, folder: Path) -> str:
    """What the run needs, as a command in the folder: the package, and the project that the experiment is about."""
    wanted = [f"pytest-metricbench[{proposal.extra}]" if proposal.extra else "pytest-metricbench"]
    if proposal.finding is not None:
        if os.path.isfile(folder / "requirements.txt"):
            wanted += ["-r", "requirements.txt"]
        if any(os.path.isfile(folder / name) for name in ("pyproject.toml", "setup.py")):
            wanted += ["-e", "."]
    return f"pip install {shlex.join(wanted)}"
