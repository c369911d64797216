"""The fields of ATIF 1.0 to 1.8, level by level, and what each of them holds.

A kind with ``?`` may be absent or null; every other field is needed. The kinds in capitals have a reader of their own
(:mod:`pytest_metricbench.atif.walk`): they nest, or what they hold is asked for. What a list of token ids or an
``extra`` holds is checked for being JSON and nothing else.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

Fields: TypeAlias = Mapping[str, str]

VERSIONS: Final = frozenset(f"ATIF-v1.{minor}" for minor in range(9))
"""The versions whose fields stand here."""
SOURCES: Final = ("system", "user", "agent")

TRAJECTORY: Final[Fields] = {
    "schema_version": "VERSION",
    "session_id": "text?",
    "trajectory_id": "ID?",
    "agent": "AGENT",
    "steps": "STEPS",
    "notes": "text?",
    "final_metrics": "FINAL_METRICS?",
    "continued_trajectory_ref": "text?",
    "extra": "mapping?",
    "subagent_trajectories": "SUBAGENTS?",
}
AGENT: Final[Fields] = {
    "name": "text",
    "version": "text",
    "model_name": "text?",
    "tool_definitions": "DEFINITIONS?",
    "extra": "mapping?",
}
STEP: Final[Fields] = {
    "step_id": "STEP_ID",
    "timestamp": "TIMESTAMP?",
    "source": "SOURCE",
    "model_name": "text?",
    "reasoning_effort": "text or number?",
    "message": "CONTENT",
    "reasoning_content": "text?",
    "tool_calls": "CALLS?",
    "observation": "OBSERVATION?",
    "metrics": "METRICS?",
    "is_copied_context": "boolean?",
    "llm_call_count": "COUNT?",
    "extra": "mapping?",
}
AGENT_ONLY: Final = ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")
"""Fields that only a step of the agent may have."""
MODEL_ONLY: Final = ("metrics", "reasoning_content")
"""Fields that a step of the agent without any call of a model (``llm_call_count: 0``) may not have."""
CALL: Final[Fields] = {
    "tool_call_id": "ID",
    "function_name": "NAME",
    "arguments": "mapping",
    "extra": "mapping?",
}
OBSERVATION: Final[Fields] = {"results": "RESULTS"}
RESULT: Final[Fields] = {
    "source_call_id": "ID?",
    "content": "CONTENT?",
    "subagent_trajectory_ref": "REFERENCES?",
    "extra": "mapping?",
}
REFERENCE: Final[Fields] = {
    "trajectory_id": "text?",
    "session_id": "text?",
    "trajectory_path": "text?",
    "extra": "mapping?",
}
PART: Final[Fields] = {"type": "SHORT", "text": "text?", "source": "MEDIA?"}
MEDIA: Final[Fields] = {"media_type": "SHORT", "path": "text", "duration_sec": "SECONDS?"}
METRICS: Final[Fields] = {
    "prompt_tokens": "whole number?",
    "completion_tokens": "whole number?",
    "cached_tokens": "whole number?",
    "cost_usd": "number?",
    "prompt_token_ids": "list?",
    "completion_token_ids": "list?",
    "logprobs": "list?",
    "extra": "mapping?",
}
FINAL_METRICS: Final[Fields] = {
    "total_prompt_tokens": "whole number?",
    "total_completion_tokens": "whole number?",
    "total_cached_tokens": "whole number?",
    "total_cost_usd": "number?",
    "total_steps": "COUNT?",
    "extra": "mapping?",
}

PART_TYPES: Final = ("text", "image", "audio")
IMAGE_TYPES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
AUDIO_TYPES: Final = frozenset(
    f"audio/{name}"
    for name in (
        *("wav", "mpeg", "mp4", "aac", "ogg", "flac", "webm", "aiff"),
        *("mp3", "mpga", "x-mpeg", "x-wav", "wave", "vnd.wave", "x-m4a", "m4a", "x-aac", "x-flac", "x-aiff"),
    )
)
"""Registered types of audio, and the other spellings of them that are in use."""
