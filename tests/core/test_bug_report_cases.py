"""Sequences that public bug reports describe, rebuilt: what must be a loop by which call, and what must not be one."""

import string

import pytest
from tests.core.bug_report import Case, did

from turnwatch.core.events import MISSING
from turnwatch.core.turn import TurnState
from turnwatch.core.watch import Watch
from turnwatch.settings import Settings


def letters(number):
    """A word of its own for every number."""
    return "".join(string.ascii_lowercase[(number * step + step) % 26] for step in range(1, 9))


CASES = {
    "a check in a shell is made again with the same answer": Case(
        "bytedance/deer-flow#1055",
        [did("bash", {"command": "node -e 'require(\"left-pad\")'"}, "fine") for _ in range(8)],
        repeats=7,
        stuck_by=4,
        quiet_before=3,
        kinds={"stale_repeat"},
    ),
    "the same memory is saved over and over": Case(
        "langchain-ai/langgraph#4231",
        [
            did("vector_search", {"q": "refunds"}, "leaflet 7"),
            *(did("save_memory", {"text": "wants a refund"}, "stored") for _ in range(7)),
        ],
        repeats=6,
        stuck_by=5,
        quiet_before=4,
        kinds={"stale_repeat"},
    ),
    "one reply asks for the same call three times, keys in another order": Case(
        "langchain-ai/langchain#38708",
        [
            did("get_tide", {"port": "Bergen", "unit": "m"}, "1.2", round=1),
            did("get_tide", {"unit": "m", "port": "Bergen"}, "1.2", round=1),
            did("get_tide", {"port": "Bergen", "unit": "m"}, "1.2", round=1),
        ],
        repeats=2,
        quiet_before=3,
        warns=True,
        kinds={"repeat"},
    ),
    "a number is written with and without a decimal point": Case(
        "openclaw/openclaw#93917",
        [did("search", {"q": "boots", "top": 5 if n % 2 else 5.0}, "no change") for n in range(6)],
        repeats=5,
        stuck_by=4,
        quiet_before=3,
        kinds={"stale_repeat"},
    ),
    "two memory tools take turns": Case(
        "openclaw/openclaw#64500",
        [
            did("memory_search", {"q": "list"}, "[]") if n % 2 == 0 else did("memory_get", {"id": "n3"}, "none")
            for n in range(12)
        ],
        repeats=10,
        stuck_by=7,
        quiet_before=5,
        kinds={"cycle"},
    ),
    "two agents hand the conversation to each other": Case(
        "langchain-ai/langgraph-swarm-py#6",
        [
            did("transfer_to_writer", {}, "done", agent="critic")
            if n % 2 == 0
            else did("transfer_to_critic", {}, "done", agent="writer")
            for n in range(10)
        ],
        repeats=8,
        stuck_by=7,
        quiet_before=5,
        kinds={"cycle"},
    ),
    "the same text is written to two files in turn": Case(
        "openclaw/openclaw#112479",
        [
            did("write", {"path": f"/tmp/{'left' if n % 2 == 0 else 'right'}.md", "content": "# title"}, "7 bytes")
            for n in range(10)
        ],
        repeats=8,
        stuck_by=7,
        quiet_before=5,
        kinds={"cycle"},
    ),
    "a command shows nothing but a running number": Case(
        "openclaw/openclaw#112447",
        [did("exec", {"cmd": "cut -d. -f1 /proc/uptime"}, str(412 + n)) for n in range(30)],
        repeats=29,
        stuck_by=20,
        quiet_before=5,
        kinds={"repeat"},
    ),
    "a command fails the same way each time": Case(
        "xalgorix/xalgorix#158",
        [did("terminal", {"cmd": "make dist"}, error="exit 2: missing separator") for _ in range(8)],
        repeats=7,
        stuck_by=4,
        quiet_before=3,
        kinds={"error_stall"},
    ),
    "a tool is called that does not exist": Case(
        "earendil-works/pi#5016",
        [did("open", {"path": f"/notes/{n}.txt"}, error="unknown tool 'open'") for n in range(7)],
        repeats=0,
        stuck_by=4,
        quiet_before=3,
        kinds={"unknown_tool"},
    ),
    "ever other filters find nothing": Case(
        "superplanehq/superplane#4123",
        [did("list_webhooks", {"event": f"on_{letters(n)}"}, "[]") for n in range(10)],
        repeats=0,
        stuck_by=8,
        quiet_before=5,
        kinds={"empty_results"},
    ),
    "a question is asked in other words and answered the same": Case(
        "getsentry/sentry#120620",
        [
            did("search_docs", {"query": query}, "page-3 page-9")
            for query in (
                "where do I set the proxy",
                "proxy setting",
                "set a proxy",
                "configuring the proxy",
                "proxy config where",
                "how to set proxy",
            )
        ],
        repeats=0,
        stuck_by=6,
        quiet_before=3,
        kinds={"stale_repeat"},
    ),
    "the same failing edit, a look at the file in between": Case(
        "anomalyco/opencode#25254",
        [
            did("edit", {"f": "b.ts", "old": "foo"}, error="text to replace not found")
            if n % 2 == 0
            else did("read", {"f": "b.ts"}, "...")
            for n in range(8)
        ],
        repeats=6,
        stuck_by=7,
        quiet_before=5,
        kinds={"error_stall", "cycle"},
    ),
    "a tool keeps asking for a retry": Case(
        "pydantic/pydantic-ai#6388",
        [did("look_up", {"q": "same"}, error="please retry") for _ in range(15)],
        repeats=14,
        stuck_by=4,
        quiet_before=3,
        kinds={"error_stall"},
    ),
    "a declared poll is unchanged five times": Case(
        "docker/docker-agent#3157",
        [did("list_workers", {}, "2 busy", started=4.0 * n, ended=4.0 * n) for n in range(5)],
        repeats=4,
        settings=Settings.model_validate({"tools": {"overrides": {"list_workers": {"polling": True}}}}),
    ),
    "a list of tasks gets shorter": Case(
        "QwenLM/qwen-code#9492",
        [did("open_tickets", {}, " ".join([str(n), "left:", *"uvwxyz"[:n]])) for n in range(6, 0, -1)],
        repeats=5,
    ),
    "fifty chunks of a stream, each new": Case(
        "RooCodeInc/Roo-Code#9502",
        [did("read_output", {"session": 4}, f"part {letters(n)}") for n in range(50)],
        repeats=49,
    ),
    "edit, test, edit, test, until it passes": Case(
        "google-gemini/gemini-cli#8234",
        [
            call
            for n, left in enumerate(["four fail: d c b a", "two fail: d b", "one fails: b", "everything passes"])
            for call in (
                did("edit", {"f": "x.py", "patch": f"try {n}"}, f"applied try {n}", mutates=True),
                did("run_tests", {}, left),
            )
        ],
        repeats=3,
    ),
    "paging with a cursor": Case(
        "openclaw/openclaw#93917 (counter-case)",
        [did("list_rows", {"cursor": f"k{n}", "limit": 20}, f"rows {20 * n} and on: {letters(n)}") for n in range(8)],
        repeats=0,
    ),
    "read, write, read again": Case(
        "a cache measured for this project",
        [
            did("read_file", {"p": "n"}, "one"),
            did("write_file", {"p": "n", "c": "two"}, "ok", mutates=True),
            did("read_file", {"p": "n"}, "two"),
            did("write_file", {"p": "n", "c": "three"}, "ok", mutates=True),
            did("read_file", {"p": "n"}, "three"),
            did("write_file", {"p": "n", "c": "four"}, "ok", mutates=True),
        ],
        repeats=2,
    ),
    "an empty command waits for more output": Case(
        "OpenHands/OpenHands#10750",
        [did("run", {"cmd": ""}, f"linking {word}") for word in ("base", "render", "audio", "store", "help", "app")],
        repeats=5,
    ),
    "the first call is no repeat": Case(
        "RooCodeInc/Roo-Code#6834", [did("read_file", {"p": "readme"}, "hello")], repeats=0
    ),
    "spans come without arguments": Case(
        "open-telemetry/opentelemetry-python-genai#588, openlit/openlit#1494",
        [did("bash", MISSING) for _ in range(6)],
        repeats=0,
    ),
    "parallel calls pass one budget check": Case(
        "BerriAI/litellm#34732", [did("ask", {"n": n}, "ok", round=1) for n in range(5)], repeats=0
    ),
    "a free model after the budget is spent": Case(
        "BerriAI/litellm#10973", [did("ask", {"n": n}, "ok") for n in (1, 2)], repeats=0
    ),
    "an agent span repeats the sum of its children": Case(
        "langfuse/langfuse#14754, strands-agents/harness-sdk#1267",
        [did("chat", {"in": n}) for n in (90, 110)] + [did("invoke_agent", {"in": 200})],
        repeats=0,
    ),
    "seventy different listings past a limit of sixty-four": Case(
        "agno-agi/agno#6984",
        [did("glob", {"p": f"src/{n}/*"}, f"{n} files {string.ascii_lowercase[n % 26]}") for n in range(70)],
        repeats=0,
    ),
    "a generator fails and is started again": Case(
        "gke-labs/gemini-for-kubernetes-development#680",
        [did("generate", {}, error="template broken") for _ in range(5)],
        repeats=4,
        stuck_by=4,
        quiet_before=3,
        kinds={"error_stall"},
    ),
}


def test_every_report_is_here():
    assert len(CASES) == 28


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_bug_report(case):
    case.check()


def test_calls_without_arguments_are_counted_and_not_judged():
    turn = TurnState("agent", watch=Watch())
    for _ in range(6):
        call = did("bash", MISSING, "same")
        turn.begin_call(call)
        turn.end_call(call)
    assert (turn.missing_arguments, turn.engine.mode, turn.verdict) == (6, "none", None)
