"""Makes the pictures of docs/reports.md from the stores of the examples, which are run before.

    pytest -p metricbench examples/support_agent/experiment.yml examples/toolz/twenty.experiment.yml -n auto
    python docs/make_pictures.py

Pages are drawn by headless Chromium, the terminal by rich. Nothing is run again: what a store does not have ends the
script. CI makes the pictures in a folder of its own, to see that it can be done; those in docs/pictures are made when a
report changes.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME
from rich.text import Text

from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.reporting.html import check_html_possible, write_html
from pytest_metricbench.reporting.html_origin import origin_of
from pytest_metricbench.stages import gather, load_experiment, open_store

ROOT = Path(__file__).resolve().parents[1]
FILES = {"support_agent": "experiment.yml", "toolz": "twenty.experiment.yml"}
"""Example -> the experiment whose pictures are made: of toolz the small one, which CI runs."""
COLUMNS = 80
COLOURS = 128
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking"),
    *("disable-component-update", "disable-sync", "hide-scrollbars"),
)
DARK = ("force-dark-mode", "blink-settings=preferredColorScheme=0")


@dataclass(frozen=True)
class Picture:
    """A part of an example's page."""

    name: str
    example: str
    width: int
    height: int
    start: str = ""
    """Id of the heading that it begins with; the top of the page where empty."""
    dark: bool = False


PICTURES = (
    Picture("support-agent-page", "support_agent", 1200, 1500),
    Picture("support-agent-survivors", "support_agent", 1200, 1500, "kills-support"),
    Picture("toolz-page-dark", "toolz", 1200, 1500, dark=True),
    Picture("toolz-kills", "toolz", 1200, 1400, "kills-toolz"),
)


def main() -> None:
    """Make all pictures.

    Raises:
        SystemExit: there is no browser, or a store does not have what the experiment asks for.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "pictures", help="folder of the pictures")
    into = parser.parse_args().into
    into.mkdir(parents=True, exist_ok=True)
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit("Chromium is needed: apt-get install chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for example in dict.fromkeys(picture.example for picture in PICTURES):
            page_of(example, folder / f"{example}.html")
            terminal_of(example, into / f"{example.replace('_', '-')}-terminal.svg")
        for picture in PICTURES:
            draw(browser, picture, folder, into / f"{picture.name}.png")
    for path in sorted(into.iterdir()):
        print(f"{path.stat().st_size / 1000:6.0f} kB  {path.name}")


def page_of(example: str, path: Path) -> None:
    """Write the page of an example."""
    experiment = load_experiment(ROOT / "examples" / example / FILES[example])
    results = gather(experiment, open_store(experiment.folder / ".metricbench" / experiment.name))
    summary = summarize(results)
    if not summary.complete:
        sys.exit(f"the store of {example} is not complete: run the example first")
    check_html_possible(path)
    command = f"pytest -p metricbench examples/{example}/{FILES[example]} --metricbench-html report.html"
    write_html(path, results, summary, origin_of(results, command=command))


def terminal_of(example: str, path: Path) -> None:
    """Write what the terminal shows of an example, as SVG without the fonts that rich would fetch."""
    argv = ["pytest", "-p", "metricbench", f"examples/{example}/{FILES[example]}", "--metricbench-cached-only"]
    quiet = ["--color=yes", "-p", "no:cacheprovider", "-p", "no:sugar", "-p", "no:randomly"]
    done = subprocess.run(
        [sys.executable, "-m", *argv, *quiet],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": str(COLUMNS), "PYTEST_ADDOPTS": ""},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    _, _, section = done.stdout.rpartition("metricbench: ")
    start = done.stdout.rindex("\n", 0, len(done.stdout) - len(section)) + 1
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    console.print(Text.from_ansi(f"$ {' '.join(argv[:4])}\n...\n{of_any_machine(done.stdout[start:].rstrip())}"))
    svg = console.export_svg(title=example, theme=DEFAULT_TERMINAL_THEME)
    path.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S), encoding="utf-8")


def of_any_machine(text: str) -> str:
    """The text without where Python stands here, which lines may have broken anywhere."""
    between = r"(?:\s|\x1b\[[0-9;]*m)*"  # the ends of lines, with their colours
    letters = between.join(map(re.escape, sys.base_prefix))
    return re.sub(letters, "/usr", text)


def part_of(page: str, start: str) -> str:
    """A page without what stands before one of its sections: a picture begins at the top."""
    if not start:
        return page
    before, _, _ = page.partition("<a class=")
    _, mark, rest = page.partition(f'<section aria-labelledby="{start}">')
    return f"{before}<main>{mark}{rest}"


def draw(browser: str, picture: Picture, folder: Path, path: Path) -> None:
    """Draw a part of a page with few colours."""
    page, shot = folder / f"{picture.name}.html", folder / "shot.png"
    page.write_text(part_of((folder / f"{picture.example}.html").read_text("utf-8"), picture.start), encoding="utf-8")
    flags = [*FLAGS, *(DARK if picture.dark else ()), f"window-size={picture.width},{picture.height}"]
    profile = folder / f"profile-{picture.name}"
    argv = [
        browser,
        *(f"--{flag}" for flag in flags),
        f"--user-data-dir={profile}",
        f"--screenshot={shot}",
        page.as_uri(),
    ]
    subprocess.run(argv, check=True, capture_output=True, timeout=120)
    with Image.open(shot) as image:
        image.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
            path, optimize=True
        )


if __name__ == "__main__":
    main()
