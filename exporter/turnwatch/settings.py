"""Settings: from code, then TURNWATCH_* environment, then a YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from turnwatch.default_volatile_keys import DEFAULT_VOLATILE_KEYS
from turnwatch.errors import SettingsError
from turnwatch.settings_faults import faults_in_words

if TYPE_CHECKING:
    from turnwatch.price_file import ModelPrices


class _Section(BaseModel):
    # No value in an error's text: it may be the hash key. No infinity: leaving a limit out says the same.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True)

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            faults = (f"{type(self).__name__}: {fault}" for _, fault in faults_in_words(error, type(self)))
            raise SettingsError("\n".join(faults)) from None

    # As pydantic's own: what is read from files goes past it, to be checked strictly and as a whole.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined] # functions have any


class Budgets(_Section):
    """Limits, past which a guard stops the agent. None: no limit.

    Attributes:
        max_steps: Model calls; in code it is `Limits(max_iterations=...)`.
        max_tool_calls: Tool calls.
        max_seconds: Seconds from the start.
        max_usd: Dollars, those of child turns included.
        max_tokens: Input and output tokens, those of child turns included.
        unpriced: What ``max_usd`` does about a model without a known price: let it run uncounted, or refuse it. A price
            to count it at belongs in ``prices_file``, or, for any such model, in code (``AssumedPrice``).
    """

    max_steps: int | None = Field(default=None, ge=1)
    max_tool_calls: int | None = Field(default=None, ge=1)
    max_seconds: float | None = Field(default=None, gt=0)
    max_usd: float | None = Field(default=None, gt=0)
    max_tokens: int | None = Field(default=None, ge=1)
    unpriced: Literal["allow", "block"] = "allow"


class Retries(_Section):
    """The one retry policy of the tool gateway.

    Attributes:
        max_attempts: How often a call is tried in all.
        retryable_status: HTTP statuses, on an exception or on what the tool returned, after which it is tried again.
        retryable_exceptions: Class names, the call's own or a base's, after which it is tried again.
        backoff_s: The longest first wait; it doubles with every attempt, and the wait is drawn from 0 up to it.
        max_backoff_s: The longest wait. A server that asks for a longer one (Retry-After) is not asked again.
    """

    max_attempts: int = Field(default=2, ge=1)
    retryable_status: tuple[int, ...] = (408, 429, 500, 502, 503, 504)
    retryable_exceptions: tuple[str, ...] = (
        "TimeoutError",
        "ConnectionError",
        "Timeout",
        "TimeoutException",
        "TransportError",
        "APIConnectionError",
    )
    backoff_s: float = Field(default=0.5, ge=0)
    max_backoff_s: float = Field(default=30.0, ge=0)


class Circuit(_Section):
    """When a tool counts as down.

    Attributes:
        failures: Calls in a row that failed for reasons of the tool's own; 0 never opens the circuit.
        open_s: Seconds for which it is then answered in safe mode; after that one call tries it again.
    """

    failures: int = Field(default=5, ge=0)
    open_s: float = Field(default=30.0, ge=0)


class ToolOverride(_Section):
    """What is special about one tool. None: not said, so guessed or taken from the defaults.

    Attributes:
        polling: The tool is meant to be asked again until something changes.
        side_effect: The tool changes the world; it is never answered from a cache.
        read_only: The tool changes nothing.
        max_identical_calls: "more than" this many identical calls in a turn are duplicates.
        volatile_keys: Argument names left out of this tool's input hash, beside the general ones.
        idempotent: Doing it twice does no more than doing it once, so it may be retried.
        max_calls: Calls of this tool that one turn may make.
        dedupe_window_s, cache_ttl_s, retries: In place of the general ones.
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
    """Tool gateway settings and per-tool overrides.

    Attributes:
        dedupe_window_s: For how long after a call with a side effect the same call is not made again.
        cache_ttl_s: For how long an identical call is answered from the cache.
        retries: When a failed call is tried again.
        circuit: When a tool counts as down.
        overrides: What is special about single tools, by their names.
    """

    dedupe_window_s: float = Field(default=60.0, ge=0)
    cache_ttl_s: float = Field(default=30.0, ge=0)
    retries: Retries = Retries()
    circuit: Circuit = Circuit()
    overrides: dict[str, ToolOverride] = Field(default_factory=dict)


class Detect(_Section):
    """Detection thresholds; each is a "more than".

    Attributes:
        max_identical_calls: A call past this many identical ones in a turn is a duplicate.
        iteration_threshold: A turn past this many model calls is counted as over the limit.
        window_seconds: Length of the trailing window of the ``*_max`` gauges.
        volatile_keys: Argument names left out of every input hash, at any depth. A list of your own takes the place of
            this one: repeat the names that are to stay.
    """

    max_identical_calls: int = Field(default=2, ge=1)
    iteration_threshold: int = Field(default=8, ge=1)
    window_seconds: float = Field(default=300.0, gt=0)
    volatile_keys: frozenset[str] = DEFAULT_VOLATILE_KEYS


