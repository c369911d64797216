"""The site's own step for mkdocs: the examples of the repository become pages and files of the site.

A page of ``docs/`` links an example as ``../examples/harbor/README.md``, and an example a page of ``docs/`` as
``../../docs/harbor.md``, which is right in the repository. On the site ``examples/`` lies below ``docs/``, so both
kinds of link lose a step. What of the repository is not on the site (folders, large files) is named without a link.
"""

import re
from pathlib import Path, PurePosixPath
from posixpath import relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<!!)\[(?P<text>[^\][]*)\]\((?P<target>[^)\s]+)\)")
LARGEST = 200_000
"""In bytes: larger files of an example are not copied to the site."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the examples' pages, and the files that these link to."""
    for page in sorted(ROOT.glob("examples/**/README.md")):
        if any(part.startswith(".") for part in page.relative_to(ROOT).parts):
            continue  # a store or a cache
        linked = {(page.parent / match["target"]).resolve() for match in LINK.finditer(page.read_text("utf-8"))}
        for path in [page, *sorted(linked)]:
            if path.is_file() and path.is_relative_to(ROOT / "examples") and path.stat().st_size <= LARGEST:
                source = path.relative_to(ROOT).as_posix()
                if files.get_file_from_path(source) is None:
                    files.append(File.generated(config, source, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Give links between ``docs/`` and the rest of the repository the form that they have on the site."""
    source = PurePosixPath(page.file.src_uri)
    home = source.parent if source.parts[0] == "examples" else "docs" / source.parent

    def on_the_site(match: re.Match[str]) -> str:
        target, mark, anchor = match["target"].partition("#")
        if not target or "://" in target:
            return match[0]
        path = PurePosixPath(relpath((home / target).as_posix(), "."))
        there = path.relative_to("docs") if path.parts[0] == "docs" else path
        if files.get_file_from_path(there.as_posix()) is None and (ROOT / path).exists():
            return match["text"]
        return f"[{match['text']}]({relpath(there.as_posix(), source.parent.as_posix())}{mark}{anchor})"

    return LINK.sub(on_the_site, markdown)
