"""The blocks of code of the documentation: found, told apart, and tried."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PROGRAMS = (
    "pytest",
    "python",
    "python3",
    "pip",
    "git",
    "jq",
    "mkdocs",
    "until",
    "dask",
    "harbor",
    "uv",
    "PATH=",
    "sbatch",
)
"""What the first line of a block of commands begins with, where no language is given."""


@dataclass(frozen=True)
class Block:
    """One block of code of a page."""

    page: str
    line: int
    language: str
    """``sh``, ``yaml``, ``python``, ``toml``, ``ini``, ``csv``, ``json`` or ``text``."""
    text: str

    @property
    def commands(self) -> list[str]:
        """The command lines of a block of commands, without their comments, prompts and output."""
        lines = re.sub(r"\s*\\\n\s*", " ", self.text).splitlines()
        if any(line.startswith("$ ") for line in lines):
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        return [words for line in lines if (words := re.sub(r"(^|\s)#\s.*", "", line).strip())]


def pages() -> list[Path]:
    """Every page that users read; the records of what was decided have no commands."""
    found = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/README.md"),
    ]
    parts = {"making", ".metricbench", "node_modules", ".venv", ".pytest_cache"}
    return sorted({path for path in found if path.is_file() and not parts & set(path.parts)})


def blocks() -> list[Block]:
    """Every block of every page."""
    parser = MarkdownIt()
    return [
        Block(
            str(page.relative_to(ROOT)), token.map[0] + 1, _language(token.info.strip(), token.content), token.content
        )
        for page in pages()
        for token in parser.parse(page.read_text("utf-8"))
        if token.type in ("fence", "code_block") and token.map
    ]


def _language(info: str, text: str) -> str:
    """The language that is given, or else what the text is."""
    if info:
        return {"console": "sh", "bash": "sh", "yml": "yaml"}.get(info, info)
    first = text.lstrip().removeprefix("$ ")
    if re.match(rf"(?:[A-Z_]+=\S+ )?(?:{'|'.join(map(re.escape, PROGRAMS))})\b", first) or first.startswith("$EDITOR"):
        return "sh"
    if first.startswith(("from pytest_metricbench", "import ")):
        return "python"
    if re.match(r"(metricbench|budget|executor|analysis|score|coverage|runner|gates|items|subsets): ?\S*", first):
        return "yaml"
    return "text"


def pytest_words(command: str) -> list[str] | None:
    """The arguments of a command that runs pytest; None where it runs something else."""
    words = shlex.split(command)
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    if words[:3] in (["python", "-m", "pytest"], ["python3", "-m", "pytest"]):
        words = words[2:]
    return words[1:] if words and words[0].rpartition("/")[2] == "pytest" else None


def without_workers(words: list[str]) -> list[str]:
    """The arguments without ``-n``: that attempts in parallel give the same is tested elsewhere, with real workers."""
    text = re.sub(r"(^|\0)-n\0?(auto|\d+)(?=\0|$)", "", "\0".join(words))
    return [word for word in text.split("\0") if word]


def document(block: Block) -> Any:
    """What a block of YAML says."""
    return yaml.safe_load(block.text)