class AgentOverride(_Section):
    """What is special about one agent.

    Attributes:
        iteration_threshold: In place of ``detect.iteration_threshold``.
        max_identical_calls: In place of ``detect.max_identical_calls``.
        budgets: In place of the general ones.
    """

    iteration_threshold: int | None = Field(default=None, ge=1)
    max_identical_calls: int | None = Field(default=None, ge=1)
    budgets: Budgets | None = None


class Page(_Section):
    """Where a guard that pages sends its alerts.

    Attributes:
        alertmanager_url: Base URL of an Alertmanager (http://127.0.0.1:9093).
        webhook_url: A URL that gets a JSON object for each page.
        labels: Labels of the alerts, beside agent, tool, kind and severity.
    """

    alertmanager_url: str | None = Field(default=None, repr=False)
    webhook_url: str | None = Field(default=None, repr=False)
    labels: dict[str, str] = Field(default_factory=dict)


class Bounds(_Section):
    """How much turnwatch keeps. What is dropped is counted.

    Attributes:
        agents: Agent names that get a label value of their own; later ones are ``__other__``.
        tools: The same for tools.
        models: The same for models.
        keys_per_turn: Distinct calls that one turn remembers; the oldest singletons go first.
        keys_per_conversation: The same over the turns of one conversation: there are many, and they live long.
        open_turns: Turns that are open at one moment.
        conversations: Conversations that are remembered.
        conversation_ttl_s: For how long a conversation without news is remembered.
    """

    agents: int = Field(default=50, ge=1)
    tools: int = Field(default=200, ge=1)
    models: int = Field(default=100, ge=1)
    keys_per_turn: int = Field(default=1000, ge=8)
    keys_per_conversation: int = Field(default=200, ge=8)
    open_turns: int = Field(default=100_000, ge=1)
    conversations: int = Field(default=10_000, ge=1)
    conversation_ttl_s: float = Field(default=86_400.0, gt=0)


TOKEN: Final = r"^[!-~]([ -~]*[!-~])?$"
"""What a bearer token looks like: printable ASCII, without white space round it."""


class Service(_Section):
    """What ``turnwatch serve`` accepts, keeps and waits for. Past a bound a request is refused and counted.

    Attributes:
        token: Bearer token that clients must send: printable ASCII, since headers carry nothing else for certain. None:
            whoever reaches the port may send.
        forward_headers: Sent with everything that is passed on, for the next receiver's own authorization.
        max_body_bytes: Size of one request, as sent and again once decompressed.
        max_grpc_message_bytes: Size of one gRPC message; the default is gRPC's own.
        max_elements: Spans, log records, attributes, events and list items in one request. Bounds the memory of
            decoding: a protobuf body of empty messages grows ninetyfold.
        max_attributes: Attributes of one span or log record; one with more is rejected, the rest of the request is not.
        max_pending_bytes: Bodies that are held at one moment, all clients together.
        max_pending_requests: Requests that wait for decoding.
        max_connections: Open connections.
        header_timeout_s: How long a client may take to send the headers of a request, or for its TLS handshake.
        body_timeout_s: How long it may take to send a body.
        forward_queue_bytes: Bodies that wait to be passed on.
        forward_timeout_s: How long the next receiver may take to answer.
        forward_give_up_s: How long passing on one body is tried.
        drain_timeout_s: How long, after SIGTERM, passing on what waits may take.
        turn_grace_s: How long a turn stays open after its agent's span ended, for spans that come late.
        turn_settle_s: How long calls wait for the span above them before they count towards their trace.
        turn_idle_s: How long a turn without news stays open when nothing says that it ended.
    """

    token: str | None = Field(default=None, repr=False, pattern=TOKEN)
    forward_headers: dict[str, str] = Field(default_factory=dict, repr=False)
    max_body_bytes: int = Field(default=16_777_216, ge=1024)
    max_grpc_message_bytes: int = Field(default=4_194_304, ge=1024)
    max_elements: int = Field(default=262_144, ge=1)
    max_attributes: int = Field(default=2_000, ge=1)
    max_pending_bytes: int = Field(default=25_165_824, ge=1024)
    max_pending_requests: int = Field(default=256, ge=1)
    max_connections: int = Field(default=1_000, ge=1)
    header_timeout_s: float = Field(default=10.0, gt=0)
    body_timeout_s: float = Field(default=20.0, gt=0)
    forward_queue_bytes: int = Field(default=33_554_432, ge=1024)
    forward_timeout_s: float = Field(default=10.0, gt=0)
    forward_give_up_s: float = Field(default=300.0, gt=0)
    drain_timeout_s: float = Field(default=20.0, ge=0)
    turn_grace_s: float = Field(default=10.0, ge=0)
    turn_settle_s: float = Field(default=30.0, ge=0)
    turn_idle_s: float = Field(default=1_800.0, gt=0)


