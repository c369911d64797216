"""``python -m pytest_metricbench``: what needs no pytest session."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand and return the exit status: 0, or 4 where what was asked for cannot be done."""
    from pytest_metricbench.starting.finding import KINDS
    from pytest_metricbench.starting.placing import StartError
    from pytest_metricbench.starting.schemas import FORMATS, schema_of
    from pytest_metricbench.starting.start import BY_COMMAND, start

    parser = argparse.ArgumentParser(prog="python -m pytest_metricbench", description="Benchmark cases as tests.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    init = commands.add_parser(
        "init",
        help="write a first experiment",
        description="Write a first experiment into a folder: about what is in it (an agent, a Harbor dataset, tests, "
        "a table of results), or an example to copy where there is nothing. No file is overwritten.",
    )
    init.add_argument("folder", nargs="?", default=".", metavar="DIR", help="where it goes (default: this folder)")
    init.add_argument("--kind", metavar="|".join(KINDS), help="what it is about (default: what is found in DIR)")
    schema = commands.add_parser(
        "schema",
        help="print a JSON Schema: of experiment files, of the store's journals, of summary.json",
        description="Print the JSON Schema of experiment files, for an editor, or of what a run leaves: a line of "
        "attempts.jsonl or coverage.jsonl, or summary.json. Of this version, without plugins.",
    )
    schema.add_argument("form", nargs="?", default=FORMATS[0], choices=FORMATS, help=f"of what (default: {FORMATS[0]})")
    given = parser.parse_args(arguments)
    if given.command == "schema":
        print(schema_of(given.form), end="")
        return 0
    try:
        lines = start(given.folder, Path.cwd(), given.kind, BY_COMMAND)
    except StartError as error:
        print(f"metricbench: {error}", file=sys.stderr)
        return 4
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
