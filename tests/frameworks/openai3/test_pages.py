"""What docs/frameworks has its readers copy, run as it stands."""

import os
import subprocess
import sys

import pytest

from frameworks import pages, stub_model
from frameworks.openai3 import claude_cli
from frameworks.stub_model import Reply

# By page, the name under which its agent is counted.
AGENTS = {
    "agno": "support-bot",
    "anthropic": "support-bot",
    "haystack": "support-bot",
    "langchain": "support-bot",
    "microsoft": "support-bot",
    "openai": "support-bot",
    "openai-agents": "support-bot",
    "pydantic-ai": "support-bot",
    "smolagents": "support_bot",
}

THEN = {
    "anthropic": """
client.beta.messages.tool_runner(
    model="claude-haiku-4-5",
    max_tokens=1000,
    messages=[{"role": "user", "content": "Where are the orders of C-7841?"}],
    tools=[search_orders],
).until_done()
""",
    "openai": """
while (reply := client.chat.completions.create(model="gpt-5-mini", messages=messages, tools=TOOLS)).choices:
    message = reply.choices[0].message
    if not message.tool_calls:
        break
    messages.append(message)
    for call in message.tool_calls:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "no orders"})
""",
}


def _as_the_page_answers(page, script):
    """A smolagents model answers by calling a tool."""

    def answer(number, request):
        reply = script(number, request)
        return Reply(calls=[("final_answer", {"answer": reply.text})]) if reply.text else reply

    return answer if page == "smolagents" else script


@pytest.mark.parametrize("page", AGENTS)
def test_the_blocks_of_a_page_count_and_guard(page, model, tmp_path):
    model.script = _as_the_page_answers(page, pages.first_healthy_then_a_loop)
    pages.check(page, model, tmp_path, AGENTS[page], THEN.get(page, ""))


def test_the_script_of_the_page_about_ag2(model, tmp_path):
    pages.check_script("ag2", model, tmp_path, "support-bot")


def test_the_page_about_mcp(model, tmp_path):
    both = [*pages.blocks("mcp", "Install", "python"), *pages.blocks("mcp", "Guard", "python")]
    counts, guarded = pages.run("mcp", model, tmp_path, *both)
    for number, shown in enumerate((counts, guarded), 1):
        assert shown("agent_tool_calls_total", agent="support-bot", tool=stub_model.TOOL, outcome="ok") == number
        assert shown("turnwatch_fingerprint_missing_total") == 1  # what only MCP's own spans tell of


def test_the_page_about_the_claude_agent_sdk(model, service, tmp_path):
    (tmp_path / "notes.txt").write_text("one\n")
    told = pages.exports("claude-agent-sdk")
    assert told["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://127.0.0.1:4318"
    read = Reply(calls=[("Read", {"file_path": str(tmp_path / "notes.txt")})])
    model.script = lambda number, request: Reply("One.") if "tool_result" in request.text else read
    environment = claude_cli.environment(model, tmp_path)
    telemetry = told | {"OTEL_EXPORTER_OTLP_ENDPOINT": service.otlp}
    for title, switches in (("Install", telemetry), ("Guard", {})):
        (script := tmp_path / "agent.py").write_text(*pages.blocks("claude-agent-sdk", title, "python"))
        ran = subprocess.run(
            [sys.executable, script],
            env={**os.environ, **environment, **switches},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        assert ran.stdout == "One.\n"
    service.wait_for("agent_turns_total", 1)
    assert service("agent_tool_calls_total", agent="claude-code", tool="Read", outcome="ok") == 1
    assert service("agent_iterations_sum", agent="claude-code") == 2
    assert service("turnwatch_fingerprint_missing_total") == 0
