"""What surrounds a trial in this process, and that nothing of it is left afterwards. Needs no Harbor."""

import importlib
import os
import sys
import warnings
from pathlib import Path

import pytest

from pytest_metricbench.runners.harbor.in_process import Scene, _on


def scene(folder: Path, *roots: Path, **variables: str) -> Scene:
    return Scene({"PATH": os.environ["PATH"], **variables}, folder, roots or (folder,))


def state() -> tuple[dict[str, str], str, list[str], list[object]]:
    return dict(os.environ), os.getcwd(), list(sys.path), list(warnings.filters)


def test_the_trial_has_its_variables_and_its_folder_and_gives_them_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SECRET", "x")
    before = state()
    with _on(scene(tmp_path, HARBOR_TELEMETRY="off")):
        assert dict(os.environ) == {"PATH": before[0]["PATH"], "HARBOR_TELEMETRY": "off"}
        assert os.getcwd() == str(tmp_path)
        assert sys.path[0] == str(tmp_path)
        os.environ["LEFT"] = "behind"
        os.chdir("/")
        sys.path.append("/left")
        warnings.simplefilter("error")
    assert state() == before


def test_everything_is_given_back_whatever_is_raised(tmp_path: Path) -> None:
    before = state()
    for error in (ValueError, KeyboardInterrupt, SystemExit):
        with pytest.raises(error), _on(scene(tmp_path)):
            raise error
        assert state() == before


def test_warnings_are_no_errors_of_a_trial(tmp_path: Path) -> None:
    with _on(scene(tmp_path)):
        warnings.warn("Task.checksum will be deprecated soon", DeprecationWarning, stacklevel=1)
    with pytest.raises(DeprecationWarning):
        warnings.warn("here they are", DeprecationWarning, stacklevel=1)


def test_modules_of_the_experiment_are_imported_anew_for_every_trial(tmp_path: Path) -> None:
    (tmp_path / "lab_agent_module.py").write_text("import lab_pack.part\ncount = []\n")
    (tmp_path / "lab_pack").mkdir()
    (tmp_path / "lab_pack" / "part.py").write_text("")  # a package without __init__.py
    for _ in range(2):
        with _on(scene(tmp_path)):
            module = importlib.import_module("lab_agent_module")
            assert module.count == []
            module.count.append(1)  # what one trial leaves in a module the next one does not meet
        assert not {"lab_agent_module", "lab_pack", "lab_pack.part"} & set(sys.modules)


def test_modules_of_other_places_stay(tmp_path: Path) -> None:
    """An environment below the experiment's folder is no part of the experiment."""
    site = tmp_path / ".venv" / "lib" / "site-packages"
    site.mkdir(parents=True)
    (site / "lab_installed.py").write_text("")
    (tmp_path / "lab_own.py").write_text("import lab_installed\n")
    sys.path.append(str(site))
    try:
        with _on(scene(tmp_path)):
            importlib.import_module("lab_own")
        assert "lab_installed" in sys.modules
        assert "lab_own" not in sys.modules
    finally:
        sys.path.remove(str(site))
        sys.modules.pop("lab_installed", None)


def test_a_namesake_from_another_folder_is_out_of_the_way_and_comes_back(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lab_helper.py").write_text(f"name = {name!r}\n")
    sys.path.insert(0, str(tmp_path / "one"))
    try:
        first = importlib.import_module("lab_helper")
        with _on(scene(tmp_path / "two")):
            assert importlib.import_module("lab_helper").name == "two"
        assert sys.modules["lab_helper"] is first
        with _on(scene(tmp_path / "one")):  # the same file: nothing is in the way
            assert sys.modules["lab_helper"] is first
        assert sys.modules["lab_helper"] is first
    finally:
        sys.path.remove(str(tmp_path / "one"))
        sys.modules.pop("lab_helper", None)


def test_the_standard_library_is_never_out_of_the_way(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("")
    import json

    with _on(scene(tmp_path)):
        assert sys.modules["json"] is json


def test_a_working_directory_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with _on(scene(tmp_path)):
        assert os.getcwd() == str(tmp_path)
