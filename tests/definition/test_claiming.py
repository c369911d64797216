"""Which YAML files are experiments, and what is said of those that nearly are."""

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_metricbench.definition.claiming import claim


@pytest.mark.parametrize(
    "content",
    [
        b"metricbench: 1\n",
        b"# a comment\n\nname: x\nmetricbench: 1\n",
        b"---\nmetricbench: 1\n",
        b"%YAML 1.1\n---\nmetricbench: 1\n...\n",
        b'"metricbench": 1\n',
        b"'metricbench' : 1\n",
        b"\xef\xbb\xbfmetricbench: 1\n",
        "metricbench: 1\n".encode("utf-16"),
        b"{name: x, metricbench: 1}",
        b'{"name": {"metricbench": 2}, "metricbench": 1}',
        b"? metricbench\n: 1\n",
        b"runner: {a: [1, {b: 2}]}\n? [x, y]\n: z\nmetricbench: 1\n",
        b"name: &a x\nother: *a\nmetricbench: 1\n",
        b"metricbench: 1\nname: [broken\n",
    ],
)
def test_ours(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.yml"
    path.write_bytes(content)
    found = claim(path)
    assert found.ours
    assert found.message == ""


@pytest.mark.parametrize(
    ("content", "state", "said"),
    [
        (b"metricbnech: 1\n", "misspelled", "x.yml:1:1: the key 'metricbnech' is unknown; did you mean 'metricbench'?"),
        (b"name: x\nmetric-bench: 1\n", "misspelled", "x.yml:2:1: the key 'metric-bench'"),
        (b"Metricbench: 1\n", "misspelled", "did you mean 'metricbench'?"),
        (b"services: {}\n", "lacking", "lacks the key metricbench"),
        (b"name:\n  metricbench: 1\n", "lacking", "lacks the key metricbench"),
        (b"name: metricbench\n", "lacking", "lacks the key metricbench"),
        (b"- metricbench: 1\n", "lacking", "a list or a single value"),
        (b"metricbench", "lacking", "a list or a single value"),
        (b"", "lacking", "it has no keys"),
        (b"# metricbench: 1\n", "lacking", "it has no keys"),
        (b"{}\n", "lacking", "it has no keys"),
        (b"a: 1\n---\nmetricbench: 1\n", "lacking", "lacks the key metricbench"),
        (b"a: [1\nmetricbench: 1\n", "unreadable", "x.yml:2:"),
        (b"a: \xff\nmetricbench: 1\n", "unreadable", "is no YAML"),
    ],
)
def test_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, state: str, said: str) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "x.yml"
    path.write_bytes(content)
    found = claim(path)
    assert not found.ours
    assert found.state == state
    assert said in found.message
    assert "\n" not in found.message


def test_unreadable_files(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.yml", tmp_path):
        found = claim(path)
        assert found.state == "unreadable"
        assert str(path) in found.message


def test_a_large_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "x.yml"
    path.write_text("metricbench: 1\nx:\n" + "  - {a: 1, b: [1, 2]}\n" * 100_000 + "broken: [")
    assert claim(path).ours


def test_the_module_imports_nothing_heavy() -> None:
    code = (
        "import sys, pytest_metricbench.definition.claiming as c;"
        "heavy = {'yaml', 'pydantic', 'numpy', 'scipy', 'pytest'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_definition_imports_neither_numpy_nor_scipy() -> None:
    code = (
        "import sys, pytest_metricbench.definition.loading, pytest_metricbench.definition.fingerprints,"
        " pytest_metricbench.definition.schema;"
        "heavy = {'numpy', 'scipy', 'pytest'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
