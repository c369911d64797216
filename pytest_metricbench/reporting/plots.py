"""Pictures of coverage against a mutation score: one mark a subset, as SVG that needs neither styles nor scripts."""

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.reporting.plots_svg import FOREGROUND, embedded_svg

MARKS: Final = (("o", "●"), ("s", "■"), ("^", "▲"), ("D", "◆"), ("v", "▼"), ("P", "✚"), ("X", "✖"), ("*", "★"))
"""matplotlib's name of each mark, and the character that stands for it in a legend. After the last the first again."""
_RAMP: Final = ((14, 148, 160), (124, 92, 232), (219, 92, 20))
"""Red, green and blue of the smallest, the middle and the largest size: each at least 3:1 against white and against
the dark page (WCAG 2.2, 1.4.11)."""
_NAMES_IN_TITLE: Final = 12
_WIDTH: Final = 5.2
_HEIGHT: Final = 4.0
"""Inches; 72 units of the picture each."""
_EDGE: Final = 0.04
_STYLE: Final[dict[str, Any]] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "metricbench",
    "font.size": 10.0,
    "axes.edgecolor": FOREGROUND,
    "axes.labelcolor": FOREGROUND,
    "text.color": FOREGROUND,
    "xtick.color": FOREGROUND,
    "ytick.color": FOREGROUND,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "text.parse_math": False,
}


@dataclass(frozen=True, slots=True)
class Point:
    """A subset in a picture: its coverage and its mutation score, its size in tasks, and whose it is."""

    x: float
    y: float
    size: int
    case: str
    subset: str


def size_colours(sizes: Sequence[int]) -> dict[int, str]:
    """A colour for each size, as ``#rrggbb``: in their order from teal to orange, evenly apart."""
    ordered = sorted(set(sizes))
    last = max(len(ordered) - 1, 1)
    return {size: _between(index / last) for index, size in enumerate(ordered)}


def case_marks(cases: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The mark of each case: one of :data:`MARKS`."""
    return {case: MARKS[index % len(MARKS)] for index, case in enumerate(cases)}


def scatter_svg(
    points: Sequence[Point], *, cases: Sequence[str], score: str, bounded: bool, name: str, title: str, description: str
) -> str:
    """A scatter of subsets: coverage to the right, mutation score upwards.

    Subsets of one case and size with equal values are one mark, the larger the more they are; each mark has the names
    of its subsets as its title, which browsers show on hover.

    Args:
        points: the subsets that have both values.
        cases: all cases, in order; the mark of a case is the same in every picture.
        score: what stands at the axis that goes upwards.
        bounded: the score is a share, so that the axis is from 0 to 1.
        name: of the picture; the ids in it start with it.
        title: what the picture is, in a few words, for those who do not see it.
        description: what is to be seen in it.

    Returns:
        An ``<svg>`` element for a page of HTML.
    """
    merged = _merged(points)
    written = io.StringIO()
    with warnings.catch_warnings():  # of matplotlib's own, when it is imported, and of a user's settings
        warnings.simplefilter("ignore")
        from matplotlib import style
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        with style.context(["default", _STYLE]):
            figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="tight")
            FigureCanvasSVG(figure)
            axes = figure.add_subplot()
            _draw_axes(axes, score, bounded=bounded)
            titles = _draw_points(axes, merged, cases)
            figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    return embedded_svg(written.getvalue(), name=name, title=title, description=description, titles=titles)


def _merged(points: Sequence[Point]) -> dict[Point, list[str]]:
    """Marks with the names of their subsets: of those that would lie on each other only one is drawn."""
    merged: dict[Point, list[str]] = {}
    for point in points:
        merged.setdefault(Point(point.x, point.y, point.size, point.case, ""), []).append(point.subset)
    return merged


def _draw_axes(axes: Any, score: str, *, bounded: bool) -> None:
    axes.set_xlabel("coverage")
    axes.set_ylabel(score)
    axes.set_xlim(-_EDGE, 1 + _EDGE)
    if bounded:
        axes.set_ylim(-_EDGE, 1 + _EDGE)
    axes.grid(visible=True, color=FOREGROUND, alpha=0.14, linewidth=0.6)
    axes.set_axisbelow(True)


def _draw_points(axes: Any, merged: dict[Point, list[str]], cases: Sequence[str]) -> dict[str, str]:
    """Draw the marks, large ones first. Returns the title of each group of the picture."""
    colours, marks = size_colours([point.size for point in merged]), case_marks(cases)
    titles = {}
    for index, (point, names) in enumerate(sorted(merged.items(), key=lambda entry: -len(entry[1]))):
        gid = f"mark-{index}"
        axes.plot(
            [point.x],
            [point.y],
            marker=marks[point.case][0],
            markersize=min(5.5 + 1.2 * (len(names) - 1) ** 0.5, 16),
            color=colours[point.size],
            markeredgecolor=FOREGROUND,
            markeredgewidth=0.3,
            alpha=0.8,
            linestyle="none",
            gid=gid,
            clip_on=False,
        )
        titles[gid] = _title(point, names, several=len(cases) > 1)
    return titles


def _title(point: Point, names: list[str], *, several: bool) -> str:
    of_case = f" of {point.case}" if several else ""
    shown = f"{first_names(names, _NAMES_IN_TITLE)}{of_case}"
    return f"{shown}: size {point.size}, coverage {point.x:.3g}, score {point.y:.3g}"


def _between(share: float) -> str:
    """The colour at a share of the way along the ramp."""
    position = share * (len(_RAMP) - 1)
    low = min(int(position), len(_RAMP) - 2)
    part = position - low
    channels = (round(a + (b - a) * part) for a, b in zip(_RAMP[low], _RAMP[low + 1], strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in channels)
