"""Generated mutants in an experiment: the lock, stable ids, the sample, and what a user is told."""

import re
import sys

import pytest

from tests.suite_generation.code_lab import EXPERIMENT, PRICES, CodeLab, ids

pytest.importorskip("cosmic_ray", reason="needs the extra suite")

OTHERS = ("randomly", "sugar", "timeout", "rerunfailures", "html", "metadata", "pytest_cov")
OFF = [f"-pno:{name}" for name in OTHERS]


@pytest.fixture
def without_cosmic_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "cosmic_ray"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cosmic_ray", None)


def test_the_lock_can_be_reviewed(code: CodeLab) -> None:
    code.load(", operators: [NumberReplacer]", lock=True)
    text = (code.path / "experiment.lock.yml").read_text()
    assert (
        """\
      - id: NumberReplacer-total-0-to-1
        description: "shop/prices.py:5, in total: 'result = 0' became 'result = 1'."
        tags: [generated, NumberReplacer]
        params:
          patch: |
            --- a/shop/prices.py
            +++ b/shop/prices.py
            @@ -2,7 +2,7 @@
"""
        in text
    )
    assert "            -    result = 0\n            +    result = 1\n" in text


def test_two_mutants_on_one_line_are_two(code: CodeLab) -> None:
    code.write("shop/prices.py", "def f(x):\n    return x + 1 + x + 1\n")
    loaded = code.load(", operators: [ReplaceBinaryOperator_Add_Sub, NumberReplacer]")
    found = ids(loaded)
    assert len(set(found)) == len(found) == 7
    patches = {variant.params["patch"] for variant in loaded.cases[0].variants if variant.kind == "mutant"}
    assert len(patches) == 7


def test_ids_do_not_change_with_what_stands_elsewhere(code: CodeLab) -> None:
    """Neither those of one place only, nor those that are told apart by digits."""
    usual = f"import os\nimport sys\nimport re\n{PRICES}\n\n\n# The end.\n"
    code.write("shop/prices.py", usual)
    before = ids(code.load())
    assert any(re.search(r"-[0-9a-f]{6}$", name) for name in before)
    code.write("shop/prices.py", f"# A remark.\nOTHER = 'a'\n\n\ndef more(x):\n    return x\n\n\n{usual}\nLAST = 'b'\n")
    assert ids(code.load()) == before


def test_the_sample_is_that_of_the_seed(code: CodeLab) -> None:
    every = ids(code.load())
    first = ids(code.load(", sample: 10, seed: 1"))
    assert len(first) == 10
    assert first == ids(code.load(", sample: 10, seed: 1"))
    other = ids(code.load(", sample: 10, seed: 2"))
    assert set(first) != set(other)
    assert set(first) | set(other) <= set(every)
    families = {name.partition("-")[0] for name in every}
    assert {name.partition("-")[0] for name in first} == families  # each operator has its share


def test_a_changed_module_asks_for_a_new_lock(code: CodeLab) -> None:
    code.load(", modules: [shop.prices]", lock=True)
    code.write("shop/__init__.py", "X = 1\n")
    code.load(", modules: [shop.prices]")
    code.write("shop/prices.py", PRICES.replace("RATE = 10", "RATE = 12"))
    said = code.problem(", modules: [shop.prices]")
    assert "experiment.lock.yml disagrees: the file shop/prices.py changed; renew it with --metricbench-lock" in said


def test_a_new_module_asks_for_a_new_lock(code: CodeLab) -> None:
    code.load(lock=True)
    code.write("shop/more.py", "A = 1\n")
    assert "experiment.lock.yml disagrees: the file shop/more.py is new" in code.problem()


def test_another_key_asks_for_a_new_lock(code: CodeLab) -> None:
    code.load(", sample: 5", lock=True)
    assert "experiment.lock.yml disagrees: sample was 5 and is 6" in code.problem(", sample: 6")


def test_reviewed_mutants_are_joined_by_their_ids(code: CodeLab) -> None:
    more = "      listed:\n        - {id: NumberReplacer-total-0-to-1, equivalent: nobody adds}\n"
    case = code.load(", operators: [NumberReplacer]", more).cases[0]
    assert {v.id: v.equivalent for v in case.variants if v.equivalent} == {"NumberReplacer-total-0-to-1": "nobody adds"}


@pytest.mark.usefixtures("without_cosmic_ray")
def test_without_the_extra_it_says_what_to_install(code: CodeLab) -> None:
    said = code.problem()
    assert "from: cosmic-ray needs cosmic-ray, and it cannot be imported" in said
    assert "pip install 'pytest-metricbench[suite]'" in said


def test_a_lock_is_read_without_the_extra(code: CodeLab, request: pytest.FixtureRequest) -> None:
    before = ids(code.load(", sample: 5", lock=True))
    request.getfixturevalue("without_cosmic_ray")
    assert ids(code.load(", sample: 5")) == before


def test_nothing_to_mutate(code: CodeLab) -> None:
    code.write("shop/prices.py", "A = 'b'\n")
    assert "no mutant can be generated" in code.problem()


def test_chance_elsewhere_is_left_alone(code: CodeLab) -> None:
    import random

    random.seed(1)
    expected = random.random()
    random.seed(1)
    code.proposals()
    assert random.random() == expected


@pytest.mark.slow
def test_a_session_runs_them_and_tells_what_was_dropped(
    code: CodeLab, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, unasked: None
) -> None:
    code.write("shop/prices.py", PRICES + "\n\nif False:\n    UNUSED = 1\n")
    tasks = '[{id: a, params: {nodeid: "tests/test_prices.py::test_total"}}]'
    text = (EXPERIMENT % ", operators: [NumberReplacer, ReplaceBinaryOperator_Add_Sub]").replace(
        tasks, "{collect: tests}"
    )
    (code.path / "experiment.yml").write_text(text)
    monkeypatch.chdir(code.path)
    result = pytester.runpytest_inprocess(*OFF, f"--rootdir={code.path}", str(code.path / "experiment.yml"), "-n0")
    out = result.stdout.str()
    assert result.ret == 0, out
    # Ten numbers in five places and one addition; RATE is used by nobody.
    result.stdout.fnmatch_lines(["*5 of 9 valid mutants killed*"])
    result.stdout.fnmatch_lines(["*2 generated mutants equal to the baseline: dropped*"])
