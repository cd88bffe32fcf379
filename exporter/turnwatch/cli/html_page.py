"""The page of ``turnwatch scan --html``: one file that asks nothing of the network and runs no script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable
from importlib.resources import files
from typing import Final, TypeVar

from turnwatch.cli.html_text import duration, large, moment, shown
from turnwatch.cli.timeline_drawing import LEGEND, definitions, draw, mark_shape
from turnwatch.core.printable import dollars, many
from turnwatch.core.turn import TurnState
from turnwatch.core.verdict import Verdict, explain
from turnwatch.sources.timeline import Timeline
from turnwatch.sources.totals import AgentTotals, ToolTotals, Totals

_ROWS: Final = 12
_KINDS: Final = {
    "repeat": "the same call again",
    "stale_repeat": "the same call, the same result",
    "cycle": "going round in a circle",
    "error_stall": "failing in the same way",
    "empty_results": "searching and finding nothing",
    "unknown_tool": "calling tools that do not exist",
    "monologue": "saying the same again",
    "window": "the same few calls",
}

_T = TypeVar("_T")
_Column = tuple[str, Callable[[_T], str]]


def page(
    totals: Totals,
    *,
    cards: list[str],
    left_out: int,
    times: tuple[float, float] | None,
    unread: list[str],
    unread_more: int,
) -> str:
    """The whole page.

    Args:
        totals: What agents and tools did.
        cards: The turns to show (see ``turn_card``), worst first.
        left_out: How many stuck or warned turns are not among them.
        times: When the first turn began and the last one ended, in seconds since the epoch, where known.
        unread: What could not be read.
        unread_more: How many more such things there were.
    """
    style = files(__package__).joinpath("html_page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return "".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; ',
            f"style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'\">\n",
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n',
            f"<title>turnwatch scan: {_headline(totals.all)}</title>\n",
            f"<style>{style}</style>\n</head>\n<body>\n<main>\n",
            definitions(),
            _head(totals.all, times),
            _tiles(totals.all),
            _turns(cards, left_out),
            '<div class="tables">\n',
            _agents(totals.agents),
            _tools(totals.tools),
            "</div>\n",
            _unread(unread, unread_more),
            _foot(),
            "</main>\n</body>\n</html>\n",
        )
    )


def turn_card(source: str, line: int | None, turn: TurnState, timeline: Timeline | None) -> str:
    """One turn with a verdict: what it was, what is wrong with it, and its drawing.

    Args:
        source: The file.
        line: Where in the file the turn starts, where known.
        turn: The turn, which has a verdict.
        timeline: Its calls, where they were kept.
    """
    verdict = turn.verdict
    assert verdict is not None
    return "".join(
        (
            f'<article class="turn {verdict.severity}">\n<header>\n',
            f'<h3><span class="badge">{verdict.severity}</span> {_agent(turn)}</h3>\n',
            f'<p class="where">{" · ".join(_where(source, line, turn))}</p>\n</header>\n',
            f'<p class="reason"><strong>{_KINDS[verdict.kind].capitalize()}</strong> ',
            f"<code>{verdict.kind}</code><br>{shown(explain(verdict), 1_000)}</p>\n",
            _facts(turn),
            _drawing(turn, timeline),
            _other_verdicts(turn.verdicts, verdict),
            "</article>\n",
        )
    )


def _headline(all_turns: AgentTotals) -> str:
    if not all_turns.turns:
        return "no turn of an agent was found"
    are = "is" if all_turns.stuck == 1 else "are"
    if all_turns.stuck:
        return f"{all_turns.stuck:,} of {many(all_turns.turns, 'turn')} {are} stuck"
    return f"none of {many(all_turns.turns, 'turn')} is stuck"


def _head(all_turns: AgentTotals, times: tuple[float, float] | None) -> str:
    headline = _headline(all_turns)
    lines = [
        f'<header class="page">\n<p class="name">turnwatch scan</p>\n<h1>{headline[0].upper()}{headline[1:]}</h1>\n'
    ]
    if all_turns.wasted_tool_calls:
        saved = f" and {dollars(all_turns.wasted_usd)}" if all_turns.wasted_usd else ""
        lines.append(
            '<p class="lead">A guard that stops a turn when it is stuck would have saved'
            f" {many(all_turns.wasted_tool_calls, 'tool call')}{saved}.</p>\n"
        )
    elif all_turns.warned:
        lines.append(f'<p class="lead">{many(all_turns.warned, "turn")} began to repeat itself.</p>\n')
    if times is not None:
        lines.append(f'<p class="when">{moment(times[0])} to {moment(times[1])} UTC</p>\n')
    if all_turns.turns:
        lines.append(
            '<nav><a href="#turns">Worst turns</a> <a href="#agents">Agents</a> <a href="#tools">Tools</a></nav>\n'
        )
    return "".join((*lines, "</header>\n"))


def _tiles(t: AgentTotals) -> str:
    share = f"{t.repeats / t.tool_calls:.0%} made before in their turn" if t.tool_calls else ""
    tiles = [
        ("stuck turns", large(t.stuck), f"of {large(t.turns)}; {t.warned:,} more warned", "bad" if t.stuck else ""),
        ("tool calls", large(t.tool_calls), share, ""),
        ("model calls", large(t.iterations), f"{large(t.tokens)} tokens" if t.tokens else "tokens not known", ""),
        ("spend", dollars(t.spend_usd) if t.spend_usd else "not known", "model calls with a known price", ""),
        (
            "wasted",
            many(t.wasted_tool_calls, "call"),
            f"{dollars(t.wasted_usd)} after the first stuck verdict"
            if t.wasted_usd
            else "after the first stuck verdict",
            "bad" if t.wasted_tool_calls else "",
        ),
    ]
    if t.missing_arguments:
        tiles.append(("not judged", many(t.missing_arguments, "call"), "without arguments in the file", ""))
    cells = "".join(
        f'<div class="tile {kind}"><dt>{name}</dt><dd><b>{value}</b><span>{more}</span></dd></div>\n'
        for name, value, more, kind in tiles
    )
    return f'<dl class="tiles">\n{cells}</dl>\n'


def _turns(cards: list[str], left_out: int) -> str:
    if not cards:
        return '<section id="turns">\n<p class="nothing">No turn was stuck, and none was warned of.</p>\n</section>\n'
    drawn = "".join(cards)
    legend = "".join(f"<li>{mark_shape(name)}{words}</li>" for name, words in LEGEND if f'"#mark-{name}"' in drawn)
    bands = (
        '<li><svg class="sample" width="26" height="16"><rect class="loop" width="26" height="16"/></svg>'
        "from the start of the loop until it was seen</li>"
        '<li><svg class="sample" width="26" height="16"><rect class="wasted" width="26" height="16"/>'
        '<rect class="hatched" width="26" height="16"/></svg>wasted: after that</li>'
    )
    more = (
        f'<p class="left-out">{many(left_out, "more turn")} with a verdict, less wasteful, '
        f"{'is' if left_out == 1 else 'are'} not drawn.</p>\n"
        if left_out
        else ""
    )
    return (
        f'<section id="turns">\n<h2>Worst turns</h2>\n{more}'
        f'<ul class="legend" aria-label="Marks of the timelines">{legend}{bands}</ul>\n{drawn}</section>\n'
    )


def _where(source: str, line: int | None, turn: TurnState) -> Iterable[str]:
    yield shown(source if line is None else f"{source}:{line}")
    yield f"turn {shown(turn.turn_id, 60)}"
    if turn.conversation_id and turn.conversation_id != turn.turn_id:
        yield f"conversation {shown(turn.conversation_id, 60)}"
    if turn.parent is not None:
        yield f"sub-agent of {_agent(turn.parent)}"
    if turn.started > 0:
        yield f"{moment(turn.started)} UTC"
        if turn.elapsed_seconds >= 1:
            yield duration(turn.elapsed_seconds)


def _agent(turn: TurnState) -> str:
    return shown(turn.agent, 60) or "agent without a name"


def _facts(turn: TurnState) -> str:
    facts = [
        (many(turn.tool_calls, "tool call"), f"{turn.repeats:,} made before"),
        (many(turn.iterations, "model call"), f"{large(turn.usage.total)} tokens" if turn.usage is not None else ""),
    ]
    if turn.spend_usd:
        facts.append((dollars(turn.spend_usd), "spent"))
    if turn.wasted_tool_calls or turn.wasted_usd:
        wasted = f"and {dollars(turn.wasted_usd)} wasted" if turn.wasted_usd else "wasted"
        facts.append((many(turn.wasted_tool_calls, "call"), wasted))
    facts.append(("ended", shown((turn.stop_reason or "unknown").replace("_", " "))))
    return '<ul class="facts">' + "".join(f"<li><b>{one}</b> {more}</li>" for one, more in facts) + "</ul>\n"


def _drawing(turn: TurnState, timeline: Timeline | None) -> str:
    marks = timeline.marks() if timeline is not None else []
    if timeline is None or not marks:
        why = (
            "the agent made no call"
            if not turn.tool_calls
            else "too many turns were open at once to keep the calls of this one"
        )
        return f'<p class="undrawn">No timeline: {why}.</p>\n'
    left_out = timeline.calls - len(marks)
    note = (
        f'<p class="undrawn">{left_out:,} of its {many(timeline.calls, "call")} are not drawn.</p>\n'
        if left_out
        else ""
    )
    return f"<figure>{draw(turn, marks)}</figure>\n{note}"


def _other_verdicts(verdicts: list[Verdict], worst: Verdict) -> str:
    others = [verdict for verdict in verdicts if verdict is not worst]
    if not others:
        return ""
    items = "".join(
        f"<li><b>{verdict.severity}</b> <code>{verdict.kind}</code> {shown(explain(verdict), 1_000)}</li>"
        for verdict in others
    )
    return f"<details><summary>{many(len(others), 'other verdict')}</summary><ul>{items}</ul></details>\n"


def _agents(agents: dict[str, AgentTotals]) -> str:
    rows = sorted(
        agents.items(), key=lambda row: (-row[1].wasted_tool_calls, -row[1].stuck, -row[1].tool_calls, row[0])
    )
    columns: list[_Column[AgentTotals]] = [
        ("turns", lambda t: f"{t.turns:,}"),
        ("stuck", lambda t: _bad(t.stuck)),
        ("warned", lambda t: f"{t.warned:,}"),
        ("model calls", lambda t: f"{t.iterations:,}"),
        ("tool calls", lambda t: f"{t.tool_calls:,}"),
        ("repeats", lambda t: f"{t.repeats:,}"),
        ("spend", lambda t: dollars(t.spend_usd) if t.spend_usd else ""),
        ("wasted calls", lambda t: _bad(t.wasted_tool_calls)),
        ("wasted", lambda t: dollars(t.wasted_usd) if t.wasted_usd else ""),
    ]
    return _table("Agents", "agent", rows, columns)


def _tools(tools: dict[str, ToolTotals]) -> str:
    rows = sorted(tools.items(), key=lambda row: (-row[1].wasted, -row[1].same, -row[1].calls))
    columns: list[_Column[ToolTotals]] = [
        ("calls", lambda t: f"{t.calls:,}"),
        ("failed", lambda t: f"{t.errors:,}"),
        ("again, changed", lambda t: f"{t.changed:,}"),
        ("again, the same", lambda t: f"{t.same:,}"),
        ("share the same", lambda t: _bar(t.same / t.calls if t.calls else 0.0)),
        ("turns stuck here", lambda t: _bad(t.stuck_turns)),
        ("wasted calls", lambda t: _bad(t.wasted)),
    ]
    return _table("Tools", "tool", rows, columns)


def _table(title: str, first: str, rows: list[tuple[str, _T]], columns: list[_Column[_T]]) -> str:
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{name}</th>' for name, _ in columns)
    body = "".join(
        f'<tr><th scope="row">{shown(name, 60) or "(no name)"}</th>'
        + "".join(f"<td>{cell(value)}</td>" for _, cell in columns)
        + "</tr>\n"
        for name, value in rows[:_ROWS]
    )
    more = f'<p class="left-out">{many(len(rows) - _ROWS, f"more {first}")}.</p>\n' if len(rows) > _ROWS else ""
    return (
        f'<section id="{first}s">\n<h2>{title}</h2>\n<div class="scrolls"><table>\n'
        f'<thead><tr><th scope="col">{first}</th>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody>\n</table></div>\n{more}</section>\n"
    )


def _bad(number: int) -> str:
    return f"<b>{number:,}</b>" if number else "0"


def _bar(share: float) -> str:
    bars = f'<rect class="of" width="64" height="10"/><rect class="part" width="{64 * share:.1f}" height="10"/>'
    words = f'<span class="share">{share:.0%}</span>'
    return f'<svg class="bar" width="64" height="10" aria-hidden="true">{bars}</svg>{words}'


def _unread(unread: list[str], more: int) -> str:
    if not unread:
        return ""
    items = "".join(f"<li>{shown(line, 300)}</li>" for line in unread)
    rest = f"<p>And {more:,} more.</p>" if more else ""
    return f"<section>\n<h2>Not read</h2>\n<ul>{items}</ul>{rest}\n</section>\n"


def _foot() -> str:
    return (
        "<footer>\n<p>A turn is what an agent does between one message of its user and its answer. A call is made again"
        " when the same tool was called with the same arguments before in the turn. It is stuck when its calls bring"
        " nothing new: the same result while nothing was changed, the same error, the same circle. Dollars are those"
        " of model calls, at published prices unless the file says.</p>\n<p>This page holds names, numbers, sizes and"
        " hashes, and no arguments or results.</p>\n</footer>\n"
    )
