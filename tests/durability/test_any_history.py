"""Run, stop, edit, damage, resume, merge and start over in any order, beside a model of what must be there."""

import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pytest_metricbench import load_experiment
from pytest_metricbench.bases import Role, Runner
from pytest_metricbench.contracts import AttemptRequest, Outcome
from pytest_metricbench.definition.scoring import status
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.running.runs import ExperimentRun
from pytest_metricbench.store.merging import merge_stores
from pytest_metricbench.store.writing import StoreWriter

TASKS = ("t1", "t2")
VARIANTS = ("baseline", "m1")
SLOTS = (1, 2)
KEYS = [("c", variant, task, slot) for variant in VARIANTS for task in TASKS for slot in SLOTS]

Key = tuple[str, str, str, int]


class NotingRunner(Runner):
    """Notes every execution of its agent and its verifier, outside the store."""

    kind: Literal["noting"] = "noting"
    agent: int = 1
    verifier: Annotated[int, Role.VERIFIER] = 1

    agents: ClassVar[Counter[Key]] = Counter()
    verifiers: ClassVar[Counter[Key]] = Counter()
    trials: ClassVar[list[str]] = []
    broken: ClassVar[bool] = False

    def run(self, request: AttemptRequest, workspace: Path) -> Outcome:
        self.agents[_key(request)] += 1
        self.trials.append(request.trial_id)
        (workspace / "trace.txt").write_text(f"trace of {request.trial_id}")
        if request.task.id == "t2" and request.variant.id == "m1":
            return Outcome.died("AgentFailed", "as it always does")
        return self._verified(request)

    def rescore(self, request: AttemptRequest, workspace: Path) -> Outcome:
        assert (workspace / "trace.txt").read_text() == f"trace of {request.trial_id}"
        return self._verified(request)

    def _verified(self, request: AttemptRequest) -> Outcome:
        self.verifiers[_key(request)] += 1
        if self.broken:
            return Outcome.unmeasured("VerifierFailed", "out of reach", "verifier")
        return Outcome.scored({"reward": float(self.verifier)})


def _key(request: AttemptRequest) -> Key:
    return (request.case.id, request.variant.id, request.task.id, request.attempt)


