"""Loops that users of many agents reported, rebuilt: each must be told by the call by which a person would stop it."""

import itertools

import pytest
from tests.core.bug_report import Case, did


def at(seconds, calls):
    """The calls, so many seconds apart."""
    for number, call in enumerate(calls):
        call.started = call.ended = seconds * number
    return calls


def passes(number, *steps):
    """The same steps so many times."""
    return [did(tool, args, result, **more) for _ in range(number) for tool, args, result, more in steps]


IDS = ("1c0e7a52-96a1", "b8d17c90-5f6e", "5e2b8d1e-2a37", "c1ffee11-84f1", "0b9e4f6a-7e21", "77b1b2c3-d4e5")
PATCHES = ("round(x)", "int(x)", "x // 1", "floor(x)", "abs(x)", "float(x)", "max(x, 0)")
FILES = ("Door", "Lamp", "Shelf", "Table", "Chair", "Rug", "Mirror", "Vase", "Clock")
SUMS = ("print(6 * 7)", "x = 6\nprint(x * 7)", "print(sum([6] * 7))", "y = 7 * 6\nprint(y)", "print(7 + 7 + 28)")
PLANS = (["Phase 1: Set up", "Phase 2: Build"], ["Phase 1: set up", "Phase 2: build"])

CASES = {
    "an empty list of tasks is written for ever": Case(
        "ai-forever/langchain-gigachat#69",
        [did("write_todos", {"todos": []}, "the list is now []") for _ in range(8)],
        repeats=7,
        stuck_by=5,
        quiet_before=3,
        kinds={"stale_repeat"},
    ),
    "a write lacks its path, whatever it would write": Case(
        "cline/cline#9897",
        [
            did("write_to_file", {"content": f"draft {n}"}, error="no value for required parameter path")
            for n in range(8)
        ],
        repeats=0,
        stuck_by=8,
        quiet_before=4,
        kinds={"error_stall"},
    ),
    "a malformed patch takes other fractions of a second to fail": Case(
        "openai/codex#35361",
        [
            did(
                "shell",
                {"command": ["apply_patch", "*** Begin"]},
                f'{{"output": "invalid patch", "metadata": {{"exit_code": 1, "duration_seconds": {seconds}}}}}',
            )
            for seconds in (0.0, 0.1, 0.0, 0.2, 0.1, 0.0)
        ],
        repeats=5,
        stuck_by=5,
        quiet_before=3,
        kinds={"stale_repeat"},
    ),
    "a manager asks for a co-worker who is not there": Case(
        "crewAIInc/crewAI#330",
        [
            did(
                "Delegate work to coworker", {"task": task, "coworker": "Sage"}, "Error: no coworker Sage, only analyst"
            )
            for task in (
                "find sums",
                "look for the sums",
                "sums, please",
                "get me sums",
                "the sums of June",
                "sum it up",
            )
        ],
        repeats=0,
        stuck_by=6,
        quiet_before=3,
        kinds={"error_stall"},
    ),
    "a record is inserted under ever other ids": Case(
        "google/adk-python#1555",
        [did("create_record", {"sum": 12}, f"recorded as {record}-4a0b-9a39-54b1a9c7e202") for record in IDS],
        repeats=5,
        stuck_by=6,
        quiet_before=3,
        kinds={"stale_repeat"},
    ),
    "the clock is read until it is late enough": Case(
        "NorthlandPositronics/Cogtrix#474",
        at(3.0, [did("get_current_datetime", {}, f"2026-05-01T10:41:{3 * n:02d}Z") for n in range(20)]),
        repeats=19,
        stuck_by=20,
        quiet_before=4,
        kinds={"stale_repeat"},
    ),
    "a shell without output is read every two seconds": Case(
        "anthropics/claude-code#13315",
        at(2.0, [did("BashOutput", {"bash_id": "c4"}, "<status>running</status>") for _ in range(30)]),
        repeats=29,
        stuck_by=20,
        quiet_before=5,
        kinds={"stale_repeat"},
    ),
    "a heartbeat answers itself": Case(
        "vivekchand/clawmetry#2009",
        at(1.5, [did("heartbeat_respond", {"notify": False}, "acknowledged") for _ in range(8)]),
        repeats=7,
        stuck_by=5,
        quiet_before=3,
        kinds={"stale_repeat"},
    ),
    "a command that does nothing has ever other names": Case(
        "earendil-works/pi#9637",
        [did("fabric_exec", {"name": f"idle{n}", "command": "echo idle"}, "idle") for n in range(9)],
        repeats=0,
        stuck_by=8,
        quiet_before=3,
        kinds={"stale_repeat"},
    ),
    "a memory recalls the same five things, whatever is asked": Case(
        "bobmatnyc/trusty-tools#4836",
        [
            did("mcp__memory__memory_recall", {"query": query, "top_k": 5}, "notes, names, rota, plan, style")
            for query in ("runtime", "order of shutdown", "pancakes", "layout", "pool size", "who owns billing")
        ],
        repeats=0,
        stuck_by=6,
        quiet_before=3,
        kinds={"stale_repeat"},
    ),
    "status, log and history of a clean tree": Case(
        "mrdushidush/claudette#134",
        passes(4, ("git_status", {}, "clean", {}), ("git_log", {"n": 2}, "fix, init", {}), ("git_diff", {}, "", {})),
        repeats=9,
        stuck_by=9,
        quiet_before=5,
        kinds={"cycle", "stale_repeat"},
    ),
    "the alternatives of a pattern change places": Case(
        "macanderson/stella#1361",
        [
            did("grep", {"pattern": "|".join(words)}, "net.rs:8: retry()")
            for words in itertools.permutations(("retry", "again", "resend"))
        ],
        repeats=0,
        stuck_by=6,
        quiet_before=3,
        kinds={"stale_repeat"},
    ),
    "the same sum is programmed in other ways": Case(
        "huggingface/smolagents#1226",
        [did("python_interpreter", {"code": code}, "logs: 42, last output: None") for code in SUMS],
        repeats=0,
        stuck_by=5,
        quiet_before=3,
        kinds={"stale_repeat"},
    ),
    "reading, a failing edit and a failing test take turns": Case(
        "macanderson/stella#359",
        passes(
            3,
            ("read_file", {"path": "a.rs"}, "fn a() {}", {}),
            ("edit_file", {"path": "a.rs", "old": "fn b"}, None, {"error": "old text not found"}),
            ("run_tests", {}, None, {"error": "one failed: a"}),
        ),
        repeats=6,
        stuck_by=9,
        quiet_before=5,
        kinds={"error_stall", "cycle"},
    ),
    "every patch fails in the same assertion": Case(
        "openJiuwen-ai/jiuwenswarm#3560",
        [
            call
            for n, patch in enumerate(PATCHES)
            for call in (
                did("edit_file", {"path": "p.py", "new": patch}, f"edited, try {n}"),
                did("bash", {"command": "pytest"}, error=f"assert 41 == 42\n1 failed in 0.1{n}s"),
            )
        ],
        repeats=6,
        stuck_by=12,
        quiet_before=5,
        kinds={"error_stall"},
    ),
    "nine files are read, forgotten and read again": Case(
        "AgentiLoop/Agent#37",
        passes(3, *(("read_file", {"path": name}, f"struct {name}", {}) for name in FILES)),
        repeats=18,
        stuck_by=27,
        quiet_before=12,
        kinds={"cycle"},
    ),
    "two spellings of one plan replace each other": Case(
        "CommandCodeAI/command-code#826",
        [did("todo_write", {"todos": PLANS[n % 2]}, f"2 items were removed: {PLANS[1 - n % 2]}") for n in range(8)],
        repeats=6,
        stuck_by=8,
        quiet_before=4,
        kinds={"cycle", "stale_repeat"},
    ),
    "one fix breaks a test, and its reversal another": Case(
        "fullsend-ai/fullsend#5512",
        passes(
            4,
            ("edit_file", {"old": "a", "new": "a or b"}, "replaced", {}),
            ("bash", {"command": "pytest"}, None, {"error": "strict: None is b"}),
            ("edit_file", {"old": "a or b", "new": "a"}, "replaced", {}),
            ("bash", {"command": "pytest"}, None, {"error": "default: None is not b"}),
        ),
        repeats=13,
        stuck_by=13,
        quiet_before=7,
        kinds={"cycle", "error_stall"},
    ),
    "other commands to the same end are all declined": Case(
        "QwenLM/qwen-code#2831",
        [
            did("run_shell_command", {"command": f"{way} publish"}, error="permission was declined", outcome="denied")
            for way in ("npm", "npx npm", "yarn", "pnpm", "npm run", "bunx npm")
        ],
        repeats=0,
        stuck_by=8,
        quiet_before=3,
        kinds={"error_stall"},
    ),
    "the names of tools are cut off": Case(
        "can1357/oh-my-pi#10876",
        [did(name, {}, error=f"Tool {name} not found") for name in ("wri", "wri", "ba", "wri", "ed")],
        repeats=2,
        stuck_by=5,
        quiet_before=3,
        kinds={"unknown_tool", "error_stall"},
    ),
    "a click on what a page no longer has": Case(
        "microsoft/playwright-mcp#1196",
        passes(
            3,
            ("browser_navigate", {"url": "https://x.example"}, "- Page Title: Sign in", {}),
            ("browser_click", {"ref": "e13"}, None, {"error": "Error: Ref e13 not found in the snapshot"}),
            ("browser_snapshot", {}, "- Page URL: about:blank", {}),
        ),
        repeats=6,
        stuck_by=9,
        quiet_before=5,
        kinds={"error_stall", "cycle"},
    ),
    "taps beside an icon, and a screen that stays": Case(
        "zai-org/Open-AutoGLM#69",
        [
            call
            for x, y in ((512, 130), (514, 131), (510, 128), (515, 133), (512, 129), (509, 131), (513, 130))
            for call in (
                did("do", {"action": "Tap", "at": [x, y]}, "ok"),
                did("get_ui", {}, "Search, Settings, Recent"),
            )
        ],
        repeats=6,
        stuck_by=14,
        quiet_before=5,
        kinds={"stale_repeat", "cycle"},
    ),
    "a proxy drops the cursor": Case(
        "sparfenyuk/mcp-proxy#233",
        [did("list_projects", {"cursor": "8"}, '{"items":["a","b"],"nextCursor":"8"}') for _ in range(9)],
        repeats=8,
        stuck_by=6,
        quiet_before=3,
        kinds={"stale_repeat"},
    ),
    "git status, with and without a space": Case(
        "openai/codex#7049",
        [
            did(
                "shell_command",
                {"command": f"cd /w/shop{' ' * (n % 2)}&& git status -sb"},
                f"Wall time: 0.{n} seconds\n## main",
            )
            for n in range(7)
        ],
        repeats=5,
        stuck_by=5,
        quiet_before=3,
        kinds={"stale_repeat"},
    ),
    "git status, and each time another word on why": Case(
        "google-gemini/gemini-cli#16410",
        [
            did("run_shell_command", {"command": "git status", "description": why}, "nothing to commit")
            for why in ("Look", "Check the tree", "Verify", "Look again", "Confirm that it is clean", "See the state")
        ],
        repeats=0,
        stuck_by=5,
        quiet_before=3,
        kinds={"stale_repeat"},
    ),
    "one ticket is looked at for ever other reasons": Case(
        "Illospace/illospace#506",
        [
            did("inspect_ticket", {"ticket": "T-14", "reason": reason}, "T-14: open, with nobody")
            for reason in ("its state", "who has it", "has it moved?", "find the owner", "before I act", "once more")
        ],
        repeats=0,
        stuck_by=5,
        quiet_before=3,
        kinds={"stale_repeat"},
    ),
    "every write is refused, and the refusal names the file": Case(
        "Gitlawb/zero#866",
        [
            did(
                "write_file",
                {"path": f"src/{name}.ts", "content": ""},
                error=f"Permission denied for write_file: src/{name}.ts",
                outcome="denied",
            )
            for name in FILES
        ],
        repeats=0,
        stuck_by=7,
        quiet_before=4,
        kinds={"error_stall"},
    ),
    "diffs without their middle, and the tool says so in a normal result": Case(
        "GreatScottyMac/RooFlow#67",
        [
            did("apply_diff", {"path": "a.tsx", "diff": patch}, "Unable to apply diff: '=======' was not found")
            for patch in PATCHES
        ],
        repeats=0,
        stuck_by=7,
        quiet_before=4,
        kinds={"error_stall"},
    ),
    "a process is polled without a pause, and only its age changes": Case(
        "NousResearch/hermes-agent#34711",
        at(
            2.0,
            [
                did("process", {"action": "poll"}, f'{{"status": "running", "uptime_seconds": {2 * n}}}')
                for n in range(30)
            ],
        ),
        repeats=29,
        stuck_by=22,
        quiet_before=8,
        kinds={"stale_repeat"},
    ),
    "a failing search, and the list of what is to be done grows": Case(
        "openJiuwen-ai/agent-core#766",
        [
            call
            for n in range(6)
            for call in (
                did("grep", {"pattern": "retry", "path": "src"}, "No matches found"),
                did("TodoWrite", {"todos": [f"item {k}" for k in range(n + 1)]}, "Todos have been modified"),
            )
        ],
        repeats=5,
        stuck_by=8,
        quiet_before=5,
        kinds={"stale_repeat"},
    ),
    "one search, its results in ever other order": Case(
        "Significant-Gravitas/AutoGPT#1994",
        [
            did(
                "google",
                {"input": "tax rates of small countries"},
                "\n".join(f"{FILES[(k + n * 2) % 9]} has a page on taxes and what they cost" for k in range(9)),
            )
            for n in range(7)
        ],
        repeats=6,
        stuck_by=7,
        quiet_before=3,
        kinds={"stale_repeat"},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_reported_loop_is_told(case):
    case.check()
