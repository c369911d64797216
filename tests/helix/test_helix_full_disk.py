"""A machine that cannot take what a job handed back: nothing of the job is lost."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager

from tests.helix.helix_lab import Ask, Make, error_of, message_of
from tests.helix.helix_server import ENDED, HelixServer

AGENT = """head -c 300000 /dev/urandom > big.bin; printf '{"scores": {"reward": 1.0}}' > response.json"""


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """No file can grow beyond a size, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_result_that_does_not_fit_here_stays_on_the_server(server: HelixServer, make: Make, ask: Ask) -> None:
    runner, request = make(AGENT), ask()
    runner.begin(request, request.workspace)
    server.wait_until(lambda: bool(server.jobs) and all(job.status in ENDED for job in server.jobs.values()))
    with small_files(100_000):
        outcome = runner.run(request, request.workspace)
    assert error_of(outcome) == ("unmeasured", "CannotBeWritten", "setup")
    (name,) = server.jobs
    assert f"what the job {name} handed back cannot be written here, and stays on the server: [Errno" in message_of(
        outcome
    )
    assert list(request.workspace.iterdir()) == []
    again = ask()
    outcome = runner.run(again, again.workspace)
    assert (outcome.kind, outcome.scores) == ("scored", {"reward": 1.0})
    assert outcome.trial_name == name
    assert (again.workspace / "big.bin").stat().st_size == 300_000
    assert [*server.jobs, *server.deleted] == [name]
