"""What ``turnwatch scan`` prints for people: the worst turns, then agents and tools, then what it comes to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from turnwatch.cli.folded_name import FoldedName
from turnwatch.cli.severity_words import SEVERITIES
from turnwatch.core.printable import dollars, many
from turnwatch.core.turn import TurnState
from turnwatch.core.verdict import Verdict
from turnwatch.sources.scan import ScannedTurn
from turnwatch.sources.spans.dialect import BY_NAME
from turnwatch.sources.totals import Totals

_WORST_SHOWN: Final = 10
_AGENTS_SHOWN: Final = 8
_TOOLS_SHOWN: Final = 8
# From so many columns on there is room for them.
_WITH_ALL_COUNTS: Final = 60
_WITH_AGENT: Final = 76
_WITH_DOLLARS: Final = 100

_Rank = tuple[int, int, float, int, int]


def is_stuck(turn: TurnState) -> bool:
    """Whether the turn got a verdict that pages or stops."""
    return turn.verdict is not None and turn.verdict.severity == "stuck"


def failing_verdict(turn: TurnState) -> int | None:
    """Which of a turn's verdicts, by its place, fails a check for loops; None when the check passes.

    The first that is stuck. Where no result is known nothing can be found stuck, so there a warning is enough: a check
    that cannot fail would be none.
    """
    for number, verdict in enumerate(turn.verdicts):
        if verdict.severity == "stuck" or turn.engine.mode == "args_only":
            return number
    return None


@dataclass(frozen=True, slots=True)
class _Worst:
    """One line of the first table."""

    rank: _Rank
    source: str
    line: int | None
    agent: str
    verdict: Verdict | None
    duplicates: int
    tool_calls: int
    wasted_tool_calls: int
    wasted_usd: float


@final
class ScanTable:
    """Gathers what the tables say. Keeps the worst turns only.

    Args:
        totals: Of the same turns.
        max_identical_calls: What the rule allows that looks at identical calls only.
    """

    def __init__(self, totals: Totals, max_identical_calls: int) -> None:
        self._totals = totals
        self._without_arguments: dict[str, None] = {}  # who reported calls without them
        self._allowed = max_identical_calls
        self._worst: list[_Worst] = []
        self._with_duplicates = self._stuck_with_duplicates = 0
        self._noticed = 0
        self.turns = 0
        self.stuck = 0
        self.failing = 0

    def add(self, item: ScannedTurn) -> None:
        """Add a turn."""
        turn = item.state
        self.turns += 1
        self.stuck += is_stuck(turn)
        self.failing += failing_verdict(turn) is not None
        if turn.missing_arguments:
            self._without_arguments[turn.source] = None
        if turn.duplicates:
            self._with_duplicates += 1
            self._stuck_with_duplicates += is_stuck(turn)
        if turn.verdict is not None or turn.duplicates:
            self._noticed += 1
            self._worst.append(_worst_of(item, -self.turns))
            if len(self._worst) > 4 * _WORST_SHOWN:
                self._keep_worst()

    def _keep_worst(self) -> None:
        self._worst.sort(key=lambda each: each.rank, reverse=True)
        del self._worst[_WORST_SHOWN:]

    def show(self, console: Console) -> None:
        """Print everything."""
        self._keep_worst()
        if self._worst:
            console.print(self._worst_turns(console.width), highlight=False)
            _say_more(console, self._noticed - len(self._worst), "turn", "with a loop or identical calls")
        if self.turns:
            _show_agents(console, self._totals)
            _show_tools(console, self._totals)
        for line in self._sentences():
            console.print(line, highlight=False)

    def _worst_turns(self, width: int) -> Table:
        table = _table("Worst turns")
        table.add_column("where", ratio=3, min_width=12)
        with_agent = width >= _WITH_AGENT and len({each.agent for each in self._worst}) > 1
        if with_agent:
            table.add_column("agent", ratio=2, min_width=8)
        table.add_column("loop", ratio=4, min_width=14)
        counts = [
            *(["calls"] if width >= _WITH_ALL_COUNTS else []),
            "wasted",
            *(["dollars"] if width >= _WITH_DOLLARS else []),
        ]
        for heading in counts:
            table.add_column(heading, justify="right", no_wrap=True)
        names = _short_names({each.source for each in self._worst})
        for each in self._worst:
            place = "" if each.line is None else f":{each.line}"
            row: list[Text | FoldedName] = [FoldedName(names[each.source] + place)]
            if with_agent:
                row.append(FoldedName(each.agent))
            row.append(_loop(each))
            shown = {
                "calls": _calls(each),
                "wasted": str(each.wasted_tool_calls or ""),
                "dollars": dollars(each.wasted_usd) if each.wasted_usd else "",
            }
            table.add_row(*row, *(shown[heading] for heading in counts))
        return table

    def _sentences(self) -> Iterable[str]:
        total = self._totals.all
        yield (
            f"{many(total.turns, 'turn')}, {many(total.tool_calls, 'tool call')}, {total.repeats} of them repeats; "
            f"[bold]{many(total.stuck, 'turn')} stuck[/bold]."
        )
        if total.stuck or total.warned:
            yield SEVERITIES
        if total.spend_usd:
            yield f"Model calls with a known price: {dollars(total.spend_usd)}."
        if total.wasted_tool_calls or total.wasted_usd:
            lost = f" and {dollars(total.wasted_usd)}" if total.wasted_usd else ""
            yield (
                f"A guard that stops at the first stuck verdict would have saved "
                f"[bold]{many(total.wasted_tool_calls, 'tool call')}{lost}[/bold]."
            )
        if self._with_duplicates:
            others = self._with_duplicates - self._stuck_with_duplicates
            yield (
                f"A rule that only counts identical calls (more than {self._allowed} in a turn) flags "
                f"{many(self._with_duplicates, 'turn')}, {others} of them not stuck."
            )
        if total.missing_arguments:
            yield f"{many(total.missing_arguments, 'call')} carried no arguments and could not be judged."
            for source in self._without_arguments:
                dialect = BY_NAME.get(source)
                if dialect is not None and dialect.switch:
                    yield f"What puts arguments on spans of {source}: {escape(dialect.switch)}."


def _worst_of(item: ScannedTurn, order: int) -> _Worst:
    turn = item.state
    # The verdict that counts is the first of the worst kind.
    chosen = next((number for number, each in enumerate(turn.verdicts) if each.severity == "stuck"), None)
    if chosen is None and turn.verdicts:
        chosen = 0
    line = item.loop_lines[chosen] if chosen is not None and chosen < len(item.loop_lines) else None
    line = item.line if line is None else line
    return _Worst(
        rank=(int(is_stuck(turn)), turn.wasted_tool_calls, turn.wasted_usd, turn.duplicates, order),
        source=item.source,
        line=line,
        agent=turn.agent,
        verdict=None if chosen is None else turn.verdicts[chosen],
        duplicates=turn.duplicates,
        tool_calls=turn.tool_calls,
        wasted_tool_calls=turn.wasted_tool_calls,
        wasted_usd=turn.wasted_usd,
    )


def _short_names(sources: Iterable[str]) -> dict[str, str]:
    """Every file by as much of the end of its path as no other one has."""
    names: dict[str, str] = {}
    left, length = set(sources), 0
    while left:
        length += 1
        ends: dict[str, list[str]] = {}
        for source in left:
            ends.setdefault("/".join(Path(source).parts[-length:]), []).append(source)
        for end, alike in ends.items():
            if len(alike) == 1 or length >= len(Path(alike[0]).parts):
                names.update(dict.fromkeys(alike, end))
                left.difference_update(alike)
    return names


def _loop(each: _Worst) -> Text | FoldedName:
    verdict = each.verdict
    if verdict is None:
        return Text(f"{many(each.duplicates, 'identical call')} too many", style="dim")
    loop = f"{verdict.kind} {verdict.tool}"
    if verdict.severity == "stuck":
        return FoldedName(loop, "red")
    return FoldedName(f"{loop} ({verdict.severity})", "yellow")


def _calls(each: _Worst) -> str:
    """From which call to which until it was detected, of how many."""
    verdict = each.verdict
    return (
        f"{each.tool_calls}"
        if verdict is None
        else f"{verdict.first_call}-{verdict.detected_call} of {each.tool_calls}"
    )


def _show_agents(console: Console, totals: Totals) -> None:
    agents = sorted(totals.agents.items(), key=lambda each: (-each[1].wasted_tool_calls, -each[1].tool_calls, each[0]))
    rows = {
        name or "unknown": {
            "turns": str(agent.turns),
            "stuck": str(agent.stuck or ""),
            "calls": str(agent.tool_calls),
            "repeats": str(agent.repeats or ""),
            "wasted": str(agent.wasted_tool_calls or ""),
            "dollars": dollars(agent.spend_usd) if agent.spend_usd else "",
        }
        for name, agent in agents[:_AGENTS_SHOWN]
    }
    _show_counts(console, "agent", rows, when_narrow=("turns", "stuck", "wasted"))
    _say_more(console, len(agents) - _AGENTS_SHOWN, "agent")


def _show_tools(console: Console, totals: Totals) -> None:
    tools = sorted(totals.tools.items(), key=lambda each: (-each[1].wasted, -each[1].repeats, -each[1].calls, each[0]))
    if not tools:
        return
    rows = {
        name: {
            "calls": str(tool.calls),
            "repeats": str(tool.repeats or ""),
            "same": str(tool.same or ""),
            "errors": str(tool.errors or ""),
            "wasted": str(tool.wasted or ""),
        }
        for name, tool in tools[:_TOOLS_SHOWN]
    }
    _show_counts(console, "tool", rows, when_narrow=("calls", "same", "wasted"))
    _say_more(console, len(tools) - _TOOLS_SHOWN, "tool")


def _show_counts(console: Console, thing: str, rows: dict[str, dict[str, str]], when_narrow: tuple[str, ...]) -> None:
    """One table of names and their counts; where there is little room, of some counts only."""
    table = _table(f"{thing.capitalize()}s")
    table.add_column(thing, ratio=1, min_width=8)
    headings = tuple(next(iter(rows.values()))) if console.width >= _WITH_ALL_COUNTS else when_narrow
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, counts in rows.items():
        table.add_row(FoldedName(name), *(counts[heading] for heading in headings))
    console.print(table, highlight=False)


def _say_more(console: Console, number: int, thing: str, which: str = "") -> None:
    if number > 0:
        console.print(f" and {many(number, f'other {thing}')} {which}".rstrip() + "\n", style="dim", highlight=False)


def _table(title: str) -> Table:
    return Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, expand=True, pad_edge=False
    )
