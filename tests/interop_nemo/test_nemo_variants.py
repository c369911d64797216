"""Which bundles are of which case and variant, and what of a trial's files is kept."""

import os
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.interop.nemo.bundles import read
from pytest_metricbench.interop.recordings import ReadOptions, RecordingError
from tests.interop_nemo.bundle_lab import SAMPLES, Lab, Trial, notes

ONE = [Trial("t", "t:model", {"m.s": 1.0})]


def target(name: str = "harbor", **config: Any) -> dict[str, Any]:
    return {"name": name, "kind": "runner", "version": None, "config": config}


def variants(lab: Lab, how: str | None = None) -> dict[str, str]:
    """Bundle -> variant."""
    return {one.origin: one.variant for one in lab.read(variants=how).attempts}


def refused(lab: Lab, **options: Any) -> tuple[str, str]:
    with pytest.raises(RecordingError) as caught:
        lab.read(**options)
    return caught.value.message, caught.value.remedy


# ---------------------------------------------------------------- variants


def test_by_a_label(lab: Lab) -> None:
    for name, version in (("a", "1.0"), ("b", "1.1"), ("c", "1.0")):
        lab.bundle(name, ONE, labels={"version": version})
    assert variants(lab, "label:version") == {"runs/a": "1.0", "runs/b": "1.1", "runs/c": "1.0"}
    message = "runs/a/metadata.json has no label 'commit'; its labels are version"
    assert refused(lab, variants="label:commit") == (message, "set runner.variants: label:<key>, target or folder")


def test_by_the_label_that_is_called_variant_when_nothing_is_said(lab: Lab) -> None:
    lab.bundle("a", ONE, labels={"variant": "baseline"})
    lab.bundle("b", ONE, labels={"variant": "m1"})
    assert variants(lab) == {"runs/a": "baseline", "runs/b": "m1"}
    lab.bundle("c", ONE)
    message = "there are 3 bundles, and nothing says which are of one variant"
    assert refused(lab) == (message, "set runner.variants: label:<key>, target or folder")
    assert refused(lab, variants="label:variant")[0] == "runs/c/metadata.json has no label 'variant'; it has no labels"


def test_an_empty_label_names_nothing(lab: Lab) -> None:
    lab.bundle("a", ONE, labels={"version": ""})
    assert refused(lab, variants="label:version")[0] == "runs/a/metadata.json has an empty label 'version'"


def test_one_bundle_needs_nothing_said(lab: Lab) -> None:
    lab.bundle("only", ONE)
    assert variants(lab) == {"runs/only": "only"}


def test_by_folder(lab: Lab) -> None:
    lab.bundle("2026/a", ONE)
    lab.bundle("2026/b", ONE)
    lab.bundle("2025/b", ONE)
    assert variants(lab, "folder") == {
        "runs/2025/b": "runs/2025/b", "runs/2026/a": "a", "runs/2026/b": "runs/2026/b",
    }  # fmt: skip


def test_by_folder_where_all_are_called_the_same(lab: Lab) -> None:
    """As downloaded from jobs: what they have in common says nothing."""
    for job in ("good", "broken"):
        lab.bundle(f"{job}/agent-eval-results", ONE)
    expected = {f"runs/{job}/agent-eval-results": job for job in ("broken", "good")}
    assert variants(lab, "folder") == expected


def test_by_target(lab: Lab) -> None:
    """Harbor's agents are all of the target ``harbor``: what they are stands in its settings."""
    toy: dict[str, Any] = {"effective_agent": "toy", "n_attempts": 1}
    lab.bundle("a", ONE, target=target(**toy, agent_kwargs={"mutant": None}, job_name="x"))
    lab.bundle("b", ONE, target=target(**toy, agent_kwargs={"mutant": "m1"}, job_name="y"))
    lab.bundle("c", ONE, target=target(**toy, agent_kwargs={"mutant": "m1"}, job_name="z"))
    lab.bundle("d", ONE, target=target("gpt-x"))
    assert variants(lab, "target") == {
        "runs/a": "toy", "runs/b": "toy-mutant-m1", "runs/c": "toy-mutant-m1", "runs/d": "gpt-x",
    }  # fmt: skip
    described = lab.read(variants="target").variants["toy-mutant-m1"].description
    assert described == "agent_kwargs.mutant=m1, effective_agent=toy"


def test_imported_trials_have_no_target(lab: Lab) -> None:
    lab.bundle("a", ONE)
    message = "runs/a/metadata.json names no target: its trials were imported"
    assert refused(lab, variants="target") == (message, "set runner.variants: label:<key> or folder")


@pytest.mark.parametrize("how", ["agent", "label:", "Folder"])
def test_another_way_is_refused(lab: Lab, how: str) -> None:
    lab.bundle("a", ONE)
    message = f"runner.variants: {how!r} is not known to the form nemo"
    assert refused(lab, variants=how) == (message, "label:<key>, target or folder is expected")


# ---------------------------------------------------------------- cases


def test_bundles_of_other_cases_are_not_read(lab: Lab) -> None:
    for case in ("refunds", "orders"):
        lab.bundle(f"{case}/base", ONE, labels={"case": case, "variant": "baseline"})
    found = lab.read(case="orders")
    assert {one.origin for one in found.attempts} == {"runs/orders/base"}
    assert notes(found) == {"bundles of other cases, by their label: not read": 1}
    message = "the bundles are of several cases by their label 'case', and none is 'geo': orders, refunds"
    remedy = "call the case of the experiment like one of them, or read fewer bundles"
    assert refused(lab, case="geo") == (message, remedy)


