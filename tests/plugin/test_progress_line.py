"""The line that says how far a run is: on a terminal, beside what pytest and pytest-xdist print, and nowhere else."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

import pytest

from pytest_metricbench.reporting.amounts import duration_text, money_text
from pytest_metricbench.running.forecast import Estimates, Remaining
from tests.plugin.plugin_lab import AGENT, OTHER_PLUGINS, Lab

pytestmark = pytest.mark.slow
COLUMNS = 90
PRICED = AGENT.replace('"tone": "dry"}', '"tone": "dry", "cost_usd": 0.25}')
SLOW_TASKS = [{"id": name, "params": {"seconds": 0.15}} for name in ("find", "pay", "refund")]
SAID = re.compile(r"(\d+)/18 attempts")


class Screen:
    """As much of a terminal as pytest uses: lines, carriage return, backspace, and colours that are ignored."""

    def __init__(self) -> None:
        self.lines = [""]
        self.column = 0
        self.rest = ""

    def feed(self, data: str) -> None:
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.rest + data)
        self.rest = ""
        if "\x1b" in text[-8:]:
            at = text.rindex("\x1b")
            text, self.rest = text[:at], text[at:]
        for sign in text:
            if sign == "\n":
                self.lines.append("")
                self.column = 0
            elif sign == "\r":
                self.column = 0
            elif sign == "\b":
                self.column = max(self.column - 1, 0)
            else:
                if self.column == COLUMNS:  # pytest itself writes lines that are longer
                    self.lines.append("")
                    self.column = 0
                line = self.lines[-1].ljust(self.column)
                self.lines[-1] = line[: self.column] + sign + line[self.column + 1 :]
                self.column += 1


def watch(lab: Lab, *arguments: str, env: dict[str, str] | None = None) -> tuple[int, list[str], list[str]]:
    """Run pytest on a terminal; gives the status, what stood on the last line over time, and every line at the end."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    off = [part for plugin in OTHER_PLUGINS for part in ("-p", f"no:{plugin}")]
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *off, *arguments],
        stdin=child,
        stdout=child,
        stderr=child,
        cwd=lab.path,
        env={**os.environ, "TERM": "xterm", "COLUMNS": str(COLUMNS), **(env or {})},
    )
    os.close(child)
    screen, seen = Screen(), [""]
    end = time.monotonic() + 90
    while time.monotonic() < end:
        if not select.select([parent], [], [], 0.1)[0]:
            if process.poll() is not None:
                break
            continue
        try:
            data = os.read(parent, 1 << 16)
        except OSError:
            break
        if not data:
            break
        screen.feed(data.decode("utf-8", "replace").replace("\r\n", "\n"))
        if screen.lines[-1].rstrip() != seen[-1]:
            seen.append(screen.lines[-1].rstrip())
    os.close(parent)
    return process.wait(timeout=30), seen, [line.rstrip() for line in screen.lines]


def counts(seen: list[str]) -> list[int]:
    return [int(found[1]) for line in seen if (found := SAID.search(line))]


@pytest.mark.parametrize("args", [[], pytest.param(["-n2"], marks=pytest.mark.benchmark)], ids=["plain", "n2"])
def test_inside_items_of_several_attempts(lab: Lab, args: list[str]) -> None:
    """It counts attempts, and in this process goes on between two attempts of an item."""
    outcomes = {"no-pay::pay": "m", "quiet::find": "u"}
    lab.make(items="variant", agent=PRICED, case={"tasks": SLOW_TASKS}, outcomes=outcomes)
    lab.write(
        "conftest.py",
        "import pytest_metricbench.pytest_side.groups\n\npytest_metricbench.pytest_side.groups.SEND_EVERY = 0.0\n",
    )
    status, seen, final = watch(lab, "experiment.yml", *args)
    assert status == pytest.ExitCode.TESTS_FAILED, final
    shown = counts(seen)
    assert shown == sorted(shown)
    assert len(set(shown) - {0, 6, 12}) >= 5, seen
    assert any(re.search(r"/18.*, [12] failed, ", line) for line in seen), seen
    assert not any("/18" in line or "to go" in line for line in final), final


@pytest.mark.parametrize(
    "args", [[], ["-v"], pytest.param(["-n2"], marks=pytest.mark.benchmark), ["-n2", "-v"]], ids=" ".join
)
def test_it_goes_on_and_leaves_nothing_behind(lab: Lab, args: list[str]) -> None:
    lab.make(agent=PRICED, case={"tasks": SLOW_TASKS}, outcomes={"no-pay::pay": "m", "quiet::find": "u"})
    status, seen, final = watch(lab, "experiment.yml", *args)
    assert status == pytest.ExitCode.TESTS_FAILED, final
    shown = counts(seen)
    assert len(shown) >= 5, seen
    assert shown == sorted(shown)
    said = [line for line in seen if SAID.search(line)]
    assert any(re.search(r"about [\d.]+ s to go, \$[\d.]+ spent$", line) for line in said), said
    assert any(re.search(r"/18.*, [12] failed, ", line) for line in seen), seen
    assert not any("/18" in line or "to go" in line for line in final), final
    assert any(re.search(r"\[100%\]", line) for line in final), final
    if "-v" not in args:  # the letters stand as if nothing had been shown
        letters = r"[.mF]{22}" if args else r"experiment\.yml \.{8}mm\.\.FF\.{4}[.F]{4}"
        assert any(re.fullmatch(rf"{letters} +\[100%\]", line) for line in final), final


