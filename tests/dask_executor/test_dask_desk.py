"""What a worker holds of an experiment against what the run has: where they differ nothing is made, and it is said."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_metricbench import load_experiment
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.digests import digest_file
from pytest_metricbench.executors.dask_child import Desk, UnfitError
from pytest_metricbench.executors.dask_messages import Home, Site, own_version
from tests.dask_executor.dask_lab import experiment


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An experiment as the run has it, whose folder the worker sees."""
    path = experiment(tmp_path / "shop")
    return Site(
        id="1",
        version=own_version(),
        experiment=str(path),
        bundle=None,
        documents={path.name: digest_file(path)},
        digests=Fingerprints(load_experiment(path)).summary(),
        runners=(),
        systems=(),
        store=str(tmp_path / "store"),
        token=".dask-1",
        retry_died=False,
        limit=1 << 20,
    )


def refusal(site: Site, scratch: Path) -> str:
    with pytest.raises(UnfitError) as caught:
        Desk(site, None, scratch, shares_store=False)
    return str(caught.value)


def test_the_same_experiment_is_taken_up(site: Site, tmp_path: Path) -> None:
    assert Desk(site, None, tmp_path, shares_store=False).experiment.name == "shop"


STALE = "; a stale copy would answer for another system"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda folder: (folder / "experiment.yml").unlink(),
            "there is no {folder}/experiment.yml there; mount the folder at the same place, or say files: bundle",
        ),
        (
            lambda folder: (folder / "experiment.yml").write_text("metricbench: 1\n"),
            "{folder}/experiment.yml has another content there; bring it up to date, or say files: bundle",
        ),
        (lambda folder: (folder / "outcomes.json").write_text("{}"), f"outcomes.json has another content there{STALE}"),
    ],
)
def test_a_folder_that_is_not_the_same(site: Site, tmp_path: Path, change: Callable[[Path], object], said: str) -> None:
    folder = Path(site.experiment).parent
    change(folder)
    assert refusal(site, tmp_path) == said.format(folder=folder)


def test_a_file_of_the_definition_that_is_gone(site: Site, tmp_path: Path) -> None:
    lacking = replace(site, documents={**site.documents, "case.yml": "0" * 64})
    folder = Path(site.experiment).parent
    assert refusal(lacking, tmp_path) == f"{folder}/case.yml cannot be read there: No such file or directory"


def test_files_that_only_one_of_the_two_has(site: Site, tmp_path: Path) -> None:
    files = site.digests["files"]
    name = next(name for name in files if name.endswith("outcomes.json"))
    fewer = {key: digest for key, digest in files.items() if key != name}
    assert refusal(replace(site, digests={**site.digests, "files": fewer}), tmp_path) == (
        f"outcomes.json is there, and the run does not have it{STALE}"
    )
    more = {**files, "case:notes.md": "0" * 64}
    assert refusal(replace(site, digests={**site.digests, "files": more}), tmp_path) == (
        f"notes.md, which the experiment names, is not there{STALE}"
    )


def test_what_reads_otherwise_though_its_files_are_the_same(site: Site, tmp_path: Path) -> None:
    other = {**site.digests, "seed": "0" * 64}
    assert refusal(replace(site, digests=other), tmp_path) == f"the experiment's seed reads otherwise there{STALE}"


@pytest.mark.parametrize(
    ("home", "said"),
    [
        (
            Home("mine", "no_such_module_there", "Mine"),
            "the kind 'mine' (no_such_module_there) cannot be imported there: "
            "ModuleNotFoundError: No module named 'no_such_module_there'",
        ),
        (
            Home("mine", "json", "Mine"),
            "the kind 'mine' (json) cannot be imported there: AttributeError: module 'json' has no attribute 'Mine'",
        ),
        (Home("mine", "json", "JSONDecoder"), "the kind 'mine' is no Runner there"),
    ],
)
def test_a_runner_of_somebody_else_that_is_not_there(site: Site, tmp_path: Path, home: Home, said: str) -> None:
    assert refusal(replace(site, runners=(home,)), tmp_path) == said
