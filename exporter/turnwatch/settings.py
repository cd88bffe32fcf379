"""Settings: from code, then TURNWATCH_* environment, then a YAML file."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

DEFAULT_VOLATILE_KEYS: Final = frozenset(
    {
        "timestamp",
        "_timestamp",
        "_ts",
        "now",
        "nonce",
        "request_id",
        "requestid",
        "x_request_id",
        "trace_id",
        "traceid",
        "traceparent",
        "tracestate",
        "span_id",
        "spanid",
        "correlation_id",
        "correlationid",
        "tool_call_id",
        "toolcallid",
        "tool_use_id",
        "tooluseid",
        "call_id",
        "invocation_id",
        "_meta",
    }
)


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Budgets(_Section):
    """Limits of one turn. None: no limit."""

    max_steps: int | None = Field(default=None, ge=1)
    max_tool_calls: int | None = Field(default=None, ge=1)
    max_seconds: float | None = Field(default=None, gt=0)
    max_usd: float | None = Field(default=None, gt=0)
    max_tokens: int | None = Field(default=None, ge=1)


class Retries(_Section):
    """The one retry policy of the tool gateway."""

    max_attempts: int = Field(default=2, ge=1)
    retryable_status: tuple[int, ...] = (408, 429, 500, 502, 503, 504)
    backoff_s: float = Field(default=0.5, ge=0)
    max_backoff_s: float = Field(default=30.0, ge=0)


class ToolOverride(_Section):
    """What is special about one tool. None: not said, so guessed or taken from the defaults.

    Attributes:
        polling: The tool is meant to be asked again until something changes.
        side_effect: The tool changes the world; it is never answered from a cache.
        read_only: The tool changes nothing.
        max_identical_calls: "more than" this many identical calls in a turn are duplicates.
        volatile_keys: Argument names left out of this tool's input hash, beside the general ones.
    """

    polling: bool | None = None
    side_effect: bool | None = None
    read_only: bool | None = None
    idempotent: bool | None = None
    max_identical_calls: int | None = Field(default=None, ge=1)
    volatile_keys: frozenset[str] = frozenset()
    max_calls: int | None = Field(default=None, ge=1)
    dedupe_window_s: float | None = Field(default=None, ge=0)
    cache_ttl_s: float | None = Field(default=None, ge=0)
    retries: Retries | None = None


class Tools(_Section):
    """Tool gateway settings and per-tool overrides."""

    dedupe_window_s: float = Field(default=60.0, ge=0)
    cache_ttl_s: float = Field(default=30.0, ge=0)
    retries: Retries = Retries()
    overrides: dict[str, ToolOverride] = Field(default_factory=dict)


class Detect(_Section):
    """Detection thresholds; each is a "more than".

    Attributes:
        max_identical_calls: A call past this many identical ones in a turn is a duplicate.
        iteration_threshold: A turn past this many model calls is counted as over the limit.
        window_seconds: Length of the trailing window of the ``*_max`` gauges.
        volatile_keys: Argument names left out of every input hash, at any depth.
    """

    max_identical_calls: int = Field(default=2, ge=1)
    iteration_threshold: int = Field(default=8, ge=1)
    window_seconds: float = Field(default=300.0, gt=0)
    volatile_keys: frozenset[str] = DEFAULT_VOLATILE_KEYS


class AgentOverride(_Section):
    """What is special about one agent."""

    iteration_threshold: int | None = Field(default=None, ge=1)
    max_identical_calls: int | None = Field(default=None, ge=1)
    budgets: Budgets | None = None


class Bounds(_Section):
    """How much turnwatch keeps. What is dropped is counted."""

    agents: int = Field(default=50, ge=1)
    tools: int = Field(default=200, ge=1)
    models: int = Field(default=100, ge=1)
    keys_per_turn: int = Field(default=1000, ge=8)
    open_turns: int = Field(default=100_000, ge=1)
    conversations: int = Field(default=10_000, ge=1)
    conversation_ttl_s: float = Field(default=86_400.0, gt=0)


class Settings(_Section):
    """Everything that can be set. See docs/settings.md."""

    budgets: Budgets = Budgets()
    tools: Tools = Tools()
    detect: Detect = Detect()
    agents: dict[str, AgentOverride] = Field(default_factory=dict)
    bounds: Bounds = Bounds()
    on_loop: Literal["stop", "nudge", "page", "observe"] = "observe"
    fail_closed: bool = False
    hash_key: str | None = Field(default=None, repr=False)
    prices_file: str | None = None
    spans: bool = True
    semconv_metrics: bool = False
    alerts: dict[str, Any] = Field(default_factory=dict)
