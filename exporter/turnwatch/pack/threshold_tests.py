"""promtool tests of a configuration's thresholds: for everybody, and for each agent and tool with a number of its own.

They work the numbers out for themselves, so that they tell when a rule does not hold what the configuration says.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from turnwatch.pack.moved_threshold import moved_with

ANYBODY: Final = "an-agent"
ANY_TOOL: Final = "a-tool"
STEP_SECONDS: Final = 15
_MINUTE_STEPS: Final = 60 // STEP_SECONDS
"""Samples between two evaluations."""
_RATE_STEPS: Final = 16 * _MINUTE_STEPS
"""Longer than the quarter of an hour that rates look back over."""
_JUST: Final = 0.02
"""By how much a rate is kept under its threshold, and put over it: extrapolation must not decide."""
_MATCHER: Final = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"')

Json = dict[str, Any]
Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Whom:
    """An agent, maybe with one of its tools."""

    agent: str = ANYBODY
    tool: str | None = None

    @property
    def labels(self) -> dict[str, str]:
        """What its series have."""
        return {"agent": self.agent} | ({} if self.tool is None else {"tool": self.tool})


# Gauges of one turn or conversation, each with its alert and the key of its threshold.
_GAUGES: Final = (
    ("AgentIterationsHigh", "agent_turn_iterations_max", "iterations"),
    ("AgentTurnTokensHigh", "agent_turn_tokens_max", "turnTokens"),
    ("AgentTurnStuckOpen", "agent_open_turn_age_seconds_max", "openTurnSeconds"),
    ("AgentTurnSpendHigh", "agent_turn_spend_usd_max", "turnSpendUsd"),
    ("AgentConversationRunaway", "agent_conversation_model_calls_max", "conversationModelCalls"),
    ("AgentConversationRunaway", "agent_conversation_spend_usd_max", "conversationSpendUsd"),
    ("AgentConversationRunaway", "agent_conversation_identical_calls_max", "conversationIdenticalCalls"),
)


def threshold_tests(config: Config) -> Json | None:
    """Return a promtool test file for the rules of a whole ``_config``; None where its selector is past guessing.

    Growth, spikes and latency are left out: their thresholds are multiples, or need a bucket's bound.
    """
    target = labels_that_match(config["selector"])
    if target is None:
        return None
    tests = [test for test in _tests(config, target) if config["enabled"][test["name"].partition(" ")[0]]]
    return {"rule_files": ["../turnwatch.rules.yaml"], "evaluation_interval": "1m", "tests": tests}


def labels_that_match(selector: str) -> dict[str, str] | None:
    """Return labels of a series that ``selector`` selects, or None where none could be found."""
    labels = {}
    for name, operator, value in _MATCHER.findall(selector):
        if operator == "=":
            labels[name] = value
        elif operator == "=~":
            guesses = [re.sub(r"\.[+*]", "x", guess.replace("\\\\", "\\")) for guess in value.split("|")]
            fitting = next((guess for guess in guesses if re.fullmatch(value.replace("\\\\", "\\"), guess)), None)
            if fitting is None:
                return None
            labels[name] = fitting
    return {"job": "agents", **labels}


def _tests(config: Config, target: Mapping[str, str]) -> Iterator[Json]:
    agents = [_Whom(), *(_Whom(name) for name in config["agents"])]
    tools = [_Whom(who.agent, ANY_TOOL) for who in agents] + [_Whom(tool=name) for name in config["tools"]]
    test = partial(_test, target=target)
    polling = [who for who in tools if config["tools"].get(who.tool, {}).get("polling")]
    calls = {who: _calls(_limit(config, "identicalCalls", None, who)) for who in tools}
    yield test("AgentDuplicateToolCalls", "critical", calls, but_for=polling)
    for severity in ("warning", "critical"):
        for alert, gauge, key in _GAUGES:
            if severity == "critical" and not isinstance(config["thresholds"][key], Mapping):
                continue
            limits = {who: _limit(config, key, severity, who) for who in agents}
            just_above = 0.01 if key.endswith("Usd") else 1
            yield test(
                alert, severity, {who: {gauge: _steps_up(limit, limit + just_above)} for who, limit in limits.items()}
            )
        rates = {who: _spend(_limit(config, "spendUsdPerHour", severity, who)) for who in agents}
        yield test("AgentSpendRateHigh", severity, rates, steps=_RATE_STEPS)
        shares = {who: _limit(config, "toolErrorShare", severity, who) for who in tools}
        yield test("AgentToolErrorsHigh", severity, _errors("tool", shares, config), steps=_RATE_STEPS)
        shares = {who: _limit(config, "modelErrorShare", severity, who) for who in agents}
        yield test("AgentModelErrorsHigh", severity, _errors("model", shares, config), steps=_RATE_STEPS)


def _steps_up(first: float, second: float) -> str:
    return f"{first}x{_MINUTE_STEPS} {second}x{_MINUTE_STEPS}"


def _speeds_up(first: float, second: float) -> str:
    return f"0+{first}x{_RATE_STEPS} {first * _RATE_STEPS + second}+{second}x{_RATE_STEPS}"


def _calls(limit: float) -> dict[str, str]:
    """The same call with the same result, as often as it may be, then once more."""
    values = _steps_up(limit, limit + 1)
    return {"agent_turn_identical_calls_max": values, "agent_turn_stale_calls_max": values}


def _spend(usd_per_hour: float) -> dict[str, str]:
    slow, fast = (usd_per_hour * (1 + part) * STEP_SECONDS / 3600 for part in (-_JUST, _JUST))
    return {'agent_spend_usd_total{model="a-model"}': _speeds_up(slow, fast)}


def _errors(callee: str, shares: Mapping[_Whom, float], config: Config) -> dict[_Whom, dict[str, str]]:
    # Three times as many calls as it takes to say anything.
    calls = max(1.0, 3 * config["minimum"][f"{callee}Calls"] / _RATE_STEPS)
    labels = 'model="a-model", ' if callee == "model" else ""
    series = {}
    for who, share in shares.items():
        few, many = (calls * max(0.0, share + part) for part in (-_JUST, _JUST))
        if many <= calls:
            series[who] = {
                f'agent_{callee}_calls_total{{{labels}outcome="error"}}': _speeds_up(few, many),
                f'agent_{callee}_calls_total{{{labels}outcome="ok"}}': _speeds_up(calls - few, calls - many),
            }
    return series


def _limit(config: Config, key: str, severity: str | None, who: _Whom) -> float:
    """The threshold that holds for somebody: the tool's own number, or the agent's, or the one for everybody."""
    standard = config["thresholds"][key]
    own = config["tools"].get(who.tool, {}).get(key) if who.tool else None
    if own is None:
        own = config["agents"].get(who.agent, {}).get(key)
    if own is None and key == "conversationModelCalls":
        own = _conversation_of(config, who)
    if severity is None or not isinstance(standard, Mapping):
        return _plain(standard if own is None else own)
    own = own if isinstance(own, Mapping) else {} if own is None else {"warning": own}
    if severity in own:
        return _plain(own[severity])
    if severity == "critical" and "warning" in own:
        return _plain(moved_with(key, standard, own["warning"]))
    return _plain(standard[severity])


def _conversation_of(config: Config, who: _Whom) -> int | None:
    """Whoever may take more model calls a turn may take more a conversation."""
    own = config["agents"].get(who.agent, {}).get("iterations")
    allowed = own.get("warning") if isinstance(own, Mapping) else own
    if allowed is None:
        return None
    thresholds = config["thresholds"]
    scaled = thresholds["conversationModelCalls"]["warning"] * allowed
    return math.ceil(float(scaled / thresholds["iterations"]["warning"]))


def _plain(value: float) -> float:
    """As a rule file says it: six digits, no point that is not needed."""
    short = float(f"{value:g}") if value != int(value) else value
    return int(short) if short == int(short) else short


def _test(
    alert: str, severity: str, series_of: Mapping[_Whom, Mapping[str, str]], *,
    target: Mapping[str, str], steps: int = _MINUTE_STEPS, but_for: Collection[_Whom] = (),
) -> Json:  # fmt: skip
    """An alert of this severity fires for nobody in the first half of the series, in the second for all but some."""
    by = "alertname, severity, agent, tool"
    expr = f'count by ({by}) (ALERTS{{alertname="{alert}", severity="{severity}", alertstate="firing"}})'
    own = {"alertname": alert, "severity": severity}
    gauges = ", ".join(sorted({name.partition("{")[0] for series in series_of.values() for name in series}))
    return {
        "name": f"{alert} threshold: {severity}, by {gauges}",
        "interval": f"{STEP_SECONDS}s",
        "input_series": [
            {"series": _series(name, {**target, **who.labels}), "values": values}
            for who, series in series_of.items()
            for name, values in series.items()
        ],
        "promql_expr_test": [
            {"eval_time": f"{steps * STEP_SECONDS}s", "expr": expr, "exp_samples": []},
            {
                "eval_time": f"{2 * steps * STEP_SECONDS}s",
                "expr": expr,
                "exp_samples": [
                    {"labels": _series("", own | who.labels), "value": 1} for who in series_of if who not in but_for
                ],
            },
        ],
    }


def _series(name: str, labels: Mapping[str, str]) -> str:
    name, _, own = name.partition("{")
    more = ", ".join(f"{label}={json.dumps(value, ensure_ascii=False)}" for label, value in labels.items())
    return f"{name}{{{own.rstrip('}') + ', ' if own else ''}{more}}}"
