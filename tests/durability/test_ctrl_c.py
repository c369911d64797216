"""Ctrl-C at any moment: the prompt is back soon, nothing is left running, and the same command goes on."""

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.durability.durability_lab import AGENT, Ended, Lab, no_fault
from tests.durability.test_killed_runs import settle

pytestmark = pytest.mark.slow

WITHIN = 2.0
"""Seconds in which Ctrl-C is answered."""
INTERRUPTED = 2

NOTING = """\
import pathlib, pytest, time
HERE = pathlib.Path(__file__).parent
(HERE / "loaded").touch()

def pytest_itemcollected(item):
    (HERE / "collecting").touch()
    if (HERE / "slow-collection").exists():
        time.sleep(0.05)

@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session):
    (HERE / "finishing").touch()
    return (yield)
"""
"""A ``conftest.py`` that tells where the session is."""

DEAF = """\
echo "$PWD" >> "${0%/*}/ran.txt"
if [ ! -f "${0%/*}/mended" ]; then
  trap "" TERM INT
  echo $$ >> "${0%/*}/stuck"
  while :; do sleep 1; done
fi
"""
"""A program that hears no signal that can be ignored, until it is mended and does the following."""
MENDED = {
    "agent.sh": "echo 1 > answer.txt",
    "verify.sh": """echo '{"scores": {"reward": 1}}' > response.json""",
    "cover.sh": """echo '{"value": 0.5}' > response.json""",
}

MODULE = """\
import pathlib, time
HERE = pathlib.Path(__file__).parent

def stick(wait):
    if (HERE / "mended").exists():
        return 1.0
    with (HERE / "stuck").open("a") as file:
        file.write("x\\n")
    while True:
        wait()

def sleeps(request):
    return stick(lambda: time.sleep(100))

def spins(request):
    return stick(lambda: None)

def measure(request):
    if len(request.tasks) == 1:
        return 0.5
    return stick(lambda: time.sleep(100))

def differs(request):
    digits = request.variant.id + request.task.id
    return 1.0 if request.variant.id == "baseline" or sum(map(ord, digits)) % 3 else 0.0

def share(request):
    goals = {task: [task] for task in request.evidence}
    universe = sorted(goals) + ["never"]
    return {"value": len(request.tasks) / 40, "goals": {"universe": universe, "by_task": goals}}
"""
"""Agents and coverage systems of Python that do not end, until they are mended."""

SUITE = """\
metricbench: 1
name: lab
runner: {kind: suite, source: [pkg], tests: tests, preload: false}
cases:
  - id: c
    tasks: TASKS
    mutants: MUTANTS
"""
ONE_TEST = '[{id: t1, params: {nodeid: "tests/test_it.py::test_it"}}]'
ONE_PATCH = "[{id: m1, params: {patch: m1.patch}}]"
PATCH = """\
--- a/pkg/__init__.py
+++ b/pkg/__init__.py
@@ -1,2 +1,2 @@
 def f():
-    return 1
+    return 2
"""
STUCK = "    import pathlib, time\n    pathlib.Path('stuck').write_text('x\\n')\n    while True: time.sleep(0.01)\n"


# ---------------------------------------------------------------- experiments


def scripts(*deaf: str) -> Callable[[Lab], None]:
    """Commands, some of which do not end."""

    def make(lab: Lab) -> None:
        lab.make()
        lab.write("conftest.py", NOTING)
        for name in deaf:
            lab.write(name, f"{DEAF}{MENDED[name]}\n")

    return make


def late(lab: Lab) -> None:
    """A command whose time is up soon, and that does not heed SIGTERM."""
    scripts("agent.sh")(lab)
    lab.define(runner={"timeout": 0.5})


def slow_collection(lab: Lab) -> None:
    scripts()(lab)
    lab.write("slow-collection", "")


