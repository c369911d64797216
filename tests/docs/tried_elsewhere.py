"""The blocks that the tests of all blocks cannot try as they stand: who tries them, or why nobody can.

Reviewed by hand. Each entry is looked at by tests/docs/test_every_block.py: a named test exists, a command of CI stands
there, and what nobody can run is still checked in what can be checked (options, extras, files, keys).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Elsewhere:
    """A block, or several, of a page."""

    page: str
    start: str
    """What a line of the block begins with; empty for all blocks of the page in that language."""
    language: str
    by: str = ""
    """The test that tries it: ``tests/file.py::test``."""
    in_ci: str = ""
    """The script of .ci that runs the command."""
    why: str = ""
    """Why it cannot be tried here."""
    part_of: str = ""
    """The mapping that a block of YAML without its context belongs to, by the name of its model."""


AGENTS = "tests/newuser/test_agents_page.py::test_the_experiment_of_the_page"
EXTENDING = "tests/extending/test_extending_examples.py::test_the_page_shows_the_example"
PACKAGE = "tests/extending/test_extending_examples.py::test_a_package_is_found_by_its_entry_point_in_workers_too"
MUTANTS = "tests/generating/test_mutants_page.py"
TABLES = "tests/interop_tables/test_table_pages.py"
HELIX = "tests/helix/test_helix_page.py"
STORE = "tests/durability/test_store_page.py"
KEYS = "tests/docs/test_reference_pages.py::test_the_examples_of_a_mapping_are_right_and_use_every_key"
DASK = "tests/dask_executor/test_dask_troubles.py::test_a"
HERE = "tests/docs/test_every_block.py"
NEEDS_REGISTRY = "it needs a package registry"

ELSEWHERE = (
    Elsewhere("README.md", "python3 -m venv", "sh", in_ci="run"),
    Elsewhere("docs/agents.md", "# ", "python", by=AGENTS),
    Elsewhere("docs/agents.md", "def agent(request)", "python", by=f"{HERE}::test_the_python_agent_of_the_agents_page"),
    Elsewhere(
        "docs/architecture.md",
        "flowchart TD",
        "mermaid",
        by="tests/test_architecture.py::test_the_arrows_are_the_imports",
    ),
    Elsewhere("docs/architecture.md", "flowchart LR", "mermaid", why="it draws processes, which no import shows"),
    Elsewhere("docs/audit.md", "{", "json", why="its digests are cut for the page"),
    Elsewhere("docs/audit.md", "python3.12 -m venv", "sh", why=NEEDS_REGISTRY),
    Elsewhere("docs/dask.md", "pytest experiment.yml --metricbench-executor dask:2", "sh", by=f"{DASK}_local_cluster"),
    Elsewhere(
        "docs/dask.md", "dask scheduler", "sh", by=f"{DASK}_scheduler_that_is_cut_ends_the_run_and_the_next_one_goes_on"
    ),
    Elsewhere("docs/dask.md", "sbatch", "sh", why="it needs a Slurm cluster and a Kubernetes cluster"),
    Elsewhere("docs/dask.md", "from dask_jobqueue", "python", why="it needs a Slurm cluster"),
    Elsewhere("docs/extending.md", "# conftest.py", "python", by=EXTENDING),
    Elsewhere("docs/extending.md", "runner:", "yaml", by=EXTENDING),
    Elsewhere("docs/extending.md", "# metricbench_models/", "python", by=EXTENDING),
    Elsewhere("docs/extending.md", "[project.entry-points", "toml", by=EXTENDING),
    Elsewhere("examples/extending/README.md", "pip install ./package", "sh", by=PACKAGE),
    Elsewhere("docs/harbor.md", "[agent]", "toml", why="it is Harbor's own file; its real reader runs where Harbor is"),
    Elsewhere(
        "docs/harbor.md", "from pytest_metricbench.interop", "python", by=f"{HERE}::test_imports_of_what_needs_others"
    ),
    Elsewhere("docs/helix.md", "# agent.py", "python", by=f"{HELIX}::test_the_experiment_runs"),
    Elsewhere("docs/helix.md", "# verify.py", "python", by=f"{HELIX}::test_the_experiment_runs"),
    Elsewhere("docs/helix.md", "executor:", "yaml", by=f"{HELIX}::test_the_executor_of_a_cluster_is_one"),
    Elsewhere(
        "docs/helix.md", "# platform.yaml", "yaml", by=f"{HELIX}::test_the_platforms_configuration_has_the_backend"
    ),
    Elsewhere("docs/helix.md", "uv venv", "sh", why="it starts NVIDIA's server, from a registry"),
    Elsewhere("docs/mutants.md", "cases:", "yaml", by=f"{MUTANTS}::test_the_experiment_and_the_agent_of_the_page"),
    Elsewhere(
        "docs/mutants.md", "      - id: invert-modal", "yaml", why="an entry of a lock, which nobody writes by hand"
    ),
    Elsewhere(
        "docs/mutants.md", "import json", "python", by=f"{MUTANTS}::test_the_experiment_and_the_agent_of_the_page"
    ),
    Elsewhere(
        "docs/mutants.md", "# conftest.py", "python", by=f"{MUTANTS}::test_the_operator_and_the_generator_of_the_page"
    ),
    Elsewhere("docs/nemo.md", "runner:", "yaml", part_of="RecordedRunner", why="a part of the runner's keys"),
    Elsewhere("docs/nemo.md", "from nhx_evals_sdk", "python", why="it needs NVIDIA's SDK"),
    Elsewhere("docs/reference/keys.md", "", "yaml", by=KEYS),
    Elsewhere("docs/reference/hooks.md", "", "python", by=f"{HERE}::test_the_examples_of_the_hooks"),
    Elsewhere("docs/scale.md", "pytest tests/", "sh", in_ci="full"),
    Elsewhere("docs/start.md", "pytest --metricbench-init", "sh", by="tests/starting/test_start_examples.py"),
    Elsewhere("docs/statistics.md", "pytest -p metricbench examples", "sh", in_ci="run"),
    Elsewhere("docs/store.md", "jq", "sh", by=f"{STORE}::test_commands"),
    Elsewhere("docs/store.md", "import pandas", "python", by=f"{STORE}::test_pandas"),
    Elsewhere("docs/store.md", "from pytest_metricbench", "python", by=f"{STORE}::test_open_store"),
    Elsewhere("docs/suite.md", "      - id: Replace", "yaml", why="an entry of a lock, which nobody writes by hand"),
    Elsewhere("docs/summary.md", "jq", "sh", by=f"{HERE}::test_the_jq_of_the_summary_page"),
    Elsewhere("docs/tables.md", "variant,task", "csv", by=f"{TABLES}::test_one_file_and_ten_lines"),
    Elsewhere("docs/tables.md", "question,", "csv", by=f"{TABLES}::test_the_table_with_a_column_a_variant"),
    Elsewhere("docs/testing.md", "pytest -n 2", "sh", why="it runs all tests, of which this one would be one"),
    Elsewhere("docs/tutorial.md", "", "sh", by="tests/docs/test_tutorial.py::test_the_tutorial"),
    Elsewhere("docs/tutorial.md", "", "diff", by="tests/docs/test_tutorial.py::test_the_change_fits_the_verifier"),
    Elsewhere(
        "docs/usage.md", "[pytest]", "ini", by="tests/help/test_ini_twins.py::test_the_ini_file_of_the_usage_page"
    ),
    Elsewhere("docs/usage.md", "until", "sh", by=f"{HERE}::test_until_the_budget_suffices"),
    Elsewhere("docs/usage.md", "from pytest_metricbench", "python", by=f"{HERE}::test_the_stages_of_the_usage_page"),
    Elsewhere("docs/validity/README.md", "python docs/validity", "sh", by="tests/validity/test_validity.py"),
    Elsewhere("examples/harbor/README.md", "METRICBENCH_HARBOR", "sh", in_ci="run"),
    Elsewhere(
        "examples/harbor/README.md", "pytest -p metricbench examples/harbor/with_docker", "sh", why="it needs Docker"
    ),
    Elsewhere("examples/harbor/README.md", "pip install", "sh", in_ci="run"),
    Elsewhere("examples/own_project/README.md", "pytest -p metricbench", "sh", in_ci="run"),
    Elsewhere("examples/self/README.md", "pytest -p metricbench", "sh", in_ci="run"),
    Elsewhere("examples/own_project/README.md", "$EDITOR", "sh", why="it is done by hand"),
    Elsewhere("examples/support_agent/README.md", "pytest -p metricbench examples", "sh", in_ci="run"),
    Elsewhere("examples/toolz/README.md", "pytest -p metricbench", "sh", by="tests/examples/test_toolz_example.py"),
    Elsewhere(
        "examples/toolz/README.md", "    mutants:", "yaml", part_of="CaseForm", why="the generator's keys are left out"
    ),
)