def test_one_label_of_a_case_may_be_any(lab: Lab) -> None:
    lab.bundle("a", ONE, labels={"case": "orders"})
    assert len(lab.read(case="geo").attempts) == 1


# ---------------------------------------------------------------- finding bundles


def test_bundles_are_found_below_a_folder_in_a_fixed_order(lab: Lab) -> None:
    for name in ("z/agent-eval-results", "a/agent-eval-results", "m"):
        lab.bundle(name, ONE)
    (lab.folder / "notes.txt").write_text("not a bundle")
    assert [one.origin for one in lab.read(variants="folder").attempts] == [
        "runs/a/agent-eval-results", "runs/m", "runs/z/agent-eval-results",
    ]  # fmt: skip


def test_a_bundle_that_is_named_twice_is_read_once(lab: Lab) -> None:
    lab.bundle("a", ONE)
    paths = {"runs": lab.folder, "runs/a": lab.folder / "a"}
    assert len(read(paths, ReadOptions("c")).attempts) == 1


def test_hidden_folders_are_not_looked_into(lab: Lab) -> None:
    """That is where bundles are written before they take their place."""
    lab.bundle("a", ONE)
    lab.bundle(".b.1a2b3c4d", ONE)
    assert len(lab.read().attempts) == 1


def test_links_to_folders_are_not_followed(lab: Lab) -> None:
    lab.bundle("a", ONE)
    (lab.folder / "again").symlink_to(lab.folder / "a")
    (lab.folder / "loop").symlink_to(lab.folder)
    assert len(lab.read().attempts) == 1


# ---------------------------------------------------------------- evidence


def kept(folder: Path, *globs: str) -> dict[str, str]:
    """Name in the workspace -> path below the bundle."""
    found = read({"b": folder}, ReadOptions("c", evidence=list(globs) or None)).attempts[0].files
    return {name: os.path.relpath(path, folder) for name, path in found.items()}


def descriptor(ref: str, kind: str = "trace", form: str | None = "atif") -> dict[str, Any]:
    return {"kind": kind, "format": form, "ref": ref, "data": None, "description": None, "metadata": {}}


def bundle_with(lab: Lab, files: list[str], evidence: dict[str, Any]) -> Path:
    trial = Trial("t", "1", {"m.s": 1.0}, evidence=evidence)
    folder = lab.bundle("b", [trial])
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    return folder


def test_the_trace_is_kept_under_the_name_that_coverage_looks_for(lab: Lab) -> None:
    files = ["evidence/x/atif-trace.json", "evidence/x/other.atif.json", "evidence/x/otlp.json", "evidence/x/log.txt"]
    evidence = {
        "trace": descriptor(files[0]),
        "trace:again": descriptor(files[0]),
        "trace:other": descriptor(files[1]),
        "raw": descriptor(files[2], form="otlp"),
        "log": descriptor(files[3], "log", "text"),
        "gone": descriptor("evidence/x/gone.json"),
    }
    folder = bundle_with(lab, files, evidence)
    assert kept(folder) == {"trajectory.json": files[0], "trajectory-2/trajectory.json": files[1]}
    assert kept(folder, "*.txt") == {**kept(folder), "evidence/x/log.txt": files[3]}


def test_globs_are_held_against_paths_below_the_trial(lab: Lab) -> None:
    files = ["evidence/harbor/t__1/agent/trajectory.json", "evidence/harbor/t__1/artifacts/out.txt", "evidence/z.txt"]
    evidence = {"trial_dir": descriptor("evidence/harbor/t__1", "filesystem", "dir"), "trace": descriptor(files[0])}
    folder = bundle_with(lab, files, evidence)
    assert kept(folder, "artifacts/*") == {"trajectory.json": files[0], "artifacts/out.txt": files[1]}
    assert kept(folder, "z.txt") == {"trajectory.json": files[0]}


def test_references_of_a_moved_bundle_are_found_again(lab: Lab) -> None:
    files = ["evidence/x/trajectory.json"]
    folder = bundle_with(lab, files, {"trace": descriptor("/home/somebody/runs/b/evidence/x/trajectory.json")})
    assert kept(folder) == {"trajectory.json": files[0]}


@pytest.mark.parametrize(
    "ref", ["../secret.json", "evidence/../../secret.json", "{outside}", "evidence/link.json", "", "a\0b"]
)
def test_nothing_outside_the_bundle_is_taken(lab: Lab, ref: str) -> None:
    lab.folder.mkdir(parents=True)
    secret = lab.folder / "secret.json"
    secret.write_text("{}")
    folder = bundle_with(lab, ["evidence/x.json"], {"trace": descriptor(ref.format(outside=secret))})
    (folder / "evidence" / "link.json").symlink_to(secret)
    assert kept(folder) == {}
    assert kept(folder, "*") == {}


def test_the_trace_of_the_sample() -> None:
    found = read({"crashes": SAMPLES / "crashes"}, ReadOptions("orders"))
    traces = {one.trial: dict(one.files) for one in found.attempts if one.files}
    path = SAMPLES / "crashes" / "evidence" / "harbor" / "refund__aaa" / "agent" / "trajectory.json"
    assert traces == {"refund__aaa": {"trajectory.json": path}}
