"""What ``turnwatch tune`` prints for people, in 80 columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from turnwatch.cli.bars import bars
from turnwatch.cli.folded_name import FoldedName
from turnwatch.core.printable import many, printable
from turnwatch.pack.tuning.alert_thresholds import AlertThresholds
from turnwatch.pack.tuning.outcomes import Outcome, Outcomes
from turnwatch.pack.tuning.runs import OF_CONVERSATIONS, AgentRuns, Group, Quantity, Runs
from turnwatch.pack.tuning.suggestions import MIN_CALLS, Suggested, Suggestion, shown
from turnwatch.pack.tuning.tried_rules import RULES, Flagged, TriedRule, paging, tool_errors, tried, verdicts

_AGENTS_SHOWN: Final = 8
_TOOLS_SHOWN: Final = 8
_BAR_WIDTH: Final = 26
# In fewer columns there is no room for bars, nor for every count.
_WIDE: Final = 64
_GUESS: Final = "~"
_TITLE: Final = "[bold]{}[/bold]"
_IN_WORDS: Final = {
    "given": "from --outcomes",
    "recorded": "as the files say",
    "ending": "guessed from how the turn ended",
}
_OF_AN_AGENT: Final = (
    ("model calls", Quantity.ITERATIONS, ""),
    ("tool calls", Quantity.TOOL_CALLS, ""),
    ("identical calls", Quantity.IDENTICAL_CALLS, ""),
    ("tokens", Quantity.TOKENS, ""),
    ("dollars", Quantity.SPEND_USD, "USD"),
    ("seconds", Quantity.SECONDS, "s"),
)


def plain(text: str) -> Text:
    """A text from outside, in which neither rich's markup nor a terminal's control characters do anything."""
    return Text(printable(text))


def show(console: Console, runs: Runs, outcomes: Outcomes, thresholds: AlertThresholds, suggested: Suggested) -> None:
    """Print everything: what there is, what to change, how it is spread, and what rules would have fired on."""
    _show_heading(console, runs, outcomes)
    has_outcomes = bool(outcomes.known_from)
    _show_changes(console, suggested, has_outcomes)
    for name, agent in _largest(runs)[:_AGENTS_SHOWN]:
        _show_agent(console, name, agent)
    if len(runs.agents) > _AGENTS_SHOWN:
        console.print(f"and {many(len(runs.agents) - _AGENTS_SHOWN, 'agent')} with fewer turns\n")
    _show_verdicts(console, runs, has_outcomes)
    for rule in RULES:
        _show_rule(console, rule, runs, thresholds, has_outcomes)
    _show_tools(console, runs, thresholds)


def _largest(runs: Runs) -> list[tuple[str, AgentRuns]]:
    return sorted(runs.agents.items(), key=lambda each: (-each[1].count(), each[0]))


def _show_heading(console: Console, runs: Runs, outcomes: Outcomes) -> None:
    turns = sum(agent.count() for agent in runs.agents.values())
    known = "; ".join(f"{count:,} {_IN_WORDS[source]}" for source, count in sorted(outcomes.known_from.items()))
    agents = many(len(runs.agents), "agent")
    console.print(f"{many(turns, 'turn')} of {agents}. Outcomes known: {known or 'none'}.")
    if outcomes.known_from["ending"]:
        console.print(
            f"{_GUESS}: a precision that rests on guesses, for an answer may be wrong. Record outcomes, or give them"
            " with --outcomes."
        )
    console.print()


def _ended(outcome: Outcome) -> Callable[[Group], bool]:
    return lambda group: group.outcome is outcome


def _show_agent(console: Console, name: str, agent: AgentRuns) -> None:
    title = plain(name)
    title.stylize("bold")
    title.append(f": {many(agent.count(), 'turn')}")
    for outcome in (Outcome.SUCCESS, Outcome.FAILURE):
        if count := agent.count(_ended(outcome)):
            title.append(f", {count:,} {'succeeded' if outcome is Outcome.SUCCESS else 'failed'}")
    if stuck := agent.count(lambda group: group.verdict == "stuck"):
        title.append(f", {stuck:,} stuck")
    console.print(title)
    table = _table()
    table.add_column("of a turn")
    is_wide = console.width >= _WIDE
    if is_wide:
        table.add_column("from least to most", width=_BAR_WIDTH, no_wrap=True)
    for heading in ("median", "p99", "most") if is_wide else ("median", "most"):
        table.add_column(heading, justify="right", no_wrap=True)
    for what, quantity, unit in _OF_AN_AGENT:
        values = agent.of(quantity)
        if len(values) and values.largest:
            median, largest = values.quantile(0.5), values.largest
            numbers = (median, values.quantile(0.99), largest) if is_wide else (median, largest)
            drawn = (bars(values, _BAR_WIDTH),) if is_wide else ()
            table.add_row(what, *drawn, *(shown(number, unit) for number in numbers))
    console.print(table)
    console.print()


def _show_verdicts(console: Console, runs: Runs, has_outcomes: bool) -> None:
    console.print(_TITLE.format("verdicts of the engine: AgentLoopDetected"))
    table = _Counts(console, "verdict", "turns", has_outcomes)
    for name, row in verdicts(runs.agents):
        table.add(name, row)
    console.print(table.table)
    console.print()


def _show_rule(console: Console, rule: TriedRule, runs: Runs, thresholds: AlertThresholds, has_outcomes: bool) -> None:
    if rule.quantity in OF_CONVERSATIONS and not runs.has_conversations:
        return
    now, ladder = tried(rule, runs.agents, thresholds)
    if not now.all:
        return
    console.print(_TITLE.format(f"{rule.what}: {rule.alert}" if rule.alert else rule.what))
    if not ladder and not now.flagged:
        console.print(
            f"never more than {shown(rule.ladder[0], rule.unit)} in {many(now.all, rule.of.removesuffix('s'))}\n"
        )
        return
    table = _Counts(console, "more than", rule.of, has_outcomes)
    if rule.key:
        table.add("now", now, style="bold")
    if (critical := paging(rule, runs.agents, thresholds)) is not None:
        table.add("now critical", critical, style="bold")
    for step in ladder:
        assert step.threshold is not None
        table.add(shown(step.threshold, rule.unit), step)
    console.print(table.table)
    console.print()


def _table() -> Table:
    return Table(box=None, padding=(0, 1), pad_edge=False)


class _Counts:
    """What thresholds or verdicts flag, a line each; where there is little room without what came of the turns."""

    def __init__(self, console: Console, first: str, of: str, has_outcomes: bool) -> None:
        self._has_outcomes = has_outcomes
        self._is_wide = console.width >= _WIDE
        self.table = _table()
        self.table.add_column(first, justify="right", min_width=14)
        outcomes = ["of succeeded", "of failed"] if has_outcomes and self._is_wide else []
        for heading in (of, *outcomes, *(["precision"] if has_outcomes else [])):
            self.table.add_column(heading, justify="right", no_wrap=True)

    def add(self, name: str, row: Flagged, style: str | None = None) -> None:
        cells = [name, _share(row.flagged, row.all)]
        if self._has_outcomes and self._is_wide:
            cells += [_share(row.succeeded, row.all_succeeded), _share(row.failed, row.all_failed)]
        if self._has_outcomes:
            guess = _GUESS if row.guessed else ""
            cells.append("" if row.precision is None else f"{guess}{row.precision:.2f}")
        self.table.add_row(*cells, style=style)


def _share(part: int, whole: int) -> str:
    return f"{part:,} {part / whole:4.0%}" if whole else ""


def _show_tools(console: Console, runs: Runs, thresholds: AlertThresholds) -> None:
    failing = tool_errors(runs, thresholds)
    if not failing:
        return
    console.print(_TITLE.format("calls that failed: AgentToolErrorsHigh"))
    table = _table()
    table.add_column("tool", max_width=40)
    for heading in ("calls", "failed", "limit"):
        table.add_column(heading, justify="right")
    for tool in failing[:_TOOLS_SHOWN]:
        table.add_row(
            FoldedName(tool.tool),
            f"{tool.calls:,}",
            f"{tool.share:.0%}",
            f"{tool.limit:.0%}",
            style="bold" if tool.share > tool.limit else None,
        )
    console.print(table)
    console.print()


def _show_changes(console: Console, suggested: Suggested, has_outcomes: bool) -> None:
    if suggested.changes:
        console.print(_TITLE.format("what would change, and what it flags (of a budget: what it stops)"))
        table = _table()
        is_wide = console.width >= _WIDE
        table.add_column("setting", min_width=14)
        if is_wide:
            table.add_column("now", justify="right", no_wrap=True)
        table.add_column("suggested", justify="right", no_wrap=True, style="bold")
        for heading in ("flagged", "succeeded", "failed") if has_outcomes and is_wide else ("flagged",):
            table.add_column(heading, justify="right", no_wrap=True)
        for change in suggested.changes:
            present = ["-" if change.present is None else _number(change.present)] if is_wide else []
            flagged = [_before_after(change, "flagged")]
            if has_outcomes and is_wide:
                flagged += [_before_after(change, "succeeded"), _before_after(change, "failed")]
            table.add_row(FoldedName(".".join(change.path)), *present, _number(change.value), *flagged)
        console.print(table)
    else:
        console.print("Nothing to change.")
    console.print()
    remarks = list(no_limits(suggested))
    for line in remarks:
        console.print(plain(line))
    if remarks:
        console.print()


def _before_after(change: Suggestion, which: Literal["flagged", "succeeded", "failed"]) -> str:
    if change.after is None:
        return ""
    before = "-" if change.before is None else f"{getattr(change.before, which):,}"
    return f"{before} → {getattr(change.after, which):,}"


def _number(value: float) -> str:
    return f"{value:,}"


def no_limits(suggested: Suggested) -> Iterator[str]:
    """Which agents and tools get no limit of their own, and why."""
    for agent, turns in suggested.too_few.items():
        yield f"{agent}: {many(turns, 'healthy turn')} {'is' if turns == 1 else 'are'} too few for limits of its own."
    most = sorted(suggested.too_few_calls, key=lambda tool: (-tool.errors, tool.tool))
    for tool in most[:_TOOLS_SHOWN]:
        yield (
            f"{tool.tool}: {tool.errors:,} of {many(tool.calls, 'call')} failed, which is past its limit; fewer than "
            f"{MIN_CALLS} are too few for one of its own."
        )
    if len(most) > _TOOLS_SHOWN:
        yield f"So are those of {many(len(most) - _TOOLS_SHOWN, 'more tool')}."
    for tool in suggested.always_failing:
        yield (
            f"{tool.tool}: always fails ({tool.errors:,} of {many(tool.calls, 'call')}): mend it, or switch the alert "
            f"off for it: alerts: {{tools: {{{json.dumps(tool.tool)}: {{toolErrorShare: 1}}}}}}"
        )
