"""The documentation as a site: it is built without a warning, is whole, and fetches nothing from elsewhere."""

import html
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.block_lab import ROOT

pytest.importorskip("mkdocs", reason="needs the extra `docs`")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def pages(site: Path) -> dict[str, str]:
    return {path.relative_to(site).as_posix(): path.read_text("utf-8") for path in site.rglob("*.html")}


def in_navigation(entries: Iterable[Any]) -> Iterator[str]:
    for entry in entries:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            yield from in_navigation(value) if isinstance(value, list) else [value]


def test_every_page_is_there(site: Path) -> None:
    class Loader(yaml.SafeLoader):
        """Takes the tags that MkDocs' configuration has for nothing."""

    Loader.add_multi_constructor("!", lambda *_: None)
    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
    configuration = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), Loader=Loader)
    named = list(in_navigation(configuration["nav"]))
    assert len(named) == len(set(named)) > 25
    for page in named:
        place = re.sub(r"(README|index)\.md$", "", page).removesuffix(".md")
        assert (site / place / "index.html").exists(), page


def test_it_fetches_nothing_from_elsewhere(site: Path) -> None:
    fetched = re.compile(r"""<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=["']?(https?://[^"'\s>]+)""")
    found = {name: urls for name, text in pages(site).items() if (urls := fetched.findall(text))}
    assert found == {}
    styles = [path.read_text("utf-8") for path in site.rglob("*.css")]
    assert not [url for style in styles for url in re.findall(r"url\(['\"]?(https?://[^)]+)", style)]


def test_lists_and_tables_are_lists_and_tables(site: Path) -> None:
    """What GitHub takes for a list needs an empty line before it on the site."""
    for name, text in pages(site).items():
        for paragraph in re.findall(r"<p>(.*?)</p>", text, re.S):
            words = html.unescape(paragraph)
            assert not re.search(r"\n\s*([-*] |\d+\. |\|)", words), f"{name}: {words[:200]}"


def test_code_is_not_part_of_a_paragraph(site: Path) -> None:
    for name, text in pages(site).items():
        assert "<p>```" not in text, name
        assert not re.search(r"\n```\w*\n", re.sub(r"<pre.*?</pre>", "", text, flags=re.S)), name


def test_examples_are_pages_of_it(site: Path) -> None:
    readme = pages(site)["examples/support_agent/index.html"]
    assert 'href="../../audit/"' in readme  # docs/audit.md in the repository
    assert (site / "examples/support_agent/experiment.yml").exists()
    assert 'href="../examples/support_agent/"' in pages(site)["mutants/index.html"]
