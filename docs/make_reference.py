"""Writes the pages of docs/reference from the models, options, hooks and public names of the package.

    python docs/make_reference.py

The same with METRICBENCH_WRITE_DOCS=1 and tests/docs/test_reference_pages.py, which otherwise fails where a page is not
what the code says.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from making import api, fields, hooks, keys, options

FOLDER: Final = Path(__file__).resolve().parent / "reference"

PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "keys.md": keys.page,
    "options.md": options.page,
    "hooks.md": hooks.page,
    "api.md": api.page,
    "summary-fields.md": fields.page,
}
"""Name of a page -> its text."""


def main() -> None:
    """Write all pages."""
    fields.write_examples()
    FOLDER.mkdir(exist_ok=True)
    for name, text in PAGES.items():
        (FOLDER / name).write_text(text(), encoding="utf-8")
        print(f"docs/reference/{name}")


if __name__ == "__main__":
    main()
