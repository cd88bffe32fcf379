"""A sequence of calls that a public bug report describes, rebuilt, and what must be told of it."""

from dataclasses import dataclass, field

from turnwatch.core.events import ToolCall
from turnwatch.core.evidence import Evidence
from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.settings import Settings

NEVER = 10_000


def did(tool, args=None, result=None, *, error=None, **more):
    """One call; arguments left out are empty ones, ``args=MISSING`` were not captured."""
    text = error if error is not None else result
    return ToolCall(
        tool,
        {} if args is None else args,
        result=None if text is None else Evidence.of(text),
        outcome=more.pop("outcome", "ok" if error is None else "error"),
        **more,
    )


@dataclass
class Case:
    """What one report comes down to.

    Attributes:
        report: The public issue.
        calls: Makes the calls.
        repeats: Calls beyond the first with the same tool and arguments.
        stuck_by: The call by which a stuck verdict must have fallen; NEVER when none may.
        quiet_before: No verdict may fall before this call.
        warns: Whether a warning (and no more) is right.
        kinds: The kinds of loop that describe it.
    """

    report: str
    calls: list[ToolCall]
    repeats: int
    stuck_by: int = NEVER
    quiet_before: int = NEVER
    warns: bool = False
    kinds: set[str] = field(default_factory=set)
    settings: Settings = field(default_factory=Settings)

    def check(self):
        """Make the calls and look at what is told of them."""
        turn = TurnState("agent", watch=Watch(self.settings, clock=lambda: 0.0))
        verdicts = []
        for call in self.calls:
            turn.begin_call(call)
            verdict = turn.end_call(call)
            if verdict is not None:
                verdicts.append(verdict)
        stuck = [verdict for verdict in verdicts if verdict.severity == "stuck"]

        assert turn.repeats == self.repeats
        assert all(verdict.detected_call >= self.quiet_before for verdict in verdicts)
        if self.stuck_by != NEVER:
            assert stuck[0].detected_call <= self.stuck_by
            assert stuck[0].kind in self.kinds
            assert stuck[0].mode == "full"
        elif self.warns:
            assert [verdict.severity for verdict in verdicts] == ["warn"]
            assert verdicts[0].kind in self.kinds
        else:
            assert verdicts == []