def python(agent: str, **changed: Any) -> Callable[[Lab], None]:
    """A function of Python."""

    def make(lab: Lab) -> None:
        scripts()(lab)
        lab.write("mod.py", MODULE)
        runner = {"kind": "python", "agent": f"mod:{agent}", **changed}
        lab.write("experiment.yml", json.dumps(_with_runner(lab, runner)))

    return make


def measured(lab: Lab) -> None:
    """A coverage system in Python that does not end."""
    scripts()(lab)
    lab.write("mod.py", MODULE)
    lab.define(coverage=[{"id": "share", "kind": "python", "measure": "mod:measure"}])


def long_analysis(lab: Lab) -> None:
    """An analysis of minutes."""
    lab.write("conftest.py", NOTING)
    lab.write("mod.py", MODULE)
    lab.define(
        case={
            "tasks": [{"id": f"t{number}"} for number in range(30)],
            "mutants": [{"id": f"m{number}"} for number in range(20)],
            "subsets": {"sizes": [3, 6], "per_size": 40, "seed": 1},
        },
        attempts=1,
        items="variant",
        coverage=[{"id": "share", "kind": "python", "measure": "mod:share"}],
        analysis={"resamples": {"permutation": 999_999, "bootstrap": 100_000}},
    )
    lab.write("experiment.yml", json.dumps(_with_runner(lab, {"kind": "python", "agent": "mod:differs"})))


def _with_runner(lab: Lab, runner: dict[str, Any]) -> dict[str, Any]:
    changed: dict[str, Any] = json.loads((lab.path / "experiment.yml").read_text())
    return {**changed, "runner": runner}


def suite_of(*, tasks: str = ONE_TEST, mutants: str = ONE_PATCH) -> str:
    return SUITE.replace("TASKS", tasks).replace("MUTANTS", mutants)


def suite(lab: Lab) -> None:
    """A test that does not end under the mutant."""
    lab.write("conftest.py", NOTING)
    lab.write("pkg/__init__.py", "def f():\n    return 1\n")
    lab.write("m1.patch", PATCH)
    lab.write("tests/test_it.py", f"import pkg\n\ndef test_it():\n    if pkg.f() == 1: return\n{STUCK}")
    lab.write("experiment.yml", suite_of())


def expansion(lab: Lab) -> None:
    """Tests whose collection does not end."""
    suite(lab)
    lab.write("tests/test_it.py", f"if True:\n{STUCK}\ndef test_it(): pass\n")
    lab.write("experiment.yml", suite_of(tasks="{collect: tests}"))


def generation(lab: Lab) -> None:
    """Mutants of a long module, which take many seconds to make."""
    suite(lab)
    lab.write("pkg/__init__.py", "def f():\n    return 1\n" + "\n".join(f"X{n} = {n} + {n} * 2" for n in range(2000)))
    lab.write("experiment.yml", suite_of(mutants="{generate: {from: cosmic-ray, sample: 1}}"))


def large_store(lab: Lab) -> None:
    """A store that takes seconds to read: each record stands there many times."""
    scripts()(lab)
    assert lab.run().status == 0
    journal = lab.path / ".metricbench" / "lab" / "attempts.jsonl"
    journal.write_bytes(journal.read_bytes() * 10_000)


def large_files(lab: Lab) -> None:
    """Attempts whose files take seconds to verify; there are holes in them, so that no disk is filled."""
    scripts()(lab)
    lab.write("agent.sh", f"truncate -s 100M trace.txt\n{AGENT.replace('trace.txt', 'other.txt')}")
    assert lab.run().status == 0


# ---------------------------------------------------------------- moments


def exists(name: str) -> Callable[[Lab], bool]:
    return lambda lab: (lab.path / name).exists()


def opened(name: str) -> Callable[[Lab], bool]:
    """The session, or a worker of it, has a file of this name open."""

    def holds(lab: Lab) -> bool:
        files = []
        with suppress(OSError):  # a process or a file of it is gone meanwhile
            workers = Path(f"/proc/{lab.pid}/task/{lab.pid}/children").read_text().split()
            for process in (lab.pid, *workers):
                files += [os.readlink(link) for link in Path(f"/proc/{process}/fd").iterdir()]
        return any(file.endswith(name) for file in files)

    return holds


