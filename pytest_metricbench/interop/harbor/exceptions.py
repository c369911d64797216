"""What an exception in a Harbor trial says about the attempt: the table, for the versions that are known.

Harbor records exceptions by the name of their type. Its own tables (``harbor.models.trial.error_policy`` of 0.25.0 and
0.26.0) say whether a trial is retried, verified and counted. What matters here is another question: was it the agent?
Only then does the attempt count, as one that did not pass; everything else is not measured and counts nowhere, since
an infrastructure failure that counted as a zero would look like a killed mutant.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Blame: TypeAlias = Literal["limit", "crash", "environment", "provider", "configuration", "verifier", "cancelled"]
"""Who ended the trial. ``limit``: the agent used up its time or tokens, or refused. ``crash``: the agent raised or
exited with a status that is not 0."""

RulesVersion: TypeAlias = Literal["0.25", "0.26"]
"""Which version's rules hold: those of 0.25 up to it, those of 0.26 from there on."""


@dataclass(frozen=True, slots=True)
class ExceptionRule:
    """One row of the table."""

    type: str
    """The name of the exception's type."""
    blame: Blame
    verified: tuple[bool, bool] | None
    """Whether Harbor 0.25 and 0.26 run the verifier after it; None where it comes from the verifier itself or ends
    the trial."""
    counted: bool
    """Whether a reward beside it is in Harbor 0.26's own figures. In those of 0.25 every reward is."""

    @property
    def with_reward(self) -> Literal["scored", "scored if above 0, else died", "unmeasured"]:
        """What an attempt with this exception and with rewards is.

        A zero for what a crashed agent left behind is the crash seen a second time, and Harbor 0.25 would not even
        have given it: such an attempt died. A reward above zero says more than the crash does.
        """
        if self.blame == "limit":
            return "scored"
        return "scored if above 0, else died" if self.blame == "crash" else "unmeasured"

    @property
    def without_reward(self) -> Literal["died", "unmeasured"]:
        """What an attempt with this exception and without rewards is."""
        return "died" if self.blame in ("limit", "crash") else "unmeasured"


def _rules(blame: Blame, verified: tuple[bool, bool] | None, counted: bool, *types: str) -> dict[str, ExceptionRule]:
    return {name: ExceptionRule(name, blame, verified, counted) for name in types}


RULES: Final[dict[str, ExceptionRule]] = {
    # the agent, with a limit of its own: what it had done by then is measured
    **_rules(
        "limit",
        (True, True),
        True,
        "AgentTimeoutError",
        "ContextWindowExceededError",
        "OutputTokenExceededError",
        "AgentSafetyRefusalError",
    ),
    **_rules(
        "limit",
        (False, True),
        True,
        "ContextLengthExceededError",
        "OutputLengthExceededError",
        "ContentPolicyViolationError",
    ),
    **_rules("crash", (True, True), True, "NonZeroAgentExitCodeError"),
    # the model's provider
    **_rules(
        "provider",
        (True, True),
        False,
        "ApiError",
        "ApiRateLimitError",
        "ApiInternalServerError",
        "ApiOverloadedError",
        "ApiConnectionClosedError",
        "ApiResponseStalledError",
        "UnknownApiError",
        "NetworkConnectionError",
        "ApiConnectionError",
        "ApiUsageLimitError",
    ),
    **_rules(
        "provider",
        (False, True),
        False,
        "RateLimitError",
        "InternalServerError",
        "ServiceUnavailableError",
        "APIConnectionError",
        "APIError",
        "Timeout",
        "APIResponseValidationError",
        "BudgetExceededError",
    ),
    # what was asked of the provider, its model or its account
    **_rules("configuration", (True, True), False, "UnsupportedModelParametersError"),
    **_rules(
        "configuration",
        (False, True),
        False,
        "BadRequestError",
        "UnprocessableEntityError",
        "UnsupportedParamsError",
    ),
    **_rules(
        "configuration",
        (True, False),
        False,
        "AgentAuthenticationError",
        "ModelNotFoundError",
        "ApiProviderResourceNotFoundError",
    ),
    **_rules(
        "configuration",
        (False, False),
        False,
        "AuthenticationError",
        "PermissionDeniedError",
        "NotFoundError",
        "ServiceOperationsUnsupportedError",
        "VercelScopeError",
        "DspyImportError",
        "MissingExtraError",
        "RegradeError",
    ),
    # where the trial ran
    **_rules(
        "environment",
        (False, False),
        False,
        "EnvironmentStartTimeoutError",
        "SandboxBuildFailedError",
        "AgentSetupTimeoutError",
        "HealthcheckError",
        "SandboxLikelyOutOfMemoryError",
        "MemoryLimitExceededError",
        "SSHAccessError",
        "GKEExecStreamClosedError",
        "GKEPodNotFoundError",
        "RuntimeRequestError",
        "AddTestsDirError",
        "DownloadVerifierDirError",
    ),
    **_rules(
        "verifier",
        None,
        False,
        "VerifierTimeoutError",
        "RewardFileNotFoundError",
        "RewardFileEmptyError",
        "VerifierOutputParseError",
    ),
    **_rules("cancelled", None, False, "CancelledError"),
    # not in Harbor's own tables, where they count as unknown: raised by its credentials and its environments
    **_rules(
        "configuration",
        (False, True),
        True,
        "MissingModelCredentialError",
        "UnsupportedDockerfileError",
    ),
    **_rules(
        "environment",
        (False, True),
        True,
        "SbxCommandError",
        "ImageMirrorError",
        "TransferError",
        "ImageRegistryUnavailableError",
        "InfrastructureTimeout",
        "RequestThrottled",
        "EndpointCredentialExpired",
        "IncompleteDownload",
        "CreateOutcomeUnknown",
        "ShortCredential",
    ),
}
"""Every exception type that is known: name -> rule."""


def rule_for(exception_type: str) -> ExceptionRule:
    """The rule of an exception type; one that is not known is a crash of the agent, if the agent was running."""
    known = RULES.get(exception_type)
    return ExceptionRule(exception_type, "crash", (False, True), True) if known is None else known


def rules_version(version: str | None) -> RulesVersion:
    """Whose rules a version of Harbor follows; an unknown one is taken for a new one.

    Args:
        version: as Harbor writes it, such as ``0.25.0``.
    """
    numbers = (version or "").split(".")
    try:
        return "0.25" if (int(numbers[0]), int(numbers[1])) < (0, 26) else "0.26"
    except (ValueError, IndexError):
        return "0.26"
