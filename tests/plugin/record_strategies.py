"""Records of attempts for hypothesis, as far as the wire is concerned."""

from typing import Any

from hypothesis import strategies as st

from pytest_metricbench.contracts import AttemptError, AttemptRecord

NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,20}", fullmatch=True)
TEXTS = st.text(max_size=40)
NUMBERS = st.floats(allow_nan=False)
OUTCOMES = st.sampled_from(["scored", "died", "unmeasured"])


@st.composite
def records(draw: st.DrawFn, outcome: st.SearchStrategy[Any] = OUTCOMES) -> AttemptRecord:
    return AttemptRecord(
        case=draw(NAMES),
        variant=draw(NAMES),
        task=draw(NAMES),
        attempt=draw(st.integers(1, 10**6)),
        trial_id=draw(NAMES),
        outcome=draw(outcome),
        scores=draw(st.dictionaries(TEXTS, st.one_of(st.none(), st.booleans(), st.integers(), NUMBERS, TEXTS))),
        error=draw(st.none() | st.builds(AttemptError, TEXTS, TEXTS, st.sampled_from(["setup", "agent"]))),
        time_limit=draw(st.none() | st.floats(0, 1e6)),
        fingerprint=draw(TEXTS),
        verifier=draw(TEXTS),
        seed=draw(st.integers(0, 2**32 - 1)),
        started=draw(TEXTS),
        duration=draw(st.floats(0, 1e6)),
        files=draw(st.dictionaries(TEXTS, TEXTS, max_size=3)),
        supersedes=draw(st.none() | NAMES),
    )
