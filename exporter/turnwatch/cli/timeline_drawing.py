"""The timeline of one turn as SVG: a lane per tool, a mark per call, where the loop is and what was wasted.

Horizontal places are percentages and vertical ones pixels: the drawing is as wide as the screen, and its marks and
words keep their size. Shapes tell the kinds apart where colours do not.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from turnwatch.cli.html_text import duration, moment, shown
from turnwatch.cli.timeline_axis import Axis, axis_of
from turnwatch.core.printable import dollars, many
from turnwatch.core.turn import TurnState
from turnwatch.core.verdict import Verdict
from turnwatch.sources.timeline import Mark, MarkKind

_MAX_LANES: Final = 10
_OTHER_TOOLS: Final = "other tools"
_HEAD: Final = 44
_LANE: Final = 38
_MARK_IN_LANE: Final = 25
_AXIS: Final = 26
_SPEND: Final = 46
_LONGEST_TOOL: Final = 40

# Shape, and what it stands for. The repeated ones are filled, what is new is round.
LEGEND: Final = (
    ("first", "called for the first time"),
    ("changed", "called again, another result"),
    ("same", "called again, the same result"),
    ("error", "failed"),
    ("error-again", "failed in the same way again"),
    ("unknown", "called again, result not known"),
    ("cached", "answered from a cache"),
    ("denied", "refused by a guard"),
)

_SHAPES: Final = {
    "first": '<circle r="4.5"/>',
    "changed": '<path d="M0-6 6 0 0 6-6 0Z"/>',
    "same": '<rect x="-5" y="-5" width="10" height="10"/>',
    "error": '<path d="M-4.5-4.5 4.5 4.5M4.5-4.5-4.5 4.5"/>',
    "error-again": '<rect x="-6" y="-6" width="12" height="12" rx="2"/><path d="M-3-3 3 3M3-3-3 3"/>',
    "unknown": '<circle r="4.5"/>',
    "cached": '<path d="M0-6 6 5H-6Z"/>',
    "denied": '<rect x="-2" y="-7" width="4" height="14"/>',
}


def definitions() -> str:
    """What every drawing of a page refers to: shapes of marks and the hatching of what was wasted. Once a page."""
    shapes = "".join(f'<g id="mark-{name}">{shape}</g>' for name, shape in _SHAPES.items())
    hatching = (
        '<pattern id="hatching" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<path class="hatch" d="M0 0V7"/></pattern>'
    )
    return f'<svg class="definitions" width="0" height="0" aria-hidden="true"><defs>{shapes}{hatching}</defs></svg>'


def mark_shape(name: str) -> str:
    """A mark by itself, for a legend."""
    return f'<svg class="sample" width="18" height="18"><use href="#mark-{name}" class="{name}" x="9" y="9"/></svg>'


def draw(turn: TurnState, marks: list[Mark]) -> str:
    """The drawing of a turn with a verdict and at least one call."""
    axis = axis_of(marks)
    lanes = _lanes(turn, marks)
    spent = marks[-1].spent_usd
    bottom = _HEAD + _LANE * (1 + max(lanes.values()))
    height = bottom + _AXIS + (_SPEND if spent else 0)
    verdict = turn.verdict
    parts = [
        f'<svg class="timeline" width="100%" height="{height}" role="img" aria-label="{_in_words(turn, marks)}">',
        *(_loop(turn, verdict, axis, bottom + (_AXIS + _SPEND if spent else 0)) if verdict is not None else ()),
        *_gaps(axis, bottom),
        *_lane_lines(lanes),
        *_ticks(axis, bottom),
        *(_spend(axis, marks, bottom + _AXIS) if spent else ()),
        *_marks(axis, marks, lanes),
        *(_flags(turn, verdict, axis) if verdict is not None else ()),
        "</svg>",
    ]
    return "".join(parts)


def _lanes(turn: TurnState, marks: list[Mark]) -> dict[str, int]:
    """Tools in the order in which they were first called; when there are many, those of the loop and the busiest."""
    calls = Counter(mark.tool for mark in marks)
    if len(calls) > _MAX_LANES:
        in_a_loop = {verdict.tool for verdict in turn.verdicts}
        busiest = sorted(calls, key=lambda tool: (tool not in in_a_loop, -calls[tool]))[: _MAX_LANES - 1]
        lanes = {tool: n for n, tool in enumerate(tool for tool in calls if tool in busiest)}
        others = len(lanes)
        lanes.update({_OTHER_TOOLS: others})
        lanes.update({tool: others for tool in calls if tool not in lanes})
        return lanes
    return {tool: n for n, tool in enumerate(calls)}


def _lane_lines(lanes: dict[str, int]) -> list[str]:
    parts: list[str] = []
    named: set[int] = set()
    for tool, lane in lanes.items():
        if lane in named:
            continue
        named.add(lane)
        top = _HEAD + _LANE * lane
        y = top + _MARK_IN_LANE
        parts.append(f'<line class="lane" x1="0" x2="100%" y1="{y}" y2="{y}"/>')
        parts.append(f'<text class="tool" x="4" y="{top + 12}">{shown(tool, _LONGEST_TOOL) or "(no name)"}</text>')
    return parts


def _loop(turn: TurnState, verdict: Verdict, axis: Axis, bottom: int) -> list[str]:
    first, detected, end = axis.place(verdict.first_call), axis.place(verdict.detected_call), axis.places[-1]
    top = _HEAD - 2
    height = bottom - top
    parts = [_band("loop", first, detected, top, height)]
    if verdict.severity == "stuck" and turn.wasted_tool_calls:
        parts += [_band("wasted", detected, end + 1.5, top, height), _band("hatched", detected, end + 1.5, top, height)]
    return parts


def _band(name: str, left: float, right: float, top: int, height: int) -> str:
    return f'<rect class="{name}" x="{left:.2f}%" width="{max(0.0, right - left):.2f}%" y="{top}" height="{height}"/>'


def _flags(turn: TurnState, verdict: Verdict, axis: Axis) -> list[str]:
    wasted = f", {many(turn.wasted_tool_calls, 'call')} wasted after it" if turn.wasted_tool_calls else ""
    # Narrow screens have no room for the end of it.
    seen = f'seen at call {verdict.detected_call:,}<tspan class="wide">{wasted}</tspan>'
    flags = (
        ("starts", axis.place(verdict.first_call), 14, f"loop starts at call {verdict.first_call:,}"),
        ("detected", axis.place(verdict.detected_call), 32, seen),
    )
    parts: list[str] = []
    for name, place, y, words in flags:
        side, away = ("end", -6) if place > 62 else ("start", 6)
        parts.append(f'<line class="{name}" x1="{place:.2f}%" x2="{place:.2f}%" y1="{y - 10}" y2="{_HEAD - 2}"/>')
        parts.append(
            f'<text class="flag {name}" x="{place:.2f}%" dx="{away}" y="{y}" text-anchor="{side}">{words}</text>'
        )
    return parts


def _gaps(axis: Axis, bottom: int) -> list[str]:
    parts: list[str] = []
    for left, right, left_out in axis.gaps:
        middle = (left + right) / 2
        parts.append(
            f'<g class="gap"><title>{many(left_out, "call")} not drawn</title>'
            f'<line x1="{middle:.2f}%" x2="{middle:.2f}%" y1="{_HEAD}" y2="{bottom}"/>'
            f'<text x="{middle:.2f}%" y="{_HEAD + 12}" text-anchor="middle">+{left_out:,} calls</text></g>'
        )
    return parts


def _ticks(axis: Axis, bottom: int) -> list[str]:
    parts = [f'<line class="axis" x1="0" x2="100%" y1="{bottom}" y2="{bottom}"/>']
    for place, label in axis.ticks:
        side = "start" if place < 5 else "end" if place > 95 else "middle"
        parts.append(f'<line class="axis" x1="{place:.2f}%" x2="{place:.2f}%" y1="{bottom}" y2="{bottom + 4}"/>')
        parts.append(f'<text class="tick" x="{place:.2f}%" y="{bottom + 17}" text-anchor="{side}">{label}</text>')
    return parts


def _spend(axis: Axis, marks: list[Mark], top: int) -> list[str]:
    """What the turn had cost by each call, as steps."""
    most = marks[-1].spent_usd
    steps = [f"M{axis.places[0]:.2f} 100"]
    steps += [
        f"H{place:.2f}V{100 - 96 * mark.spent_usd / most:.1f}" for place, mark in zip(axis.places, marks, strict=True)
    ]
    line = "".join(steps)
    height = _SPEND - 8
    area = f'<path class="area" d="{line}V100Z"/><path class="line" d="{line}"/>'
    box = f'x="0" y="{top + 4}" width="100%" height="{height}" viewBox="0 0 100 100" preserveAspectRatio="none"'
    return [
        f'<svg class="spend" {box}>{area}</svg>',
        f'<text class="tick" x="4" y="{top + 14}">spend so far: {dollars(most)} at the last call</text>',
    ]


def _marks(axis: Axis, marks: list[Mark], lanes: dict[str, int]) -> list[str]:
    start = marks[0].at
    return [
        f'<use href="#mark-{_shape_of(mark)}" class="{_shape_of(mark)}" x="{place:.2f}%"'
        f' y="{_HEAD + _LANE * lanes[mark.tool] + _MARK_IN_LANE}"><title>{_about(mark, start)}</title></use>'
        for mark, place in zip(marks, axis.places, strict=True)
    ]


def _shape_of(mark: Mark) -> str:
    return "error-again" if mark.kind is MarkKind.ERROR and mark.repeats else mark.kind


def _about(mark: Mark, start: float | None) -> str:
    """What is said of a call beside the pointer."""
    lines = [f"Call {mark.number:,}: {shown(mark.tool, _LONGEST_TOOL)}", dict(LEGEND)[_shape_of(mark)]]
    if mark.at is not None and mark.at > 0:
        since = f" (+{duration(mark.at - start)})" if start is not None and mark.at >= start else ""
        lines.append(f"{moment(mark.at)} UTC{since}")
    lines.append(f"input {shown(mark.input_hash)}" if mark.input_hash else "arguments not captured")
    if mark.result_size is not None:
        lines.append(f"result {many(mark.result_size, 'character')}")
    return "&#10;".join(lines)


def _in_words(turn: TurnState, marks: list[Mark]) -> str:
    """The drawing for those who do not see it."""
    kinds = Counter(_shape_of(mark) for mark in marks)
    words = dict(LEGEND)
    parts = [f"{count:,} {words[kind]}" for kind, count in kinds.most_common()]
    return shown(f"Timeline of {many(turn.tool_calls, 'tool call')}: {'; '.join(parts)}.", 400)