def stuck(count: int) -> Callable[[Lab], bool]:
    """So many of an experiment's programs or functions are where they do not end."""

    def holds(lab: Lab) -> bool:
        path = lab.path / "stuck"
        return path.exists() and path.read_text().count("\n") >= count

    return holds


def recorded(count: int) -> Callable[[Lab], bool]:
    return lambda lab: lab.count() >= count


@dataclass(frozen=True)
class Moment:
    """When Ctrl-C is pressed."""

    make: Callable[[Lab], None]
    reached: Callable[[Lab], bool]
    options: tuple[str, ...] = ()
    later: float = 0
    """Seconds after that."""


THREADS, DASK = "--metricbench-executor=threads:8", "--metricbench-executor=dask:2"
AT = {
    "collection": Moment(slow_collection, exists("collecting")),
    "collection -n2": Moment(slow_collection, exists("collecting"), ("-n2",)),
    "expansion": Moment(expansion, exists("stuck")),
    "lock": Moment(expansion, exists("stuck"), ("--metricbench-lock",)),
    "generation": Moment(generation, exists("loaded"), ("--metricbench-lock",), later=2.0),
    "reading a store": Moment(large_store, opened("attempts.jsonl"), later=0.5),
    "reading a store -n2": Moment(large_store, opened("attempts.jsonl"), ("-n2",), later=0.5),
    "verifying files": Moment(large_files, opened("trace.txt")),
    "verifying files -n2": Moment(large_files, opened("trace.txt"), ("-n2",)),
    "between items": Moment(scripts(), recorded(7)),
    "between items -n2": Moment(scripts(), recorded(7), ("-n2",)),
    "agent": Moment(scripts("agent.sh"), stuck(1)),
    "agent -n2": Moment(scripts("agent.sh"), stuck(2), ("-n2",)),
    "agent threads": Moment(scripts("agent.sh"), stuck(8), (THREADS,)),
    "agent dask": Moment(scripts("agent.sh"), stuck(2), (DASK,)),
    "agent whose time is up": Moment(late, stuck(1), later=1.0),
    "verifier": Moment(scripts("verify.sh"), stuck(1)),
    "function that sleeps": Moment(python("sleeps"), stuck(1)),
    "function with a time limit": Moment(python("sleeps", timeout=60), stuck(1)),
    "function that computes": Moment(python("spins"), stuck(1)),
    "function -n2": Moment(python("sleeps"), stuck(2), ("-n2",)),
    "function threads": Moment(python("sleeps", thread_safe=True), stuck(8), (THREADS,)),
    "function dask": Moment(python("sleeps"), stuck(2), (DASK,)),
    "suite": Moment(suite, stuck(1)),
    "suite -n2": Moment(suite, stuck(1), ("-n2",)),
    "coverage": Moment(scripts("cover.sh"), stuck(1)),
    "coverage -n2": Moment(scripts("cover.sh"), stuck(1), ("-n2",)),
    "coverage threads": Moment(scripts("cover.sh"), stuck(1), (THREADS,)),
    "coverage function": Moment(measured, stuck(1)),
    "analysis": Moment(long_analysis, exists("finishing"), later=0.3),
    "analysis -n2": Moment(long_analysis, exists("finishing"), ("-n2",), later=0.3),
    "report": Moment(scripts(), exists(".metricbench/lab/summary.json"), ("--metricbench-html=report.html",)),
}


