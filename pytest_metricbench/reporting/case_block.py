"""The part of the terminal section that is about one case, and what it says of the variants."""

from typing import Final

from pytest_metricbench.analysis.figures import MeanFigure
from pytest_metricbench.analysis.summary import CaseSummary, Settings
from pytest_metricbench.analysis.unavailable import briefly
from pytest_metricbench.analysis.variant_models import Counts, Verdicts
from pytest_metricbench.definition.experiment import BASELINE
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.messages import counted
from pytest_metricbench.reporting.coverage_block import correlation_table, sizes_table, unavailable_block
from pytest_metricbench.reporting.kill_block import kill_table, score_block
from pytest_metricbench.reporting.layout import (
    Column,
    Line,
    block,
    cut_apart,
    fitting,
    line,
    one_line,
    paragraph,
    shortened,
    table,
    two_digits,
    with_interval,
)

MOST_VARIANTS: Final = 14
"""Mutants that the table of variants holds; of more, the worst and the best five."""
ENDS: Final = 5
MOST_DEATHS: Final = 3
MOST_OF_MESSAGE: Final = 240
_ID_WIDTH: Final = 24
_SHORT_ID_WIDTH: Final = 16


def case_block(name: str, case: CaseSummary, settings: Settings, width: int) -> list[Line]:
    """Everything the terminal says of one case, blocks separated by empty lines."""
    blocks = [
        case_headline(name, case, width),
        variants_table(name, case, settings, width),
        deaths_block(name, case, width),
        notes_block(case, width),
        kill_table(case, width),
        score_block(name, case, width),
        sizes_table(case, width),
        correlation_table(case, settings.mutation_score, width),
        unavailable_block(case, settings, width),
    ]
    lines: list[Line] = []
    for found in blocks:
        if found:
            lines += [Line(), *found] if lines else found
    return lines


def case_headline(name: str, case: CaseSummary, width: int) -> list[Line]:
    """What the case is made of, and what became of its attempts."""
    mutants = sum(1 for variant in case.variants.values() if variant.kind == "mutant" and not variant.control)
    controls = len(case.mutants.controls)
    parts = [counted(len(case.tasks), "task"), "baseline"]
    parts += [counted(mutants, "mutant")] if mutants else []
    parts += [counted(controls, "control")] if controls else []
    each, rest = divmod(case.counts.declared, len(case.tasks) * len(case.variants))
    aside = "" if rest else f", {counted(each, 'attempt')} each"
    made_of = f"{parts[0]}, {' + '.join(parts[1:])}{aside}"
    fits = len(f"case {name}: {made_of}") <= width
    head = [line("case ", (name, "bold"), f": {made_of}")] if fits else paragraph(f"case {name}: {made_of}", width)
    return [*head, *paragraph(attempts_text(case.counts), width)]


def attempts_text(counts: Counts) -> str:
    """Attempts by what became of them; kinds that did not happen are left out."""
    kinds = ("passed", "missed", "died", "not_reached", "not_needed", "unmeasured", "missing", "outside")
    parts = [f"{getattr(counts, kind):,} {kind.replace('_', ' ')}" for kind in kinds if getattr(counts, kind)]
    reused = f" ({counts.reused:,} reused)" if counts.reused else ""
    return f"{counted(counts.declared, 'attempt')}: {', '.join(parts)}{reused}"


def deaths_block(name: str, case: CaseSummary, width: int) -> list[Line]:
    """Why attempts died: of each of the most frequent errors how many, and what the first says."""
    texts = []
    for death in case.deaths[:MOST_DEATHS]:
        said = one_line(briefly(death.message))
        who = f"{first_names(death.variants, 3)}: {counted(death.attempts, 'attempt')}"
        texts.append(f"{who}, {one_line(death.type)}: {shortened(said, MOST_OF_MESSAGE)} ({death.first})")
    if len(case.deaths) > MOST_DEATHS:
        texts.append(f"and {len(case.deaths) - MOST_DEATHS} more kinds: summary.json, cases.{name}.deaths")
    return block("died", texts, width, "yellow")


