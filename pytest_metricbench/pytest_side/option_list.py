"""The options of the command line, each with its help; ``docs/usage.md`` explains them.

Loaded in every pytest run of an environment that has the package, so it imports nothing heavy.
"""

from typing import Final

import pytest

from pytest_metricbench.pytest_side.options import FILES, OptionGroup
from pytest_metricbench.pytest_side.protocol_choice import AUTO, CHOICES

SHOWN: Final = ("survivors", "matrix", "tasks", "attempts", "plan")
"""What ``--metricbench-show`` shows."""
DEFAULT_FILES: Final = ["experiment.yml", "*.experiment.yml"]


def add_options(parser: pytest.Parser) -> None:
    """Add every option with its ini twin, and ``metricbench_files``.

    Help texts begin with a capital letter. What an option does is one phrase; the values that it takes follow, each on
    a line of its own. There is no full stop at the end, where the default follows.
    """
    group = OptionGroup(parser, "metricbench", "metricbench: benchmark cases as tests")
    _add_start_options(group)
    _add_run_options(group)
    _add_executor_option(group)
    _add_protocol_option(group)
    _add_show_option(group)
    _add_output_options(group)
    _add_machine_options(group)
    parser.addini(
        FILES,
        type="args",
        default=DEFAULT_FILES,
        help="Names of experiment files to collect from folders (default: experiment.yml *.experiment.yml)",
    )


def _add_start_options(group: OptionGroup) -> None:
    """A first experiment."""
    group.addoption(
        "--metricbench-init",
        nargs="?",
        const=".",
        metavar="DIR",
        help="Write a first experiment into this folder, or the current one, and end: about the agent, Harbor dataset, "
        "tests or table of results that is in it, else an example to copy",
    )
    group.addoption(
        "--metricbench-init-kind",
        metavar="KIND",
        help="What it is about: python, command, harbor, suite or table (default: what is found in the folder)",
    )


def _add_run_options(group: OptionGroup) -> None:
    """What is run and what is taken from the store."""
    group.addoption(
        "--metricbench-store",
        metavar="DIR",
        help="Folder for the stores, one below it for each experiment name (default: .metricbench beside the file)",
    )
    group.addoption(
        "--metricbench-fresh",
        action="store_true",
        help="Start over: reuse nothing, and keep the old store aside",
    )
    group.addoption(
        "--metricbench-retry-died",
        action="store_true",
        help="Run attempts again that died, instead of reusing what is known of them",
    )
    group.addoption(
        "--metricbench-coverage",
        action="append",
        default=[],
        metavar="ID",
        help="Measure only this coverage system; may be given several times (default: all of the experiment)",
    )
    group.addoption(
        "--metricbench-cached-attempts",
        action="store_true",
        help="Run no attempt: fail those that the store does not have; coverage is measured from what it has",
    )
    group.addoption(
        "--metricbench-cached-only",
        action="store_true",
        help="Run and measure nothing: the answer comes from the store, and what it does not have fails",
    )
    group.addoption(
        "--metricbench-lock",
        action="store_true",
        help="Write the lock of each named experiment anew from what it expands, and end",
    )


def _add_executor_option(group: OptionGroup) -> None:
    """What makes the attempts."""
    group.addoption(
        "--metricbench-executor",
        metavar="KIND[:MORE]",
        help="What makes the attempts.\n"
        "local: the items themselves.\n"
        "threads:N: N at a time in this process, for runners that wait.\n"
        "dask:ADDRESS or dask:FILE.json: the workers of a Dask cluster.\n"
        "dask:N: N Dask workers on this machine (default: the experiment's executor, or local)",
    )


def _add_protocol_option(group: OptionGroup) -> None:
    """How pytest runs an item."""
    group.addoption(
        "--metricbench-protocol",
        choices=CHOICES,
        default=AUTO,
        metavar="|".join(CHOICES),
        help="How pytest runs an attempt.\n"
        "auto: with one report, where no other plugin or option needs those of set-up and teardown.\n"
        "standard: always with pytest's three (default: auto)",
    )


def _add_show_option(group: OptionGroup) -> None:
    """What is shown in place of a run."""
    group.addoption(
        "--metricbench-show",
        choices=SHOWN,
        metavar="|".join(SHOWN),
        help="Print a part of what the store holds, or the plan of a run, and end without running anything.\n"
        "survivors: mutants that no task kills, and the task that comes nearest.\n"
        "matrix: every mutant at every task.\n"
        "tasks: what the baseline does at each, and which mutants it kills.\n"
        "attempts: one line each, with trial id and error.\n"
        "plan: what a run would make and reuse, and what it would take",
    )


def _add_output_options(group: OptionGroup) -> None:
    """What is written beside the store."""
    group.addoption(
        "--metricbench-nemo-bundle",
        metavar="DIR",
        help="Write one NeMo evaluator bundle a variant below this folder",
    )
    group.addoption(
        "--metricbench-html",
        metavar="FILE",
        help="Write the report as one page of HTML (needs pip install 'pytest-metricbench[report]')",
    )
    group.addoption(
        "--metricbench-compare",
        metavar="STORE_OR_SUMMARY",
        help="Say what changed against an earlier run: its store, or its summary.json",
    )
    group.addoption(
        "--metricbench-markdown",
        metavar="FILE",
        help="Write the answer as Markdown; it is added to $GITHUB_STEP_SUMMARY by itself where that is set",
    )
    group.addoption(
        "--metricbench-codequality",
        metavar="FILE",
        help="Write survivors and gates that do not hold as a GitLab code quality report",
    )


def _add_machine_options(group: OptionGroup) -> None:
    """A run on several machines."""
    group.addoption(
        "--metricbench-shard",
        metavar="I/N",
        help="Select the I-th of N parts of the attempts, the same on every machine",
    )
    group.addoption(
        "--metricbench-durations",
        metavar="FILE",
        help="Balance the parts by the durations in the attempts.jsonl of an earlier run; the same file everywhere",
    )
    group.addoption(
        "--metricbench-merge",
        nargs="+",
        default=[],
        metavar="DIR",
        help="Take over what other stores of the experiment hold before anything runs",
    )
