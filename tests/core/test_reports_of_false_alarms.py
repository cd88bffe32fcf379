"""Work that loop detectors of many agents stopped, rebuilt from their users' complaints: nothing may be told of it."""

import random

import pytest
from tests.core.bug_report import Case, did

NAMES = ("ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibis", "jay", "kite", "lark")
TODOS = ("spec", "model", "route", "tests", "docs")


def at(times, calls):
    """The calls at these seconds; a number is so many seconds apart."""
    for number, call in enumerate(calls):
        call.started = call.ended = times * number if isinstance(times, float) else times[number]
    return calls


def boards():
    """Boards of a game that show nothing but numbers."""
    rnd = random.Random(4)
    for _ in range(24):
        yield "\n".join(" ".join(str(rnd.choice((0, 2, 4, 8, 16, 32))) for _ in range(4)) for _ in range(4))


CASES = {
    "eight files are moved": Case(
        "google-gemini/gemini-cli#5873",
        [did("run_shell_command", {"command": f"git mv old/{name} new/{name}"}, "Exit Code: 0") for name in NAMES[:8]],
        repeats=0,
    ),
    "one step for each of many samples": Case(
        "bytedance/deer-flow#2591",
        [did("bash", {"command": f"samtools sort -o {n}.bam {n}.raw"}, "[sort] merging from 4 files") for n in NAMES],
        repeats=0,
    ),
    "other edits with one acknowledgement": Case(
        "macanderson/stella#3176",
        [did("edit_file", {"path": "a.tex", "old": n, "new": n.upper()}, "replaced 1 occurrence") for n in NAMES[:8]],
        repeats=0,
    ),
    "a script of the workspace says nothing when it works": Case(
        "macanderson/stella#3303",
        [did("render_chapter", {"chapter": n}, "") for n in range(1, 13)],
        repeats=0,
    ),
    "a server acknowledges every call with one word": Case(
        "macanderson/stella#3328",
        [did("crm_sync", {"customer": f"{name} and sons"}, "done") for name in NAMES],
        repeats=0,
    ),
    "a checkpoint is saved under one key": Case(
        "macanderson/stella#3297",
        [
            did("save_state", {"key": "progress", "content": f'{{"done": {n:02d}}}'}, "saved (12 bytes)")
            for n in range(10)
        ],
        repeats=0,
    ),
    "many facts are remembered": Case(
        "nonatofabio/local_faiss_mcp#21",
        [did("remember", {"document": f"The {name} is in the shed.", "source": "notes"}, "Stored.") for name in NAMES],
        repeats=0,
    ),
    "one reply asks many questions of a healthy cluster": Case(
        "rh-ai-quickstart/ai-observability-summarizer#247",
        [did("execute_promql", {"query": f"{name} > 0"}, '{"result": []}', round=1) for name in NAMES[:6]]
        + [did("execute_promql", {"query": f"{name} > 9"}, '{"result": []}', round=2) for name in NAMES[:3]],
        repeats=0,
    ),
    "a shell session is waited for ten seconds at a time": Case(
        "weave-os/router#1123",
        at(
            11.0,
            [
                did(
                    "write_stdin",
                    {"session_id": 5, "chars": ""},
                    f"Wall time: 10.0{n} seconds\nProcess running\nOutput:",
                )
                for n in range(6)
            ]
            + [did("write_stdin", {"session_id": 5, "chars": ""}, "Process exited with code 0\nOutput:\nFinished")],
        ),
        repeats=6,
    ),
    "a session that prints nothing for half a minute": Case(
        "xal-sh/xal#45",
        at(
            6.0,
            [did("write_stdin", {"session_id": 2}, "(session 2 still running)") for _ in range(6)]
            + [did("write_stdin", {"session_id": 2}, "84 passed")],
        ),
        repeats=6,
    ),
    "a background command is looked at until it is done": Case(
        "fastclaw-ai/fastclaw#80",
        at(
            15.0,
            [
                did(
                    "BashOutput",
                    {"bash_id": "a3"},
                    f"<status>running</status>\n<timestamp>2026-02-01T10:0{n}:11Z</timestamp>",
                )
                for n in range(6)
            ]
            + [did("BashOutput", {"bash_id": "a3"}, "<status>completed</status>\n84 passed")],
        ),
        repeats=6,
    ),
    "a job counts up its percentage": Case(
        "StartupHakk/OpenMonoAgent.ai#47",
        [did("CheckStatus", {"job": 8}, f"Status: running ({percent}%)") for percent in range(3, 99, 7)],
        repeats=13,
    ),
    "a poll every five minutes, as told": Case(
        "OpenHands/software-agent-sdk#762",
        at(300.0, [did("execute_bash", {"command": "curl -s trainer/jobs/7"}, "epoch two") for _ in range(5)]),
        repeats=4,
    ),
    "a minute of sleep before each look at the checks": Case(
        "context-labs/whip#58",
        at(
            62.0,
            [did("bash", {"command": "sleep 60 && gh pr checks 58"}, "build\tpending\nlint\tpass") for _ in range(8)],
        ),
        repeats=7,
    ),
    "a heartbeat every half hour": Case(
        "openclaw/openclaw#116205",
        at(1800.0, [did("heartbeat_respond", {"notify": False}, "acknowledged") for _ in range(8)]),
        repeats=7,
    ),
    "a rate limit is waited out": Case(
        "Intrect-io/OpenSwarm#262",
        at(
            (0.0, 2.0, 6.0, 14.0, 30.0),
            [did("search_issues", {"q": "bug"}, error="429: try later") for _ in range(4)]
            + [did("search_issues", {"q": "bug"}, "3 issues")],
        ),
        repeats=4,
    ),
    "two refusals before each success": Case(
        "amd/gaia#3908",
        [
            call
            for name in NAMES[:4]
            for call in (
                did("get_message", {"id": name}, error="throttled"),
                did("get_message", {"id": name}, error="throttled"),
                did("get_message", {"id": name}, f"from {name}"),
            )
        ],
        repeats=8,
    ),
    "nine messages are marked as read": Case(
        "amd/gaia#1067",
        [did("mark_message_read", {"id": f"18{name}"}, '{"success": true}') for name in NAMES[:9]],
        repeats=0,
    ),
    "a list is ticked off while its work is done": Case(
        "Hmbown/Codewhale#1574",
        [
            call
            for n, todo in enumerate(TODOS)
            for call in (
                did("TodoWrite", {"todos": [[t, k <= n] for k, t in enumerate(TODOS)]}, "the list has been modified"),
                did("Edit", {"path": todo, "new": str(n)}, f"{todo} has been updated"),
            )
        ],
        repeats=0,
    ),
    "a game shows nothing but numbers": Case(
        "lmgame-org/GamingAgent#3",
        [did("move", {"direction": ("up", "left")[n % 2]}, board) for n, board in enumerate(boards())],
        repeats=22,
    ),
    "a page is scrolled and then read": Case(
        "alibaba/page-agent#392",
        [did("scroll_down", {"pixels": 800}, "Scrolled down by 800 pixels") for _ in range(6)]
        + [did("extract_content", {"goal": "price"}, "42 EUR")],
        repeats=5,
    ),
    "one pattern in one directory after the other": Case(
        "headroomlabs-ai/headroom#3453",
        [did("Grep", {"pattern": "Timeout", "path": f"/srv/{name}"}, "No matches found") for name in NAMES[:5]]
        + [did("Grep", {"pattern": "Timeout", "path": "/srv/net"}, "retry.py:14: except Timeout:")],
        repeats=0,
    ),
    "the number of failing tests falls": Case(
        "no-human-ai/no_human#206",
        [
            call
            for n, failed in enumerate((9, 8, 8, 6, 5, 3, 1))
            for call in (
                did("edit_file", {"path": "e.py", "patch": f"change {n}"}, "edited"),
                did("bash", {"command": "pytest -q | tail -1"}, f"{failed} failed, {100 - failed} passed in {n + 1}s"),
            )
        ],
        repeats=6,
    ),
    "names of files are guessed, with discoveries in between": Case(
        "Nomadcxx/opencode-cursor#33",
        [
            call
            for name in NAMES[:5]
            for call in (
                did("Read", {"path": f"{name}.md"}, error=f"File does not exist: {name}.md"),
                did("Glob", {"pattern": f"{name}*"}, f"{name}.txt"),
            )
        ],
        repeats=0,
    ),
    "what is known of the user is recalled for each new question": Case(
        "agentscope-ai/QwenPaw#5906",
        [
            call
            for name in NAMES[:6]
            for call in (
                did("recall_history", {"query": "what the user likes"}, "short answers"),
                did("web_search", {"query": f"the {name} in the wild"}, f"a page about the {name}"),
            )
        ],
        repeats=5,
    ),
    "one thought before each of many files": Case(
        "gsd-build/gsd-2#6007",
        [
            call
            for name in NAMES[:8]
            for call in (
                did("think", {"thought": "Let me look at the next file."}, "Your thought has been logged."),
                did("view", {"path": f"{name}.py"}, f"def {name}(): ..."),
            )
        ],
        repeats=7,
    ),
    "a plan stays as it is while quiet work goes on": Case(
        "everyday work",
        [
            call
            for name in NAMES
            for call in (
                did("update_plan", {"plan": ["lint all"], "explanation": f"now {name}"}, "Plan updated"),
                did("bash", {"command": f"npx eslint {name}.ts && echo clean"}, "clean"),
            )
        ],
        repeats=0,
    ),
    "a look at the screen until the page has loaded": Case(
        "gptme/gptme#2898",
        [did("computer", {"action": "left_click", "coordinate": [760, 540]}, "Clicked")]
        + [did("computer", {"action": "screenshot"}, screen) for screen in ("a spinner", "a spinner", "twelve rows")],
        repeats=2,
    ),
    "fifteen edits of one file": Case(
        "agent-tools-org/ai-dispatch#125",
        [
            did("apply_patch", {"input": f"*** Update File: a.rs\n-let {n} = 1;\n+let {n} = 2;"}, "Updated: M a.rs")
            for n in (*NAMES, "mole", "newt", "owl")
        ],
        repeats=0,
    ),
    "every fix uncovers another fault": Case(
        "anthropics/claude-code#70222",
        [
            call
            for fault in (
                "KeyError: total",
                "TypeError: str and int",
                "assert a == b",
                "IndexError: 4",
                "ValueError: x",
            )
            for call in (
                did("Bash", {"command": "pytest -q | tail -2"}, f"{fault}\n1 failed, 30 passed"),
                did("Edit", {"file": "t.py", "new": f"mend {fault}"}, "The file t.py has been updated."),
            )
        ],
        repeats=4,
    ),
    "a bisection": Case(
        "everyday work",
        [
            call
            for n in range(7)
            for call in (
                did("bash", {"command": "make -s test"}, "fine" if n % 2 else "test_sum FAILED"),
                did("bash", {"command": f"git bisect {'good' if n % 2 else 'bad'}"}, f"left to test: {64 >> n}"),
            )
        ],
        repeats=11,
    ),
    "the last lines of a log that moves slowly": Case(
        "NousResearch/hermes-agent#89085",
        at(
            15.0,
            [
                did("Bash", {"command": "tail -n 3 train.log"}, "\n".join(f"epoch {k} done" for k in range(n, n + 3)))
                for n in (1, 1, 2, 2, 3, 3, 4, 5, 5, 6)
            ],
        ),
        repeats=9,
    ),
    "pods come up one after the other": Case(
        "everyday work",
        at(
            10.0,
            [
                did(
                    "kubectl",
                    {"args": "get pods"},
                    "\n".join(f"web-{k} {'1/1 Running' if k < up else '0/1 Pending'}" for k in range(6)),
                )
                for up in (0, 0, 1, 1, 2, 3, 3, 4, 5, 6)
            ],
        ),
        repeats=9,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_of_reported_work_nothing_is_told(case):
    case.check()