def notes_block(case: CaseSummary, width: int) -> list[Line]:
    """What was decided while recorded results were read, and how often."""
    return block("read", [f"{note.count:,} {one_line(note.text)}" for note in case.notes], width, "yellow")


# ---------------------------------------------------------------- variants


def variants_table(name: str, case: CaseSummary, settings: Settings, width: int) -> list[Line]:
    """Verdicts and pass@k of the primary score, one variant a line.

    Where not everything fits, names are shortened first; then the last columns go, and the interval of pass@k last.
    """
    shown, left_out = _shown_variants(case, settings)
    verdicts = _verdict_columns(case, shown)
    for id_width, detailed in ((_ID_WIDTH, True), (_SHORT_ID_WIDTH, True), (_SHORT_ID_WIDTH, False)):
        names = Column("variant", _labels(shown, case, id_width), "<")
        means = _pass_columns(case, shown, settings.primary, detailed)
        columns = [names, *verdicts, *means]
        fit = len(fitting(columns, width))
        if fit == len(columns) or (id_width < _ID_WIDTH and fit > len(columns) - len(means)):
            break
    between = f"{counted(left_out, 'more mutant')} between these: summary.json, cases.{name}.variants"
    lines = table(columns, width, (1 + ENDS, between) if left_out else None)
    if any(" /" in cell for column in fitting(columns, width) if "@" in column.head for cell in column.cells):
        lines += paragraph(f"/n: over n of {counted(len(case.tasks), 'task')}", width, "light")
    others = [score for score in case.variants[BASELINE].pass_at_k if score != settings.primary]
    if others:
        text = f"pass@k of {settings.primary}; of {first_names(others, 4)}: summary.json"
        lines += paragraph(text, width, "light")
    return lines


def _verdict_columns(case: CaseSummary, shown: list[str]) -> list[Column]:
    """Tasks by verdict; of the last two, those that there are."""
    words = [
        word
        for word in Verdicts.model_fields
        if word in ("solved", "flaky", "failed") or any(getattr(v.verdicts, word) for v in case.variants.values())
    ]
    return [
        Column(word, [str(getattr(case.variants[name].verdicts, word)) for name in shown], gap=1 if index else 2)
        for index, word in enumerate(words)
    ]


def _shown_variants(case: CaseSummary, settings: Settings) -> tuple[list[str], int]:
    """The baseline and every mutant in the order of the file; of many, the worst and the best by pass@k."""
    mutants = [name for name, variant in case.variants.items() if variant.kind == "mutant"]
    if len(mutants) <= MOST_VARIANTS:
        return [BASELINE, *mutants], 0

    def quality(name: str) -> float:
        figures = list(case.variants[name].pass_at_k.get(settings.primary, {}).values())
        return figures[0].value if figures and figures[0].value is not None else 2.0

    ranked = sorted(mutants, key=quality)
    return [BASELINE, *ranked[:ENDS], *ranked[-ENDS:]], len(mutants) - 2 * ENDS


def _labels(names: list[str], case: CaseSummary, width: int) -> list[str]:
    invalid = " (invalid)"
    return [
        short if case.variants[name].valid else f"{shortened(name, width - len(invalid))}{invalid}"
        for name, short in zip(names, cut_apart(names, width), strict=True)
    ]


def _pass_columns(case: CaseSummary, shown: list[str], score: str, detailed: bool) -> list[Column]:
    """pass@k for each k; the first with its interval where ``detailed``."""
    ks = list(case.variants[BASELINE].pass_at_k.get(score, {}))
    return [
        Column(
            f"pass@{k}",
            [
                _pass_cell(case.variants[name].pass_at_k[score][k], len(case.tasks), detailed and k == ks[0])
                for name in shown
            ],
            "<",
        )
        for k in ks
    ]


def _pass_cell(figure: MeanFigure, tasks: int, detailed: bool) -> str:
    """pass@k, and the number of tasks behind it where that is not all of them."""
    text = with_interval(figure.value, figure.interval) if detailed else two_digits(figure.value)
    return f"{text} /{figure.count}" if figure.value is not None and figure.count < tasks else text
