"""The part of the terminal section that is about one case: variants, kills, blind spots, sizes, correlation."""

from collections.abc import Callable, Sequence
from string import ascii_letters
from typing import Final

from pytest_metricbench.analysis.figures import Correlation, Figure, MeanFigure
from pytest_metricbench.analysis.summary import CaseSummary, Settings, VariantSummary
from pytest_metricbench.definition.experiment import BASELINE, MutationScore
from pytest_metricbench.reporting.layout import (
    UNAVAILABLE,
    Align,
    Line,
    block,
    counted,
    fitting,
    line,
    listing,
    named,
    shortened,
    table,
    two_digits,
    with_interval,
)

MOST_VARIANTS: Final = 12
"""Mutants that the table of variants holds; of more, the worst and the best five."""
ENDS: Final = 5
MOST_LISTED: Final = 8
"""Names of a list that are shown."""
_ID_WIDTH: Final = 24
_SCORES: Final[dict[MutationScore, str]] = {"kill_share": "kill share", "mean_drop": "mean drop"}
_METHODS: Final[tuple[tuple[str, Callable[[Correlation], Figure]], ...]] = (
    ("Kendall tau-b", lambda found: found.kendall),
    ("Spearman", lambda found: found.spearman),
    ("Pearson", lambda found: found.pearson),
)


