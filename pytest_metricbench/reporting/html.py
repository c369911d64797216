"""The report as one page of HTML: it opens offline, needs no script, and prints.

Whatever comes from an experiment or an attempt is escaped by the templates. The page forbids itself, by a policy of its
own, everything but its one style sheet and its one script, both known by their digests.
"""

import base64
import hashlib
import importlib.util
import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_metricbench.analysis.figures import whole_text
from pytest_metricbench.analysis.results import Results
from pytest_metricbench.analysis.summary import CaseSummary, Summary
from pytest_metricbench.analysis.variant_models import VariantSummary
from pytest_metricbench.definition.experiment import BASELINE, Case
from pytest_metricbench.messages import counted
from pytest_metricbench.plain_files import write_whole
from pytest_metricbench.reporting.amounts import amount_text, duration_text
from pytest_metricbench.reporting.coverage_sentences import p_text
from pytest_metricbench.reporting.html_attempts import MOST_ATTEMPTS, ShownAttempt, TaskRow, attempts_legend, task_rows
from pytest_metricbench.reporting.html_changes import changes_view
from pytest_metricbench.reporting.html_costs import Costs, case_costs
from pytest_metricbench.reporting.html_coverage import comparison_rows, system_views
from pytest_metricbench.reporting.html_diffs import Diff, mutant_diffs
from pytest_metricbench.reporting.html_kills import Matrix, kill_matrix_view
from pytest_metricbench.reporting.html_origin import Origin
from pytest_metricbench.reporting.html_unavailable import unavailable_figures
from pytest_metricbench.reporting.html_words import case_headline, headline, shown
from pytest_metricbench.reporting.layout import two_digits, with_interval
from pytest_metricbench.reporting.terminal import gate_value

if TYPE_CHECKING:
    from jinja2 import Environment

_NEEDED: Final = ("jinja2", "matplotlib")
_TEMPLATES: Final = "templates"
_PICTURES: Final = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"},
    0x7F: 0x2421,
    **dict.fromkeys((*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD),
}
"""Control characters (C0, C1, and those of bidirectional text) -> what is shown in their place."""


class HtmlError(Exception):
    """A page that cannot be written; the message says why, and what to do."""


def check_html_possible(path: Path) -> None:
    """See that a page can be written, before anything runs for it.

    Raises:
        HtmlError: the extra is not installed, the folder is missing or cannot be written, or a folder has the name.
    """
    _require_extra()
    if path.is_dir():
        raise HtmlError(f"{path} is a folder; name a file in it")
    folder = path.parent
    if not folder.is_dir():
        raise HtmlError(f"the folder {folder} does not exist; make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise HtmlError(f"the folder {folder} cannot be written")


def _require_extra() -> None:
    missing = [name for name in _NEEDED if not _is_importable(name)]
    if missing:
        raise HtmlError(f"{' and '.join(missing)} cannot be imported; pip install 'pytest-metricbench[report]'")


def _is_importable(name: str) -> bool:
    """Whether a module is there: found, not run, since this is asked at the start of every run with a page."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def page_path(path: Path, experiment: str, *, several: bool) -> Path:
    """Where an experiment's page goes: the file that was named, or one beside it for each of several experiments.

    ``report.html`` is ``report-refund-agent.html`` for the experiment ``refund-agent`` of several.
    """
    return path.with_name(f"{path.stem}-{experiment}{path.suffix}") if several else path


def write_html(path: Path, results: Results, summary: Summary, origin: Origin) -> None:
    """Write the page, whole or not at all.

    Args:
        path: the file; its folder is there.
        results: the attempts behind the summary.
        summary: the answer.
        origin: where it comes from, from :func:`~pytest_metricbench.reporting.html_origin.origin_of`.

    Raises:
        HtmlError: the extra is not installed, or the file cannot be written.
    """
    text = html_page(results, summary, origin)
    try:
        write_whole(path, text)
    except OSError as error:
        raise HtmlError(f"{path} cannot be written: {error.strerror}") from None


@dataclass(frozen=True, slots=True)
class CaseView:
    """A case as the template shows it."""

    id: str
    case: CaseSummary
    lines: list[str]
    """Its headline, where there are several cases."""
    matrix: Matrix | None
    diffs: dict[str, list[Diff]]
    """Mutant -> what it changes; of the mutants that are described on the page."""
    tasks: list[TaskRow]
    legend: list[ShownAttempt]
    """One of each outcome that the strips show."""
    listed: bool
    """Every attempt is listed, not only the baseline's."""
    variants: list[tuple[str, VariantSummary]]
    ks: list[str]
    costs: Costs


def html_page(results: Results, summary: Summary, origin: Origin) -> str:
    """The text of the page.

    Raises:
        HtmlError: the extra is not installed.
    """
    _require_extra()
    style, script = _file("report.css"), _file("report.js")
    page = (
        _environment()
        .get_template("report.html")
        .render(
            summary=summary,
            origin=origin,
            headline=headline(summary),
            cases=[_case_view(results, summary, case) for case in results.experiment.cases],
            changes=changes_view(summary),
            systems=system_views(summary),
            comparisons=comparison_rows(summary),
            unavailable=unavailable_figures(summary),
            style=style,
            script=script,
            style_digest=_digest(style),
            script_digest=_digest(script),
            most_attempts=MOST_ATTEMPTS,
            single=len(summary.cases) == 1,
        )
    )
    return str(whole_text(page))


def _case_view(results: Results, summary: Summary, case: Case) -> CaseView:
    found = summary.cases[case.id]
    survivors = {survivor.mutant for survivor in found.survivors}
    tasks = task_rows(results, summary, case)
    return CaseView(
        id=case.id,
        case=found,
        lines=case_headline(found, summary.settings) if len(summary.cases) > 1 else [],
        matrix=kill_matrix_view(found),
        diffs={
            mutant.id: mutant_diffs(results.experiment, case, mutant)
            for mutant in case.mutants
            if mutant.id in survivors
        },
        tasks=tasks,
        legend=attempts_legend(tasks),
        listed=summary.counts.declared <= MOST_ATTEMPTS,
        variants=list(found.variants.items()),
        ks=list(found.variants[BASELINE].pass_at_k.get(summary.settings.primary, {})),
        costs=case_costs(results, case),
    )


def _environment() -> "Environment":
    """The templates, escaping whatever they show; a name that is not there is an error, never an empty text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("pytest_metricbench.reporting", _TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "digits": two_digits,
        "figure": shown,
        "p": p_text,
        "counted": counted,
        "amount": amount_text,
        "seconds": duration_text,
        "gate_value": gate_value,
        "percent": _hundredths,
    }
    environment.globals |= {"with_interval": with_interval}
    return environment


def _visible(value: object) -> object:
    """A text whose control characters are the pictures that Unicode has of them, so that none of them acts on a page.

    A carriage return would become a newline, and a null character vanish; marks that turn the direction of writing
    round could make a text read as another one.
    """
    return value.translate(_PICTURES) if isinstance(value, str) and not value.isprintable() else value


def _hundredths(value: float) -> str:
    """A share as a coordinate of a picture that is a hundred units wide."""
    return f"{100 * min(max(value, 0.0), 1.0):.1f}"


def _file(name: str) -> str:
    return (resources.files("pytest_metricbench.reporting") / _TEMPLATES / name).read_text("utf-8")


def _digest(text: str) -> str:
    """How a content security policy names an inline element (CSP Level 3, section 2.3.1, hash-source)."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
