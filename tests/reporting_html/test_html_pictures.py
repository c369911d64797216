"""The pictures by themselves: independent of a user's settings, of fonts and of what subsets are called."""

import re
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.reporting.plots import MARKS, Point, case_marks, scatter_svg, size_colours
from pytest_metricbench.reporting.plots_svg import embedded_svg
from tests.reporting_html.html_lab import read

POINTS = [Point(0.1, 0.2, 3, "a", "s1"), Point(0.5, 0.9, 6, "b", "s2"), Point(0.5, 0.9, 6, "b", "s3")]


def picture(points: list[Point] = POINTS, *, bounded: bool = True, name: str = "p") -> str:
    cases = sorted({point.case for point in points})
    return scatter_svg(
        points,
        cases=cases,
        score="kill share",
        bounded=bounded,
        name=name,
        title="A title",
        description="What it shows",
    )


def test_a_users_own_settings_do_not_show() -> None:
    import matplotlib as mpl

    usual = picture()
    with mpl.rc_context({"text.usetex": True, "font.size": 40, "axes.facecolor": "red", "svg.fonttype": "path"}):
        assert picture() == usual


def test_it_leaves_matplotlib_as_it_was() -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    picture()
    assert dict(mpl.rcParams) == before


def test_it_needs_no_window_system() -> None:
    program = """\
import sys
from pytest_metricbench.reporting.plots import Point, scatter_svg
point = Point(0.1, 0.2, 3, "a", "s1")
scatter_svg([point], cases=["a"], score="s", bounded=True, name="p", title="t", description="d")
print("matplotlib.pyplot" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_two_pictures_share_no_id() -> None:
    ids = [set(re.findall(r' id="([^"]+)"', picture(name=name))) for name in ("one", "two")]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_equal_subsets_are_one_larger_mark() -> None:
    svg = read(picture())
    titles = [title.words for title in svg.all("title")[1:]]
    assert titles == ["s2, s3 of b: size 6, coverage 0.5, score 0.9", "s1 of a: size 3, coverage 0.1, score 0.2"]
    many = [Point(0.5, 0.5, 2, "a", f"s{n}") for n in range(40)]
    (title,) = [found.words for found in read(picture(many)).all("title")[1:]]
    assert title.startswith("s0, s1, s2")
    assert title.endswith("s11 and 28 more: size 2, coverage 0.5, score 0.5")


def test_marks_lie_where_their_values_are() -> None:
    """Positions in the picture are in proportion to coverage, and to the score, upwards."""
    points = [Point(x, y, 3, "a", f"{x}") for x, y in ((0.0, 0.0), (0.5, 0.25), (1.0, 1.0))]
    svg = read(picture(points))
    groups = [g for g in svg.all("g") if g.attributes.get("id", "").startswith("p-mark-")]
    places = [(float(g.all("use")[0].attributes["x"]), float(g.all("use")[0].attributes["y"])) for g in groups]
    (x0, y0), (x1, y1), (x2, y2) = places
    assert abs((x1 - x0) / (x2 - x0) - 0.5) < 0.001
    assert abs((y0 - y1) / (y0 - y2) - 0.25) < 0.001


def test_more_cases_than_marks_begin_again() -> None:
    marks = case_marks([f"c{n}" for n in range(len(MARKS) + 1)])
    assert len(set(marks.values())) == len(MARKS)
    assert marks[f"c{len(MARKS)}"] == marks["c0"]


def test_one_size_has_the_first_colour() -> None:
    assert size_colours([5, 5]) == {5: "#0e94a0"}
    assert list(size_colours([9, 3, 6])) == [3, 6, 9]


@settings(max_examples=25)
@given(
    values=st.lists(
        st.tuples(st.floats(0, 1), st.floats(-1e6, 1e6, allow_nan=False), st.integers(1, 500), st.sampled_from("ab")),
        min_size=1,
        max_size=8,
    )
)
def test_any_values_make_a_picture_without_styles(values: list[tuple[float, float, int, str]]) -> None:
    points = [Point(x, y, size, case, f"s{n}") for n, (x, y, size, case) in enumerate(values)]
    svg = picture(points, bounded=False)
    assert "style" not in svg
    assert "nan" not in svg
    named = ", ".join(title.words for title in read(svg).all("title")[1:])
    assert all(re.search(rf"\b{point.subset}\b", named) for point in points)


def test_what_a_style_says_stands_in_attributes() -> None:
    given_svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 10 20">'
        "<metadata>when</metadata><style>*{}</style>"
        '<g id="g" style="fill: #010203; clip-path: url(#c)"><use xlink:href="#m" x="1.23456"/>'
        "<text style=\"font: 12px 'DejaVu Sans', sans-serif; text-anchor: middle\">0.5</text></g></svg>"
    )
    svg = embedded_svg(given_svg, name="p", title="T", description="D", titles={"g": "<s>"})
    assert svg.endswith(
        '<title id="p-title">T</title><desc id="p-desc">D</desc>'
        '<g id="p-g" fill="currentColor" clip-path="url(#p-c)"><title>&lt;s&gt;</title>'
        '<use href="#p-m" x="1.23" /><text font-size="12" text-anchor="middle">0.5</text></g></svg>'
    )