def waiting(pid: int) -> float:
    """Seconds that the main thread of a process could have run and had no processor; 0 where nobody counts them."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def press(lab: Lab, moment: Moment) -> tuple[Ended, float]:
    """Run up to the moment and press Ctrl-C; gives how it ended, and the seconds it took, without those on a queue.

    A terminal sends the signal to the whole group.
    """
    moment.make(lab)
    own = lab.path.parent / "tmp"  # pytest's folder for all its runs may have others' to remove
    own.mkdir(exist_ok=True)
    process = lab.start(*moment.options, env={"PYTEST_DEBUG_TEMPROOT": str(own)})
    deadline = time.monotonic() + 60
    while not moment.reached(lab):
        assert process.poll() is None, lab.end(process)
        assert time.monotonic() < deadline, "what was waited for never came"
        time.sleep(0.001)
    time.sleep(moment.later)
    began, queued = time.monotonic(), waiting(process.pid)
    last = queued
    os.killpg(process.pid, signal.SIGINT)
    while process.poll() is None:
        assert time.monotonic() < began + 60, "it does not end"
        last = max(last, waiting(process.pid))
        time.sleep(0.005)
    return lab.end(process), time.monotonic() - began - (last - queued)


def goes_on(lab: Lab, moment: Moment) -> None:
    """The same command makes what is missing and nothing else, and has an answer."""
    settle(lab)
    finished = lab.attempts()
    lab.write("mended", "")
    (lab.path / "slow-collection").unlink(missing_ok=True)
    if moment.make is long_analysis:
        changed = json.loads((lab.path / "experiment.yml").read_text())
        lab.write("experiment.yml", json.dumps({**changed, "analysis": {"resamples": 99}}))
    elif moment.make in (suite, expansion, generation):
        lab.write("pkg/__init__.py", "def f():\n    return 1\n")
        lab.write("tests/test_it.py", "import pkg\n\ndef test_it(): assert pkg.f() == 1\n")
        finished = {}  # another test, so everything runs again
    ended = lab.run(*(option for option in moment.options if option != "--metricbench-lock"))
    assert ended.status == 0, ended
    no_fault(ended.out)
    records = lab.lines()
    keys = {(record["variant"], record["task"], record["attempt"]) for record in records}
    assert len(keys) == len(lab.attempts())
    assert finished.items() <= lab.attempts().items()
    assert lab.summary()["complete"] is True


def ended_in_order(ended: Ended, moment: Moment) -> None:
    assert ended.status == INTERRUPTED, ended
    no_fault(ended.out)
    if moment.make is long_analysis:
        assert "interrupted before the answer was whole" in ended.out.replace("\n", " ")


@pytest.mark.parametrize("name", ["lock", "analysis"])
def test_ctrl_c_ends_the_run_in_order(lab: Lab, name: str) -> None:
    ended, _ = press(lab, AT[name])
    ended_in_order(ended, AT[name])
    goes_on(lab, AT[name])


@pytest.mark.benchmark
@pytest.mark.parametrize("name", AT)
def test_ctrl_c_is_answered_soon(lab: Lab, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    ended, seconds = press(lab, AT[name])
    with capsys.disabled():
        print(f"\nCtrl-C, {name}: {seconds:.2f} s")
    ended_in_order(ended, AT[name])
    goes_on(lab, AT[name])
    assert seconds <= WITHIN


@pytest.mark.benchmark
@pytest.mark.parametrize("options", [(), ("-n2",), (THREADS,)], ids=["one process", "-n2", "threads"])
@pytest.mark.parametrize("tenth", range(1, 25))
def test_ctrl_c_at_any_time(lab: Lab, tenth: int, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """From the interpreter's own start, where Python says that it was interrupted, to the end."""
    began = time.monotonic()
    moment = Moment(scripts(), lambda lab: time.monotonic() - began > tenth / 10, options)
    try:
        ended, seconds = press(lab, moment)
    except AssertionError as error:
        assert "exit status 0" in str(error)  # noqa: PT017  (it had ended before)
        return
    with capsys.disabled():
        print(f"\nCtrl-C after {tenth / 10} s {' '.join(options)}: {seconds:.2f} s")
    assert ended.status in (INTERRUPTED, -signal.SIGINT, 1), ended
    goes_on(lab, moment)
    assert seconds <= WITHIN