class Settings(_Section):
    """Everything that can be set. See docs/settings.md.

    Raises:
        SettingsError: A key is unknown or has the wrong type. One line for each, with the key and what is allowed.

    Attributes:
        budgets: Limits of one turn.
        tools: Tool gateway settings and per-tool overrides.
        detect: Detection thresholds.
        agents: What is special about single agents, by their names.
        bounds: How much turnwatch keeps.
        service: What the service accepts, keeps and waits for.
        on_loop: What a guard does about a stuck turn: stop it, tell the model (nudge), page somebody, or only watch.
        fail_closed: Whether a fault inside turnwatch stops the turn; otherwise the turn goes on without the guard.
        page: Where a guard that pages sends its alerts.
        conversation_budgets: Limits of one conversation, over all its turns.
        kill_dir: Directory in which ``turnwatch kill`` leaves word for processes of the same machine.
        redis_url: Redis in which ``turnwatch kill`` leaves word for processes of several machines.
        hash_key: Key of the input hash, so that arguments with few possible values cannot be guessed back from it.
        prices_file: YAML or JSON file of model prices, which override the published ones.
        spans: Whether turnwatch opens spans of its own.
        semconv_metrics: Whether the OpenTelemetry view adds the GenAI conventions' own metrics.
        alerts: Thresholds and links of the alert rules, for ``turnwatch pack render --config``; a guard's page has
            the links as well.
    """

    budgets: Budgets = Budgets()
    tools: Tools = Tools()
    detect: Detect = Detect()
    agents: dict[str, AgentOverride] = Field(default_factory=dict)
    bounds: Bounds = Bounds()
    service: Service = Service()
    on_loop: Literal["stop", "nudge", "page", "observe"] = "observe"
    fail_closed: bool = False
    page: Page = Page()
    conversation_budgets: Budgets = Budgets()
    kill_dir: str | None = None
    redis_url: str | None = Field(default=None, repr=False)
    hash_key: str | None = Field(default=None, repr=False)
    prices_file: str | None = None
    spans: bool = True
    semconv_metrics: bool = False
    alerts: dict[str, Any] = Field(default_factory=dict)

    def own_prices(self) -> Mapping[str, ModelPrices]:
        """What ``prices_file`` says, by model name in lower case; empty where none is set.

        Raises:
            SettingsError: It cannot be read, or a key or a value is wrong. The message names key, file and line.
        """
        if not self.prices_file:
            return {}
        from turnwatch.price_file import read_price_file  # and with it YAML: most have no such file

        return read_price_file(self.prices_file)

    def only_for_guards(self) -> list[str]:
        """The keys that are set and that only a guard heeds: turns that are read from spans are never stopped."""
        found = ["on_loop"] if self.on_loop != "observe" else []
        found += [name for name in ("budgets", "conversation_budgets") if getattr(self, name) != Budgets()]
        agents = self.agents.items()
        return found + [f"agents.{name}.budgets" for name, agent in agents if agent.budgets not in (None, Budgets())]

    def identical_calls_allowed(self, agent: str, tool: str) -> int:
        """More than this many identical calls in a turn are duplicates: the tool's own setting, then the agent's."""
        of_tool, of_agent = self.tools.overrides.get(tool), self.agents.get(agent)
        if of_tool is not None and of_tool.max_identical_calls is not None:
            return of_tool.max_identical_calls
        if of_agent is not None and of_agent.max_identical_calls is not None:
            return of_agent.max_identical_calls
        return self.detect.max_identical_calls

    def iterations_allowed(self, agent: str) -> int:
        """More than this many model calls of a turn are over the limit: the agent's own setting, then the general."""
        of_agent = self.agents.get(agent)
        if of_agent is not None and of_agent.iteration_threshold is not None:
            return of_agent.iteration_threshold
        return self.detect.iteration_threshold

    def budgets_of(self, agent: str) -> Budgets:
        """Limits of one turn of this agent: what its own budgets set, then the general ones."""
        of_agent = self.agents.get(agent)
        if of_agent is None or of_agent.budgets is None:
            return self.budgets
        return self.budgets.model_copy(update=of_agent.budgets.model_dump(exclude_unset=True))
