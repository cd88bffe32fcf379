"""Secrets in arguments and results reach no exception, log, nudge, span, metric, page or printed object of ours."""

from __future__ import annotations

import json
import logging
import traceback
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from typer.testing import CliRunner

import turnwatch as tw
from turnwatch.cli import app_for
from turnwatch.guards.from_settings import open_guard

SECRET = "sk-live-4242-hunter2"
ARGUMENTS = {"q": f"password {SECRET}", "api_key": SECRET, "nested": {"card": [SECRET]}}


@pytest.fixture
def spans(monkeypatch):
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return exporter


class Outlets:
    """Everything that leaves the process, and everything that is printed."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, thing: object) -> None:
        self.texts += [str(thing), repr(thing)]

    def caught(self, error: tw.TurnwatchError) -> None:
        self.note(error)
        self.texts += traceback.format_exception(error)
        if isinstance(error, tw.TurnStopped):
            self.note(error.to_dict())
            self.note(error.partial)
            self.note(error.details)


def answer(**arguments: object) -> str:
    return f"no rows for {arguments}"


def time_out(**arguments: object) -> str:
    raise TimeoutError(f"gave up on {arguments}")


def spill(turn: tw.Turn) -> bool:
    raise ValueError(f"a judge that says {SECRET}")


def run_into(outlets: Outlets, gateway: tw.ToolGateway, turn: tw.Turn, tool: str, times: int) -> None:
    for _ in range(times):
        try:
            with turn.model_call("claude-sonnet-4-5") as call:
                call.usage(input_tokens=10, output_tokens=10)
            gateway.call(tool, ARGUMENTS)
        except tw.TurnwatchError as error:
            outlets.caught(error)
        except TimeoutError:
            pass  # the tool's own exception is the tool's own business
        nudge = turn.take_nudge()
        if nudge is not None:
            outlets.note(nudge)


def test_nothing_planted_comes_out(make_watch, caplog, capsys, spans):
    caplog.set_level(logging.DEBUG)
    outlets = Outlets()
    watch = make_watch(hash_key="a key")
    policies: list[dict[str, object]] = [
        {"on_loop": ("page", "nudge", "stop")},
        {"on_loop": "stop", "limits": tw.Limits(max_tool_calls=2)},
        {"on_loop": "observe", "limits": tw.Limits(max_iterations=2)},
        {"on_loop": "observe", "limits": tw.Limits(max_usd=0.0001)},
        {"on_loop": "stop", "fail_closed": True},
    ]
    for policy in policies:
        gateway = tw.ToolGateway(
            impls={"search": answer, "charge": time_out, "find": time_out},
            watch=watch,
            overrides={"charge": {"side_effect": True}},
            sleep=lambda _: None,
        )
        for tool in ("search", "charge", "find", "nope"):
            with tw.turn(
                "a", "c-1", watch=watch, pager=outlets.note, on_warning=outlets.note, goal=spill, **policy
            ) as turn:
                run_into(outlets, gateway, turn, tool, 8)
                outlets.note(turn.explain())
                outlets.note(turn.state.verdicts)
                outlets.note(gateway)
        outlets.note(gateway._scratchpads)
    for span in spans.get_finished_spans():
        outlets.texts.append(span.to_json())
    printed = capsys.readouterr()
    outlets.texts += [caplog.text, printed.out, printed.err, str(watch.meter.counters.keys()), str(watch.gauges())]
    for cells in watch.meter.counters.values():
        outlets.note(list(cells))

    everything = "\n".join(outlets.texts)
    for expected in ("LoopDetected", "SideEffectHeld", "UnknownToolError", "ToolBudgetExceeded", "StepLimitExceeded"):
        assert expected in everything, "the test must have been there"
    assert "BudgetWarning" in everything
    assert "Page(" in everything
    assert "tool.execute" in everything
    assert "hunter2" not in everything
    assert "password" not in everything


def test_the_scratchpad_is_the_one_place_that_has_arguments_and_does_not_print_them(watch):
    gateway = tw.ToolGateway(impls={"search": answer}, watch=watch)
    gateway.call("search", ARGUMENTS)
    assert SECRET in gateway.scratchpad()
    (scratchpad,) = gateway._scratchpads.values()
    assert repr(scratchpad) == "<Scratchpad of 1 calls>"


def test_a_partial_result_is_handed_over_and_not_printed(watch):
    with tw.turn("a", watch=watch, limits=tw.Limits(max_tool_calls=1)) as turn:
        turn.call_tool("search", answer, **ARGUMENTS)
        with pytest.raises(tw.ToolBudgetExceeded) as stopped:
            turn.call_tool("search", answer, **ARGUMENTS)
    assert SECRET in str(stopped.value.partial.results)
    assert SECRET not in repr(stopped.value.partial)


def test_addresses_with_passwords_are_not_printed_with_the_settings():
    settings = tw.Settings(redis_url=f"redis://:{SECRET}@localhost", hash_key=SECRET)
    settings = settings.model_copy(update={"page": settings.page.model_copy(update={"webhook_url": SECRET})})
    assert SECRET not in repr(settings)


def test_guards_are_opened_by_the_package_itself(watch):
    with tw.turn("a", watch=watch) as turn:
        assert type(turn.state.guard) is type(open_guard(turn.state, {}))


def test_a_fault_inside_logs_where_it_was_and_not_what_it_met(watch, caplog, monkeypatch):
    caplog.set_level(logging.DEBUG)

    def fail(*_: object, **__: object) -> None:
        raise ValueError(f"cannot take {SECRET}")

    monkeypatch.setattr("turnwatch.core.engine.Engine.observe", fail)
    with tw.turn("a", watch=watch) as turn:
        turn.call_tool("search", answer, **ARGUMENTS)
    assert "ValueError" in caplog.text
    assert "test_secrets_stay_in.py" in caplog.text, "the traceback is there"
    assert "hunter2" not in caplog.text


def write_runs(folder: Path) -> list[str]:
    """Runs of three formats, each with a loop and the secret in every text, and one that cannot be read."""
    arguments = json.dumps(ARGUMENTS)
    chat, blocks = [{"role": "user", "content": SECRET}], [{"role": "user", "content": SECRET}]
    for number in range(6):
        asked = {"id": f"c{number}", "type": "function", "function": {"name": "search", "arguments": arguments}}
        chat += [
            {"role": "assistant", "content": SECRET, "tool_calls": [asked]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"no rows for {SECRET}"},
        ]
        use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": f"login {SECRET}"}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": SECRET, "is_error": True}
        blocks += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    texts = {
        "chat.json": json.dumps({"messages": chat}),
        "blocks.json": json.dumps({"messages": blocks}),
        "broken.jsonl": f'{json.dumps({"messages": chat})}\n{{"messages": "{SECRET}", \n{{"what": ["{SECRET}"]}}\n',
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return [str(folder / name) for name in texts]


@pytest.mark.parametrize(
    "command",
    [
        ["scan"],
        ["scan", "--json"],
        ["scan", "--html", "page.html"],
        ["scan", "--junit", "report.xml", "--fail-on-loop"],
        ["tune"],
    ],
    ids=" ".join,
)
def test_no_report_on_files_has_anything_planted_in_it(command, tmp_path, monkeypatch):
    runs = write_runs(tmp_path)
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    ran = CliRunner().invoke(app_for(command), [*command, *runs])
    said = ran.output + "".join(path.read_text() for path in (tmp_path / "out").iterdir())
    assert "Bash" in said
    assert "hunter2" not in said
    assert "password" not in said