class Histories(RuleBasedStateMachine):
    """The model: what the definition is, and of each attempt what its counting record was made from."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="metricbench-history-"))
        self.definition = {"seed": 0, "agent": 1, "verifier": 1, "t1": 0, "t2": 0, "m1": 0, "input": 0}
        self.records: dict[Key, dict[str, Any]] = {}
        self.lines = 0
        self.agents: Counter[Key] = Counter()
        self.verifiers: Counter[Key] = Counter()
        self.interrupted = 0
        self.stores = 0
        NotingRunner.agents, NotingRunner.verifiers = Counter(), Counter()
        NotingRunner.trials, NotingRunner.broken = [], False
        self.trials_before = 0

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    # ------------------------------------------------ the system

    @property
    def root(self) -> Path:
        return self.folder / "store"

    def bench(self, root: Path) -> Bench:
        now = self.definition
        (self.folder / "policy.md").write_text(f"policy {now['input']}")
        case = {
            "id": "c",
            "inputs": ["policy.md"],
            "tasks": [{"id": task, "params": {"x": now[task]}} for task in TASKS],
            "mutants": [{"id": "m1", "params": {"x": now["m1"]}}],
        }
        whole = {
            "metricbench": 1,
            "name": "history",
            "attempts": len(SLOTS),
            "seed": now["seed"],
            "runner": {"kind": "noting", "agent": now["agent"], "verifier": now["verifier"]},
            "cases": [case],
        }
        path = self.folder / "experiment.yml"
        path.write_text(json.dumps(whole))
        return Bench(load_experiment(path, runners_by_kind={"noting": NotingRunner}), root)

    def open(self, root: Path, *, fresh: bool = False) -> tuple[Bench, StoreWriter, ExperimentRun]:
        bench = self.bench(root)
        writer = StoreWriter(root, fresh=fresh)
        bench.stored = writer.contents.attempts
        return bench, writer, ExperimentRun.begin(bench, writer, set(KEYS), None)

    def perform(self, bench: Bench, run: ExperimentRun, key: Key, *, keep: bool = True) -> None:
        (case,) = bench.experiment.cases
        variant = next(variant for variant in case.variants if variant.id == key[1])
        task = next(task for task in case.tasks if task.id == key[2])
        performed = bench.attempts.perform(case, variant, task, key[3])
        if keep:
            run.keep(key, performed.new, status(bench.experiment.score, performed.record))

    # ------------------------------------------------ the model

    def fingerprint(self, key: Key) -> tuple[int, ...]:
        now = self.definition
        return (now["seed"], now["agent"], now["input"], now[key[2]], now["m1"] if key[1] == "m1" else 0)

    def expect(self, key: Key, *, keep: bool = True) -> None:
        """What one attempt does now."""
        record = self.records.get(key)
        dies = key[1:3] == ("m1", "t2")
        valid = record is not None and record["fingerprint"] == self.fingerprint(key) and not record["damaged"]
        holds = record is not None and (dies or record["verifier"] == self.definition["verifier"])
        if record is not None and valid and holds and record["outcome"] != "unmeasured":
            return
        if not valid:
            self.agents[key] += 1
        if not dies:
            self.verifiers[key] += 1
        if not keep:
            self.interrupted += 1
            return
        self.lines += 1
        self.records[key] = {
            "fingerprint": self.fingerprint(key),
            "verifier": self.definition["verifier"],
            "damaged": False,
            "outcome": "died" if dies else "unmeasured" if NotingRunner.broken else "scored",
        }

    # ------------------------------------------------ what happens

    @initialize()
    def begin(self) -> None:
        _, writer, _ = self.open(self.root)
        writer.close()

    @rule(keys=st.lists(st.sampled_from(KEYS), unique=True), lost=st.sampled_from([None, *KEYS]))
    def run_some_and_stop(self, keys: list[Key], lost: Key | None) -> None:
        """Some attempts, and perhaps one that was in flight when the run ended."""
        bench, writer, run = self.open(self.root)
        for key in keys:
            self.perform(bench, run, key)
            self.expect(key)
        if lost is not None and lost not in keys:
            self.perform(bench, run, lost, keep=False)
            self.expect(lost, keep=False)
        writer.close()

    @rule()
    def run_all(self) -> None:
        self.run_some_and_stop(list(KEYS), None)
        if not NotingRunner.broken:
            before = (self.agents.copy(), self.verifiers.copy())
            self.run_some_and_stop(list(KEYS), None)
            assert before == (self.agents, self.verifiers)

    @rule(what=st.sampled_from(["seed", "agent", "verifier", "t1", "t2", "m1", "input"]), value=st.integers(1, 2))
    def edit(self, what: str, value: int) -> None:
        self.definition[what] = value

    @rule(broken=st.booleans())
    def verifier_in_reach_or_not(self, broken: bool) -> None:
        NotingRunner.broken = broken

    @rule(key=st.sampled_from(KEYS))
    def damage(self, key: Key) -> None:
        if key in self.records:
            writer = StoreWriter(self.root)
            folder = writer.layout.left_by(writer.contents.attempts[key])
            writer.close()
            (folder / "trace.txt").write_text("damaged")
            self.records[key]["damaged"] = True

    @rule()
    def tear_the_last_line(self) -> None:
        """A crash in the middle of a line: half a record more than what is known."""
        with (self.root / "attempts.jsonl").open("ab") as file:
            file.write(b'{"case":"c","variant":"basel')

    @rule()
    def start_over(self) -> None:
        _, writer, _ = self.open(self.root, fresh=True)
        writer.close()
        self.records, self.lines, self.interrupted = {}, 0, 0
        self.trials_before = len(NotingRunner.trials)

    @rule(keys=st.lists(st.sampled_from(KEYS), unique=True, min_size=1))
    def run_elsewhere_and_merge(self, keys: list[Key]) -> None:
        """Attempts that nobody has, made on another machine from the same files."""
        keys = [key for key in keys if key not in self.records]
        _, writer, _ = self.open(self.root)  # both describe today's files
        writer.close()
        self.stores += 1
        other = self.folder / f"machine-{self.stores}"
        bench, writer, run = self.open(other)
        for key in keys:
            self.perform(bench, run, key)
            self.expect(key)
        writer.close()
        writer = StoreWriter(self.root)
        assert merge_stores(writer, [other]).attempts == len(keys)
        assert merge_stores(writer, [other]).attempts == 0
        writer.close()
        shutil.rmtree(other)

    # ------------------------------------------------ what must hold

    @invariant()
    def exactly_the_right_attempts_ran(self) -> None:
        assert self.agents == NotingRunner.agents
        assert self.verifiers == NotingRunner.verifiers

    @invariant()
    def the_journal_is_what_the_model_says(self) -> None:
        path = self.root / "attempts.jsonl"
        if not path.exists():
            return
        whole = [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
        assert len(whole) == self.lines
        last: dict[Key, dict[str, Any]] = {}
        for line in map(json.loads, whole):
            key = (line["case"], line["variant"], line["task"], line["attempt"])
            assert line["supersedes"] == (last[key]["trial_id"] if key in last else None)
            last[key] = line
        assert {key: line["outcome"] for key, line in last.items()} == {
            key: record["outcome"] for key, record in self.records.items()
        }

    @invariant()
    def nothing_that_an_agent_did_is_lost(self) -> None:
        """Every workspace of the store is kept, in one place or another."""
        left = [path.name.partition(".")[0] for path in self.root.glob("*/c/*/*/*")]
        assert set(NotingRunner.trials[self.trials_before :]) <= set(left)


TestHistories = pytest.mark.slow(Histories.TestCase)
TestHistories.settings = settings(max_examples=25, stateful_step_count=15)
