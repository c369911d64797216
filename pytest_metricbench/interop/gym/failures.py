"""NeMo Gym's failure classes, and what an attempt that failed so counts as.

Gym says what went wrong, not whose fault it was. An attempt died where the agent ran and broke, or ran out of its own
time: it counts and did not pass. Everything else left it unmeasured: a zero there would look like a killed mutant.
Names: ``nemo_gym/failure_kinds.py`` of NeMo Gym 0.7, and those that single agents gave before it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from pytest_metricbench.contracts import Phase
from pytest_metricbench.interop.recordings import Treatment


@dataclass(frozen=True, slots=True)
class FailureClass:
    """What a failure class means, what its attempts count as, and the phase of their error."""

    treatment: Literal["died", "unmeasured"]
    phase: Phase
    meaning: str


_DIED: Final = {
    "agent_run_error": "the agent's server answered and broke",
    "agent_timeout": "the agent ran out of time",
    "agent_command_not_allowed": "the agent used a command that it may not use",
    "timeout_exceeded": "the time limit of one try was reached",
    "timeout": "the same, as some agents call it",
}
_SETUP: Final = {
    "agent_request_failed": "a gateway error (429, 502, 503, 504) or no answer: the agent may not have run",
    "transport_unreachable": "a server could not be reached",
    "transport_peer_drop": "a server dropped the connection",
    "transport_timeout": "a request between servers took too long",
    "transport_local_resource": "no sockets or files were left",
    "environment_server_failed": "the environment server failed",
    "episode_processor_failed": "the same, in versions before 0.7",
    "protocol_violation": "servers did not understand each other",
    "provider_unavailable": "no sandbox, browser or container",
    "provider_quota_exhausted": "no more sandboxes, browsers or containers",
    "provider_oom_killed": "the sandbox ran out of memory, through the agent's doing or not",
    "session_lost": "the environment lost the session",
    "session_expired": "the session ended before the agent did",
    "session_release_failed": "the session could not be closed",
    "cancelled": "the run was cancelled",
    "kill_shaped": "the process was killed from outside",
    "shutdown": "the run was shut down",
    "persistence_failed": "the result could not be written",
    "cohort_incomplete": "others of the group that is judged together are absent",
    "skipped": "the agent's server left the sample out",
    "legitimate": "an exception in the agent's server, or in its request to the verifier: it does not say which",
}
_VERIFIER: Final = {
    "judge_failed": "the judge failed; a reward in the row is a placeholder",
    "judge_unparseable": "the judge's answer could not be read",
    "verifier_error": "the verifier failed",
    "transient": "the verifier could not be reached",
}
_OF_ROWS: Final = {
    "mask_sample": "a result that Gym says not to use",
    "no_reward": "a result without a reward",
    "empty_response": "a result without any output and without input tokens: no agent ran",
}

FAILURE_CLASSES: Final[Mapping[str, FailureClass]] = MappingProxyType(
    {
        **{name: FailureClass("died", "agent", meaning) for name, meaning in _DIED.items()},
        **{name: FailureClass("unmeasured", "setup", meaning) for name, meaning in _SETUP.items()},
        **{name: FailureClass("unmeasured", "verifier", meaning) for name, meaning in _VERIFIER.items()},
        "mask_sample": FailureClass("unmeasured", "verifier", _OF_ROWS["mask_sample"]),
        "no_reward": FailureClass("unmeasured", "verifier", _OF_ROWS["no_reward"]),
        "empty_response": FailureClass("unmeasured", "setup", _OF_ROWS["empty_response"]),
    }
)
"""Failure class -> what its attempts count as. The last three are no classes of Gym: they are read off a result."""

UNKNOWN: Final = FailureClass("unmeasured", "setup", "a class that is not known")
"""What any other class counts as: an environment's own (``server:kind``), or a newer one."""

BLAMELESS_STAGES: Final[Mapping[str, Phase]] = MappingProxyType(
    {"admission": "setup", "seed": "setup", "verification": "verifier", "verifier": "verifier", "cleanup": "setup"}
)
"""``_ng_failure_stage`` outside the agent's own work: a failure there is unmeasured, whatever its class is."""


def judged(name: str, stage: str | None, outcomes: Mapping[str, Treatment]) -> tuple[Treatment, Phase]:
    """What attempts of a failure class count as, and the phase of their error.

    Args:
        name: the class.
        stage: where it failed, as far as the row says it; it can only take blame from the agent.
        outcomes: the user's word, which is the last.
    """
    known = FAILURE_CLASSES.get(name, UNKNOWN)
    blameless = None if stage is None else BLAMELESS_STAGES.get(stage)
    treatment: Treatment = known.treatment if blameless is None else "unmeasured"
    phase = known.phase if blameless is None else blameless
    treatment = outcomes.get(name, treatment)
    return treatment, "agent" if treatment == "died" else phase
