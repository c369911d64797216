"""The agent of this example: runs one test of toolz against one version of toolz.

``request.json`` names the test (``task.params``) and the version (``variant.params``): a patch to put over the
installed source, or none. The argument is the requirement that the installed source must meet. The answer is
``result.json``, which ``verify.py`` judges:

* ``{"passed": true | false, ...}``: the test ran to its end or raised.
* ``{"problem": "..."}``: this machine cannot run it as the experiment means it, whatever the library does. That is
  nobody's failure to find a bug, so the attempt must not count; the verifier refuses it.

An exit status other than 0 means that the library under test cannot even be imported: the attempt died.

The test is called directly. These tests are plain functions without fixtures, and a pytest process for each would
take 2 to 20 times as long as the test with its imports.
"""

import importlib
import importlib.util
import json
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

from patched_import import Patch, PatchedModule, PatchError

HERE = Path(__file__).resolve().parent
COVERAGE_DATA = "coverage.sqlite"


class SetupError(Exception):
    """The machine or the experiment is not what it has to be; the message says what to do."""


class BrokenLibraryError(Exception):
    """The library under test, or a test of it, cannot be imported."""


def main() -> int:
    request = json.loads(Path("request.json").read_text(encoding="utf-8"))
    try:
        package = installed_package(sys.argv[1])
        result = attempt(package, request["variant"]["params"], request["task"]["params"])
    except BrokenLibraryError:
        traceback.print_exc()
        return 1
    except (SetupError, PatchError) as error:
        result = {"problem": str(error)}
    except Exception as error:  # not the library's doing, whatever it is
        traceback.print_exc()
        result = {"problem": f"{type(error).__name__}: {error}"}
    Path("result.json").write_text(json.dumps(result), encoding="utf-8")
    return 0


def attempt(package: Path, variant: dict[str, Any], task: dict[str, Any]) -> dict[str, Any]:
    """Import the version of the library, then the test, and run it.

    Raises:
        BrokenLibraryError: an import fails. Whatever else is raised says nothing about the library.
    """
    patched = patched_module(variant["patch"], package) if "patch" in variant else None
    if patched is not None:
        patched.install()
    with line_coverage(package) if variant.get("measure_coverage") else nullcontext():
        tests = import_tests(f"toolz.tests.test_{task['module']}")
        test = find_test(tests, task["test"])
        if patched is not None:
            patched.prove_loaded(tests)
        passed = run(test)
    source = None if patched is None else {"module": patched.module, "source_hash": patched.source_hash}
    return {"passed": passed, "patched": source}


def installed_package(requirement: str) -> Path:
    """The folder of the installed library, ``toolz==1.2.0``, without importing it.

    Raises:
        SetupError: it is not installed, or in another version than the patches were made for.
    """
    name, _, version = requirement.partition("==")
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SetupError(f"{name} is not installed; pip install {requirement}")
    package = Path(spec.origin).parent
    # importlib.metadata would say the same, and its import takes as long as most of the tests.
    if not (package.parent / f"{name}-{version}.dist-info").is_dir():
        raise SetupError(f"{package} is not {requirement}, for which the patches were made; pip install {requirement}")
    return package


def patched_module(patch_file: str, package: Path) -> PatchedModule:
    """The module that a patch changes, changed.

    Raises:
        SetupError: there is no such patch.
        PatchError: it does not fit the installed source.
    """
    try:
        text = (HERE / patch_file).read_text(encoding="utf-8")
    except OSError as error:
        raise SetupError(f"the patch {patch_file} cannot be read: {error.strerror}") from error
    patch = Patch(text, patch_file)
    return PatchedModule(patch, package.parent / patch.file)


def import_tests(name: str) -> ModuleType:
    """The test module, and with it the library in the version under test.

    Raises:
        BrokenLibraryError: the library or the module cannot be imported.
        SetupError: something that is not part of toolz is not installed.
    """
    try:
        importlib.import_module("toolz")
    except Exception as error:
        raise BrokenLibraryError("toolz") from error
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise SetupError(f"{name} needs {error.name}, which is not installed") from error
    except Exception as error:
        raise BrokenLibraryError(name) from error


def find_test(tests: ModuleType, name: str) -> Callable[[], object]:
    """The test ``function`` or ``Class.method`` of a module.

    Raises:
        SetupError: the module has no such test.
    """
    owner, _, function = name.rpartition(".")
    try:
        return getattr(getattr(tests, owner)() if owner else tests, function)  # type: ignore[no-any-return]
    except AttributeError:
        raise SetupError(f"{tests.__name__} has no test {name}") from None


def run(test: Callable[[], object]) -> bool:
    """Whether the test passes; why not goes to stderr, which is kept."""
    try:
        test()
    except Exception:
        traceback.print_exc()
        return False
    return True


@contextmanager
def line_coverage(package: Path) -> Iterator[None]:
    """Record the lines of the package that run, from its import on, as ``coverage report`` would count them."""
    try:
        import coverage
    except ImportError as error:
        raise SetupError("coverage.py is not installed; pip install coverage") from error
    measured = coverage.Coverage(data_file=COVERAGE_DATA, include=[str(package / "*.py")], config_file=False)
    measured.start()
    try:
        yield
    finally:
        measured.stop()
        measured.save()


if __name__ == "__main__":
    sys.exit(main())