def case_block(name: str, case: CaseSummary, settings: Settings, width: int) -> list[Line]:
    """Everything the terminal says of one case, blocks separated by empty lines."""
    blocks = [
        case_headline(name, case, width),
        variants_table(name, case, settings, width),
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
    return [
        line(("case ", ""), (name, "bold"), f": {parts[0]}, {' + '.join(parts[1:])}{aside}"),
        *block_text(attempts_text(case), width),
    ]


def attempts_text(owner: CaseSummary | VariantSummary) -> str:
    """Attempts by what became of them; kinds that did not happen are left out."""
    counts = owner.counts
    kinds = ("passed", "missed", "died", "unmeasured", "missing", "outside")
    parts = [f"{getattr(counts, kind):,} {kind}" for kind in kinds if getattr(counts, kind)]
    reused = f" ({counts.reused:,} reused)" if counts.reused else ""
    return f"{counted(counts.declared, 'attempt')}: {', '.join(parts)}{reused}"


def block_text(text: str, width: int) -> list[Line]:
    """One text without a label, wrapped."""
    return [line(found.text.strip()) for found in block("", [text], width + 16)]


# ---------------------------------------------------------------- variants


def variants_table(name: str, case: CaseSummary, settings: Settings, width: int) -> list[Line]:
    """Verdicts and pass@k of the primary score, one variant a line."""
    shown, left_out = _shown_variants(case, settings)
    words = ["solved", "flaky", "failed"]
    words += [
        word
        for word in ("unmeasured", "outside")
        if any(getattr(variant.verdicts, word) for variant in case.variants.values())
    ]
    columns: list[list[str]] = [["variant", *(shortened(_label(name_, case), _ID_WIDTH) for name_ in shown)]]
    columns += [[word, *(str(getattr(case.variants[v].verdicts, word)) for v in shown)] for word in words]
    ks = list(case.variants[BASELINE].pass_at_k.get(settings.primary, {}))
    columns += [[f"pass@{k}", *(_pass_cell(case, v, settings.primary, k, index == 0) for v in shown)]
                for index, k in enumerate(ks)]
    fit = fitting(columns, width)
    aligns: list[Align] = ["<", *([">"] * len(words)), *(["<"] * len(ks))]
    rows = table(list(zip(*columns[:fit], strict=True)), aligns[:fit])
    lines = [line((rows[0], "bold")), *(line(row) for row in rows[1:])]
    if left_out:
        cut = ENDS + 2
        text = f"{'..':<4}{left_out} more mutants between these: summary.json, cases.{name}.variants"
        lines.insert(cut, line((shortened(text, width), "light")))
    if fit < len(columns):
        lines.append(line((f"    {', '.join(column[0] for column in columns[fit:])}: in summary.json", "light")))
    return lines


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


def _label(name: str, case: CaseSummary) -> str:
    variant = case.variants[name]
    if not variant.valid:
        return f"{shortened(name, _ID_WIDTH - 10)} (invalid)"
    return name


def _pass_cell(case: CaseSummary, variant: str, score: str, k: str, detailed: bool) -> str:
    """pass@k with its interval, and with the number of tasks behind it where that is not all of them."""
    figure: MeanFigure = case.variants[variant].pass_at_k[score][k]
    text = with_interval(figure.value, figure.interval) if detailed else two_digits(figure.value)
    if figure.value is not None and figure.count < len(case.tasks):
        return f"{text} of {figure.count}"
    return text


# ---------------------------------------------------------------- kills


def kill_table(case: CaseSummary, width: int) -> list[Line]:
    """Mutants against tasks, where there are few enough of both; nothing otherwise."""
    tasks = list(case.tasks)
    ids = min(max((len(mutant) for mutant in case.kills), default=0), _ID_WIDTH)
    spaced = ids + 2 + 2 * len(tasks) <= width
    if not case.kills or len(case.kills) > MOST_VARIANTS or len(tasks) > 26 or ids + 2 + len(tasks) > width:
        return []
    between = " " if spaced else ""
    signs = {"killed": "x", "survived": ".", "missing": "?", "not_reached": "-"}
    used = {state for states in case.kills.values() for state in states.values()}
    head = f"{'kills':<{ids}}  {between.join(ascii_letters[: len(tasks)])}"
    legend = "   ".join(f"{sign} {word}" for word, sign in signs.items() if word in used)
    lines = [line((head, "bold"))]
    for mutant, states in case.kills.items():
        row = between.join(signs[states[task]] for task in tasks)
        lines.append(line(f"{shortened(mutant, ids):<{ids}}  {row}"))
    keys = [f"{letter} {shortened(task, _ID_WIDTH)}" for letter, task in zip(ascii_letters, tasks, strict=False)]
    return [*lines, *(line((text, "light")) for text in (legend, *_flowing(keys, width)))]


def _flowing(texts: Sequence[str], width: int) -> list[str]:
    """Short texts in as few lines as they need, as columns of one width."""
    column = max(len(text) for text in texts) + 2
    per_line = max(width // column, 1)
    return [
        "".join(f"{text:<{column}}" for text in texts[start : start + per_line]).rstrip()
        for start in range(0, len(texts), per_line)
    ]


def score_block(name: str, case: CaseSummary, width: int) -> list[Line]:
    """The mutation score of the pool, what weakens it, and the blind spots."""
    if not case.kills:
        return []
    groups = case.mutants
    lines = block("mutation score", _score_texts(case), width, "bold")
    lines += _names("invalid", groups.invalid, "every attempt died", width)
    lines += _names("unmeasured", groups.unmeasured, "no task says anything of them", width)
    if case.survivors:
        shown = case.survivors[:MOST_LISTED]
        pairs = [(survivor.mutant, survivor.description) for survivor in shown]
        texts = named(pairs, width)
        if len(case.survivors) > len(shown):
            texts.append(f"and {len(case.survivors) - len(shown)} more: summary.json, cases.{name}.survivors")
        lines += listing("survived", texts, width, "yellow")
    lines += _names("kills nothing", case.kill_nothing, "", width)
    return lines


def _score_texts(case: CaseSummary) -> list[str]:
    share, drop = case.pool.kill_share, case.pool.mean_drop
    if share.value is None:
        texts = [f"{UNAVAILABLE}: {share.reason}"]
    else:
        interval = with_interval(share.value, share.interval)
        texts = [f"{share.killed} of {counted(share.mutants, 'valid mutant')} killed = {interval}"]
        if share.missing_cells:
            texts.append(f"{counted(share.missing_cells, 'cell')} missing: neither killed nor survived")
    if drop.value is not None:
        texts.append(f"mean drop of the pass rate {two_digits(drop.value)}")
    also = share.with_equivalents
    if case.mutants.equivalent and also.value is not None:
        number = counted(len(case.mutants.equivalent), "equivalent mutant")
        texts.append(f"with {number}: {also.killed} of {also.mutants} = {two_digits(also.value)}")
    if case.died_kills.kills:
        only = f"; {', '.join(case.died_kills.mutants[:3])} only by such" if case.died_kills.mutants else ""
        texts.append(f"{len(case.died_kills.kills)} of {counted(case.died_kills.total, 'kill')} would not stand "
                     f"without attempts that died{only}")
    false = case.false_kills
    if false.cell_rate.value is not None:
        texts.append(f"false kills: {false.killed_cells} of {counted(false.cells, 'cell')} of "
                     f"{counted(false.controls, 'control')} = {with_interval(false.cell_rate.value, false.cell_rate.interval)}")
    return texts


def _names(label: str, names: Sequence[str], meaning: str, width: int) -> list[Line]:
    if not names:
        return []
    shown = ", ".join(names[:MOST_LISTED])
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return block(label, [f"{shown}{more}{': ' if meaning else ''}{meaning}"], width)


# ---------------------------------------------------------------- sizes and correlation


def sizes_table(case: CaseSummary, width: int) -> list[Line]:
    """Means over the subsets of each size: what they kill, and what they cover."""
    if not case.sizes:
        return []
    sizes = list(case.sizes.items())
    columns = [
        ["subsets of size", *(f"{size:>2} ({found.subsets})" for size, found in sizes)],
        ["kill share", *(_spread(found.kill_share) for _, found in sizes)],
        ["mean drop", *(two_digits(found.mean_drop.value) for _, found in sizes)],
    ]
    for system in case.pool.coverage:
        columns.append([f"coverage {system}", *(two_digits(found.coverage[system].value) for _, found in sizes)])
    if not case.kills:
        del columns[1:3]
    pool = [two_digits(found.value) for found in (case.pool.kill_share, case.pool.mean_drop)] if case.kills else []
    pool += [two_digits(figure.value) for figure in case.pool.coverage.values()]
    for column, cell in zip(columns, [f"the pool, {len(case.tasks)}", *pool], strict=True):
        column.append(cell)
    fit = fitting(columns, width)
    aligns: list[Align] = ["<", "<", *([">"] * len(columns))]
    rows = table(list(zip(*columns[:fit], strict=True)), aligns[:fit])
    lines = [line((rows[0], "bold")), *(line(row) for row in rows[1:])]
    if fit < len(columns):
        lines.append(line((f"    {', '.join(column[0] for column in columns[fit:])}: in summary.json", "light")))
    return lines
