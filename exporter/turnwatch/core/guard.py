"""What a turn asks its guard. The guards themselves live in the guards room, which this one does not know."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypedDict

from turnwatch.core.account import BudgetWarning
from turnwatch.core.events import ModelCall, ToolCall, Usage
from turnwatch.core.limits import Limits
from turnwatch.core.verdict import Verdict
from turnwatch.near_names import did_you_mean

if TYPE_CHECKING:
    from turnwatch.core.turn import TurnState

Response = Literal["observe", "nudge", "stop", "page"]
GoalVerdict = Literal["met", "missed", "unknown"]
Judge = Callable[[Any], bool | GoalVerdict | Awaitable[bool | GoalVerdict | None] | None]


@dataclass(frozen=True, slots=True)
class Page:
    """What somebody is woken for. No arguments and no results.

    Attributes:
        agent, tool, kind, severity: As in the verdict's metric.
        reason: The verdict in one sentence.
        conversation_id, turn_id, trace_id: Where to look.
        spend_usd: Dollars of the turn and its child turns so far; None where no model call had a price.
    """

    agent: str
    tool: str
    kind: str
    severity: str
    reason: str
    conversation_id: str | None
    turn_id: str
    trace_id: str | None = None
    spend_usd: float | None = None


class KillStore(Protocol):
    """Knows which conversations somebody has killed."""

    def is_killed(self, conversation_id: str) -> bool:
        """Whether this conversation must stop. Asked before every model and tool call."""


class Guarding(TypedDict, total=False):
    """What ``turnwatch.turn`` takes about guards. What is left out comes from the settings.

    Attributes:
        limits: Of this turn, its child turns included.
        conversation_limits: Of all turns of its conversation.
        on_loop: What to do about a stuck verdict, or the steps to take one after another.
        on_warning: Called when 50, 80 and 100 percent of a limit are used.
        goal: Judges the turn when it has ended well: did it do what the user asked?
        pager: Called with a Page; must not block.
        kills: Where to look whether the conversation was killed.
        fail_closed: A fault inside turnwatch stops the turn, where it would else only miss the guard.
    """

    limits: Limits | None
    conversation_limits: Limits | None
    on_loop: Response | Sequence[Response]
    on_warning: Callable[[BudgetWarning], None] | None
    goal: Judge | None
    pager: Callable[[Page], None] | None
    kills: KillStore | None
    fail_closed: bool


_KEYWORDS: Final = frozenset(Guarding.__annotations__)


def check_keywords(guarding: Guarding) -> None:
    """Refuse what is no keyword of ``Guarding``: nothing would hold an agent back whose limits are misspelt.

    Raises:
        TypeError: There is such a keyword.
    """
    unknown = guarding.keys() - _KEYWORDS
    if unknown:
        name = min(unknown)
        hint = did_you_mean(name, _KEYWORDS) or f"there are {', '.join(sorted(_KEYWORDS))}"
        raise TypeError(f"unexpected keyword argument {name!r}; {hint}")


class Guard(Protocol):
    """Decides, call by call, whether a turn may go on."""

    partial: object

    def before_model(self, call: ModelCall, reserve: Usage | float | None = None) -> None:
        """Admit a model call, before it is counted.

        Raises:
            TurnStopped: It must not start.
        """

    def after_model(self, call: ModelCall, verdict: Verdict | None) -> None:
        """Note what an admitted model call did cost. Raises nothing."""

    def before_tool(self, call: ToolCall) -> None:
        """Admit a tool call that is counted, but has not started.

        Raises:
            TurnStopped: It must not start.
        """

    def after_tool(self, call: ToolCall, verdict: Verdict | None, result: object = None) -> None:
        """Note what came of a tool call, which may be that the turn is stuck.

        Raises:
            TurnStopped: The turn ends here. Not raised when the tool itself failed: its own exception goes first.
        """

    def tighten(self, limits: Limits, max_calls: Mapping[str, int] | None = None) -> None:
        """Put further limits on the turn, and on its calls of single tools."""

    def remaining_seconds(self) -> float | None:
        """Seconds until a time limit is reached; None without one."""

    def take_nudge(self) -> str | None:
        """The message to put before the model's next reply, once."""

    def stop_reason(self) -> str | None:
        """Why the guard stopped the turn, if it did."""

    def judge(self, turn: object, *, may_await: bool) -> Awaitable[str | None] | str | None:
        """Ask the goal's judge about a turn that ended well: a stop reason, if the goal was missed.

        An awaitable comes back only where ``may_await`` says that somebody will await it.
        """

    def end(self) -> None:
        """The turn is over."""


OpenGuard = Callable[["TurnState", Guarding], Guard | None]

_open_guard: OpenGuard | None = None


def install_guards(open_guard: OpenGuard) -> None:
    """Say how a turn's guard is made."""
    global _open_guard
    _open_guard = open_guard


def open_guard(state: TurnState, guarding: Guarding) -> Guard | None:
    """The guard of a turn that was just opened; None where only the core is in use."""
    return None if _open_guard is None else _open_guard(state, guarding)
