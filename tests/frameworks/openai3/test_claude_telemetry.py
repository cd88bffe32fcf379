"""The Claude Agent SDK watched without a hook: its command line sends spans and log events to ``turnwatch serve``."""

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

from frameworks.openai3 import claude_cli
from frameworks.served import Service
from frameworks.stub_model import INPUT_TOKENS, OUTPUT_TOKENS, Reply
from turnwatch.sources.spans.dialect import BY_NAME

SWITCH = "OTEL_LOG_TOOL_DETAILS"


@pytest.fixture
def service():
    # The log events are sent beside the spans and may come a little later.
    service = Service(grace_s=3)
    yield service
    service.stop()


def _results(request):
    return sum(
        1
        for message in request.body["messages"]
        for block in message["content"]
        if isinstance(block, dict) and block.get("type") == "tool_result"
    )


def _of_sub_agent(request):
    return "Search the notes" in str(request.body["messages"][0]["content"])


async def _run(model, service, home, replies, below=(), **switches):
    """Run the agent on these replies, its sub-agent on those below, and return its answer."""

    def script(number, request):
        if not request.body.get("tools"):
            return Reply("ok")  # the command line asks models for titles and the like
        mine = below if _of_sub_agent(request) else replies
        return mine[min(_results(request), len(mine) - 1)]

    model.script = script
    (home / "notes.txt").write_text("one\ntwo\n")
    telemetry = {
        "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
        "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA": "1",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_ENDPOINT": service.otlp,
    }
    options = ClaudeAgentOptions(
        model="claude-haiku-4-5",
        allowed_tools=["Bash", "Read", "Agent"],
        setting_sources=[],
        cwd=home,
        env=claude_cli.environment(model, home) | telemetry | switches,
    )
    answer = None
    async for message in query(prompt="Find three.", options=options):
        if isinstance(message, ResultMessage):
            answer = answer or message.result
    return answer


def _call(tool, **arguments):
    return Reply(calls=[(tool, arguments)])


MISSING_FILE = _call("Bash", command="cat missing.txt", description="Read it")


def _read(home):
    return _call("Read", file_path=str(home / "notes.txt"))


def _counts_of_stuck_run(service):
    service.wait_for("agent_turns_total", 1)
    assert service("agent_turns_total", agent="claude-code", stop_reason="final_answer") == 1
    assert service("agent_tool_calls_total", agent="claude-code", tool="Bash", outcome="error") == 3
    assert service("agent_tool_calls_total", agent="claude-code", tool="Read", outcome="ok") == 2
    assert service("agent_tool_calls_total") == 5
    assert service("agent_iterations_sum", agent="claude-code") == 6
    assert service("agent_model_calls_total", agent="claude-code", model="claude-haiku-4-5") == 6
    assert service("agent_tokens_total", agent="claude-code", type="input") == 6 * INPUT_TOKENS
    assert service("agent_tokens_total", agent="claude-code", type="output") == 6 * OUTPUT_TOKENS
    assert service("agent_spend_usd_total", agent="claude-code") == pytest.approx(6 * 0.0015)
    assert service("turnwatch_internal_errors_total") == 0


async def test_log_events_give_the_spans_their_arguments(model, service, tmp_path):
    replies = [MISSING_FILE] * 3 + [_read(tmp_path)] * 2 + [Reply("It is nowhere.")]
    assert await _run(model, service, tmp_path, replies, **{SWITCH: "1"}) == "It is nowhere."
    _counts_of_stuck_run(service)
    assert service("agent_repeat_results_total", agent="claude-code") == 3
    assert service("agent_duplicate_tool_calls_total", agent="claude-code", tool="Bash") == 1
    assert service("agent_loops_detected_total", agent="claude-code", kind="error_stall", severity="stuck") == 1
    assert service("turnwatch_fingerprint_missing_total") == 0
    service.stop()
    assert not [line for line in service.complaints if SWITCH in line]


@pytest.mark.parametrize(
    "switches", [{}, {SWITCH: "1", "OTEL_LOGS_EXPORTER": "none"}], ids=["no details", "no log events"]
)
async def test_arguments_that_lack_are_said_to_lack(model, service, tmp_path, switches):
    replies = [MISSING_FILE] * 3 + [_read(tmp_path)] * 2 + [Reply("It is nowhere.")]
    await _run(model, service, tmp_path, replies, **switches)
    _counts_of_stuck_run(service)
    assert service("agent_repeat_results_total") == service("agent_duplicate_tool_calls_total") == 0
    assert service("agent_loops_detected_total") == 0
    assert service("turnwatch_fingerprint_missing_total", source="claude_agent_sdk") == 5
    service.stop()
    (said,) = [line for line in service.complaints if SWITCH in line]
    assert BY_NAME["claude_agent_sdk"].switch in said


async def test_results_are_read_where_they_are_sent(model, service, tmp_path):
    replies = [_read(tmp_path)] * 6 + [Reply("Nothing new.")]
    switches = {SWITCH: "1", "OTEL_LOG_TOOL_CONTENT": "1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}
    await _run(model, service, tmp_path, replies, **switches)
    service.wait_for("agent_turns_total", 1)
    assert service("turnwatch_fingerprint_missing_total") == 0
    assert service("agent_tool_calls_total", agent="claude-code", tool="Read", outcome="ok") == 6
    assert service("agent_loops_detected_total", agent="claude-code", kind="stale_repeat", severity="stuck") == 1


async def test_a_sub_agent_is_a_turn_of_its_own(model, service, tmp_path):
    start = _call("Agent", description="Search", prompt="Search the notes.", subagent_type="general-purpose")
    below = [_read(tmp_path)] * 2 + [Reply("No note has three.")]
    await _run(model, service, tmp_path, [start, Reply("I am looking.")], below, **{SWITCH: "1"})
    # The sub-agent runs in the background; the agent is told of its end in a turn of its own.
    service.wait_for("agent_turns_total", 3)
    assert service("agent_turns_total", agent="general-purpose", stop_reason="final_answer") == 1
    assert service("agent_tool_calls_total", agent="general-purpose", tool="Read") == 2
    assert service("agent_iterations_sum", agent="general-purpose") == 3
    assert service("agent_repeat_results_total", agent="general-purpose") == 1
    assert service("agent_turns_total", agent="claude-code", stop_reason="final_answer") == 2
    assert service("agent_tool_calls_total", agent="claude-code", tool="Agent") == 1
    assert service("agent_iterations_sum", agent="claude-code") == 3
    assert service("agent_tokens_total", type="input") == 6 * INPUT_TOKENS