@pytest.mark.benchmark
def test_of_a_second_run_it_counts_what_is_reused_and_knows_the_time(lab: Lab) -> None:
    lab.make(agent=PRICED, case={"tasks": SLOW_TASKS}, outcomes={})
    lab.run("experiment.yml", "-k", "baseline or no-pay")
    took = [line["duration"] for line in lab.journal()]
    _, seen, _ = watch(lab, "experiment.yml")
    said = [line for line in seen if SAID.search(line)]
    assert any(re.search(r", \d+ reused, about ", line) for line in said), said
    (first, *_) = [
        float(found[1]) for line in said if (found := re.search(r"0/18 attempts, about ([\d.]+) s to", line))
    ]
    assert 6 * min(took) - 0.1 <= first <= 6 * max(took) + 0.1


def test_a_budget_is_counted_too(lab: Lab) -> None:
    lab.make(agent=PRICED, case={"tasks": SLOW_TASKS}, budget={"attempts": 4})
    status, _, final = watch(lab, "experiment.yml")
    assert status == 6, final


@pytest.mark.parametrize("args", [["-q"], pytest.param(["-s"], marks=pytest.mark.benchmark)], ids=" ".join)
def test_not_where_it_would_be_in_the_way(lab: Lab, args: list[str]) -> None:
    lab.make(agent=PRICED, case={"tasks": SLOW_TASKS})
    _, seen, _ = watch(lab, "experiment.yml", *args)
    assert counts(seen) == []


@pytest.mark.parametrize("args", [[], pytest.param(["-n2"], marks=pytest.mark.benchmark)], ids=["plain", "n2"])
def test_not_where_output_is_no_terminal(lab: Lab, args: list[str]) -> None:
    lab.make(agent=PRICED, case={"tasks": SLOW_TASKS})
    result = lab.run("experiment.yml", *args)
    assert not re.search(r"\d+/18 attempts|spent|\x08", result.stdout.str())


def test_what_is_said_of_a_worker_that_crashed_stays_readable(lab: Lab) -> None:
    agent = PRICED.replace("    letters =", "    if where == 'no-pay::pay': __import__('os')._exit(3)\n    letters =")
    lab.make(agent=agent, attempts=1, case={"tasks": SLOW_TASKS})
    _, _, final = watch(lab, "experiment.yml", "-n2")
    assert any(re.search(r"\[gw\d\] node down: ", line) for line in final), final
    assert not any("/9 attempts" in line or "to go" in line or " spent" in line for line in final), "\n".join(final)


def test_ids_longer_than_the_terminal(lab: Lab) -> None:
    task = "a-very-long-name-of-a-task-that-has-no-room-beside-anything-else-on-a-line-of-a-terminal"
    lab.make(agent=PRICED, case={"tasks": [{"id": task, "params": {"seconds": 0.15}}], "subsets": None}, coverage=None)
    status, seen, final = watch(lab, "experiment.yml", "-v")
    assert status == 0, final
    assert counts(seen) == []
    assert sum(" PASSED" in line for line in final) == 6, final


# ---------------------------------------------------------------- what is left


def test_remaining_without_anything_known() -> None:
    remaining = Remaining([("c", "baseline", "t", slot) for slot in range(1, 5)], Estimates([], ()), 4)
    assert remaining.seconds() is None
    remaining.ended(("c", "baseline", "t", 1), 2.0)
    assert remaining.seconds() == 6.0
    for slot in (2, 3, 4):
        remaining.ended(("c", "baseline", "t", slot), 2.0)
    assert remaining.seconds() == 0.0
    remaining.ended(("c", "baseline", "t", 4), 2.0)  # a rerun of it takes nothing away twice
    assert remaining.seconds() == 0.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0, "0.0 s"), (0.04, "0.04 s"), (0.149, "0.1 s"), (9.9, "9.9 s"), (9.96, "10 s"), (59.4, "59 s")),
        *((59.6, "1 min"), (3599, "1 h"), (3600, "1 h"), (7800, "2 h 10 min"), (172_800, "2 d"), (190_000, "2 d 4 h")),
    ],
)
def test_durations_in_words(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("amount", "unit", "text"),
    [
        *((0, "cost_usd", "$0.00"), (0.00042, "cost_usd", "$0.00042"), (0.013, "cost_usd", "$0.013")),
        *((0.1, "cost_usd", "$0.10"), (1234.5, "cost_usd", "$1,234.50"), (3, "cost", "cost 3.00")),
    ],
)
def test_money_in_words(amount: float, unit: str, text: str) -> None:
    assert money_text(amount, unit) == text


GENERATED = """\
metricbench: 1
name: pkg
runner: {kind: suite, source: [pkg], tests: tests}
cases:
  - id: c
    tasks: {collect: tests}
    mutants: {generate: {from: cosmic-ray, sample: 1}}
"""


@pytest.mark.parametrize("args", [["--metricbench-lock"], []], ids=["lock", "run"])
def test_making_mutants_tells_how_far_it_is(lab: Lab, args: list[str]) -> None:
    pytest.importorskip("cosmic_ray")
    lab.write("pkg.py", "def f():\n    return 1\n" + "".join(f"X{n} = {n} + {n} * 2\n" for n in range(40)))
    lab.write("tests/test_it.py", "import pkg\n\ndef test_it():\n    assert pkg.f() == 1\n")
    lab.write("experiment.yml", GENERATED)
    status, seen, final = watch(lab, "experiment.yml", *args)
    assert status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), final
    assert any(line.startswith("expanding the tasks of the case c") for line in seen), seen
    shown = [int(found[1]) for line in seen if (found := re.fullmatch(r"expanding .* case c: ([0-9]+) changes", line))]
    assert len(shown) > 3, seen
    assert shown == sorted(shown)
    assert not any("expanding" in line for line in final), final
