import json

import pytest

from turnwatch.core.effects import asks_in_words, changes_state, is_polling, may_act, moves_on, runs_code, takes_note
from turnwatch.core.events import MISSING, ToolCall


@pytest.mark.parametrize(
    "tool",
    ["read_file", "searchDocs", "mcp__github__list_issues", "files.read", "get_order_status", "grep", "ListFiles",
     "vector_search", "think", "wait_for_job"],
)  # fmt: skip
def test_reading_names(tool):
    assert changes_state(ToolCall(tool, {"q": "x"})) is False


@pytest.mark.parametrize(
    "tool",
    ["write_file", "editFile", "mcp__github__create_issue", "todo.update", "send_email", "book_reservation",
     "cancel_order", "save_memory", "DeleteRow", "git_commit"],
)  # fmt: skip
def test_changing_names(tool):
    assert changes_state(ToolCall(tool, {"q": "x"})) is True


@pytest.mark.parametrize("tool", ["click", "frobnicate", "generate", "transfer_to_planner", "handoff", "x1"])
def test_names_that_do_not_tell(tool):
    assert changes_state(ToolCall(tool, {"q": "x"})) is None


@pytest.mark.parametrize(
    "command",
    ["rm -rf build", "sed -i 's/a/b/' f.py", "echo hi > out.txt", "cat <<'EOF' > a.py\nprint(1)\nEOF", "mkdir -p a/b",
     "cd src && git checkout main", "pip install x", "python - <<E\nopen('f', 'w').write('x')\nE", "a=1 mv x y",
     "UPDATE users SET a = 1", "insert into t values (1)", "DROP TABLE t", "find . -name '*.pyc' -delete",
     "ls | xargs rm", "sudo apt-get install git", "echo x >> log", "bash -c 'rm x'", "apply_patch <<'E'\n*** Begin",
     "Get-Content a | Set-Content b"],
)  # fmt: skip
def test_commands_that_change_state(command):
    assert changes_state(ToolCall("bash", {"command": command})) is True


@pytest.mark.parametrize(
    "command",
    ["ls -la", "cat a.py", "grep -rn foo . 2>/dev/null", "sed -n '1,5p' f.py", "python test.py 2>&1", "git diff",
     "SELECT a FROM t WHERE b > 3", "pytest -x", "find . -name rm", "echo 'a -> b'", "git log --oneline", "",
     "bash -lc 'ls -la'", "Get-Content a"],
)  # fmt: skip
def test_commands_that_only_look(command):
    assert changes_state(ToolCall("bash", {"command": command})) is False


def test_a_shell_whose_command_is_not_known_does_not_tell():
    assert changes_state(ToolCall("bash", MISSING)) is None
    assert changes_state(ToolCall("bash", {"timeout": 3})) is None
    assert changes_state(ToolCall("bash", {"command": ["rm", "x"]})) is True
    assert changes_state(ToolCall("bash", "rm x")) is True


def test_a_shell_within_a_shell():
    assert changes_state(ToolCall("shell", {"command": ["bash", "-lc", "sed -i s/a/b/ x.py"]})) is True
    assert changes_state(ToolCall("shell", {"command": ["bash", "-lc", "sed -n 1p x.py"]})) is False


@pytest.mark.parametrize(
    ("args", "changes"),
    [
        ({"action": "create", "title": "x"}, True),
        ({"operation": "deleteRow", "row": 3}, True),
        ({"method": "POST", "url": "u"}, True),
        ({"action": "add-comment"}, True),
        ({"action": "orders/create"}, True),
        ({"operation": "issues.update"}, True),
        ({"method": "issue:close"}, True),
        ({"command": "sed -i s/a/b/ x.py"}, True),
        ({"action": "list"}, False),
        ({"method": "GET", "url": "u"}, False),
        ({"command": "pytest -x 2>&1"}, False),
        ({"method": "issues/list"}, False),
        ({"code": "open('f','w').write(x)"}, True),
        ({"action": "frobnicate"}, None),
        ({"script": "scripts/nightly-job.sh"}, None),
        ({"code": "AB-12"}, None),
        ({"action": 7}, None),
        ({"query": "delete old files"}, None),
    ],
)
def test_an_action_among_the_arguments_tells_where_the_name_does_not(args, changes):
    assert changes_state(ToolCall("acme", args)) is changes
    assert changes_state(ToolCall("acme", json.dumps(args))) is changes
    assert changes_state(ToolCall("read_file", args)) is False


def test_a_path_is_a_command_and_an_action_with_a_slash_is_none():
    assert runs_code(ToolCall("acme", {"command": "./check"}))
    assert not runs_code(ToolCall("acme", {"action": "orders/create"}))


def test_arguments_as_json_text_tell_the_same():
    assert changes_state(ToolCall("bash", '{"command": "rm x"}')) is True
    assert changes_state(ToolCall("bash", '{"command": "ls"}')) is False
    assert changes_state(ToolCall("bash", '{"command": "rm x')) is False  # cut off
    assert is_polling(ToolCall("bash", '{"command": "sleep 30 && cat log"}'))
    assert not asks_in_words(ToolCall("get_weather", '{"city": "Oslo", "unit": "C"}'))


def test_an_editor_with_subcommands():
    for tool in ("file_editor", "developer__text_editor", "str_replace_based_edit_tool", "edit_file_tool"):
        assert changes_state(ToolCall(tool, {"command": "view", "path": "a"})) is False
        assert changes_state(ToolCall(tool, {"command": "str_replace", "path": "a"})) is True
    assert changes_state(ToolCall("str_replace_editor", {"path": "a", "view_range": [1, 9]})) is None
    assert changes_state(ToolCall("str_replace_editor", {"command": "view", "path": "a"})) is False
    assert changes_state(ToolCall("str_replace_editor", {"command": "insert", "path": "a"})) is True
    assert changes_state(ToolCall("str_replace_editor", MISSING)) is None


def test_what_is_declared_wins_over_the_name_and_what_is_said_outright_over_both():
    assert changes_state(ToolCall("delete_file", {}, read_only=True)) is False
    assert changes_state(ToolCall("read_file", {}, destructive=True)) is True
    assert changes_state(ToolCall("frobnicate", {}, read_only=False)) is True
    assert changes_state(ToolCall("read_file", {}, read_only=True, mutates=True)) is True
    assert changes_state(ToolCall("write_file", {}, destructive=True, mutates=False)) is False


def test_polling_is_declared_or_sleeps():
    assert is_polling(ToolCall("get_job", {}, polling=True))
    assert is_polling(ToolCall("bash", {"command": "sleep 30 && cat log"}))
    assert is_polling(ToolCall("wait_for_build", {}))
    assert is_polling(ToolCall("acme", {"command": "sleep 30 && cat log"}))
    assert not is_polling(ToolCall("wait_for_build", {}, polling=False))
    assert not is_polling(ToolCall("bash", {"command": "cat sleep.txt"}))
    assert not is_polling(ToolCall("get_job", {}))


def test_asking_in_words():
    assert asks_in_words(ToolCall("search", {"q": "how to log in"}))
    assert asks_in_words(ToolCall("search", "how to log in"))
    assert asks_in_words(ToolCall("search_docs", {"q": "login"}))
    assert not asks_in_words(ToolCall("search_docs", {"page": 3}))
    assert not asks_in_words(ToolCall("get_weather", {"city": "Oslo"}))
    assert not asks_in_words(ToolCall("get", {"id": "A17", "n": 3}))
    assert not asks_in_words(ToolCall("think", {"thought": "how to log in"}))
    assert asks_in_words(ToolCall("Grep", {"pattern": "retry|backoff"}))
    assert asks_in_words(ToolCall("oracle", {"question": "how to log in"}))
    assert asks_in_words(ToolCall("oracle", "how to log in"))
    assert not asks_in_words(ToolCall("classify", {"text": "how to log in"}))


def test_a_command_asks_in_words_if_it_only_looks():
    assert asks_in_words(ToolCall("bash", {"command": "grep -rn retry src"}))
    assert not asks_in_words(ToolCall("bash", {"command": "./convert.sh chapter-1"}))
    assert asks_in_words(ToolCall("python_interpreter", {"code": "x = open('a').read()\nprint(x)"}))


@pytest.mark.parametrize(
    "command",
    ["ls -la", "cd /w && grep -n 'a|b' x | head -3", "SELECT a FROM t", "for i in 1 2; do ls $i; done", "A=1 git log",
     "test -f x && echo yes || echo no", "find . -name '*.py' | xargs grep -l x", "bash -lc 'ls -la'", "gh run list",
     "if [ -f a ]; then cat a; fi", "kubectl -n shop get pods", "docker ps -a", "aws s3 ls", "grep \"a; b\" src"],
)  # fmt: skip
def test_commands_that_do_nothing_but_look(command):
    assert not may_act(ToolCall("bash", {"command": command}))


@pytest.mark.parametrize(
    "command",
    ["./deploy.sh web", "python convert.py a.xml", "samtools sort -o a.bam b.bam", "ls | while read f; do ./x $f; done",
     "sed -i s/a/b/ x", "curl -X POST https://example.com", "git push", "make", "./list.sh", "cat a | xargs -n1 ./x"],
)  # fmt: skip
def test_commands_that_may_do_something(command):
    assert may_act(ToolCall("bash", {"command": command}))
    assert may_act(ToolCall("acme", {"command": command}))


def test_what_may_act():
    assert may_act(ToolCall("render_chapter", {"n": 1}))
    assert may_act(ToolCall("send_email", {"to": "x"}))
    assert may_act(ToolCall("acme", {"action": "sync"}))
    assert may_act(ToolCall("python", {"code": "x = 1"}))
    assert not may_act(ToolCall("acme", {"action": "list"}))
    assert not may_act(ToolCall("render_chapter", {"n": 1}, read_only=True))
    for tool in ("search_docs", "think", "wait_for_job"):
        assert not may_act(ToolCall(tool, {"q": "x"}))


def test_scrolling_and_keys_move_on():
    for tool, args in (("scroll_down", {}), ("browser_press_key", {"key": "Tab"}), ("computer", {"action": "key"}),
                       ("computer", {"action": "scroll"}), ("mobileSwipe", {})):  # fmt: skip
        assert moves_on(ToolCall(tool, args))
        assert changes_state(ToolCall(tool, args)) is not True
    for tool, args in (("get_press_releases", {}), ("click", {}), ("computer", {"action": "left_click"}), ("acme", {})):
        assert not moves_on(ToolCall(tool, args))


def test_typing_into_a_process_changes_it_and_looking_at_what_it_says_does_not():
    assert changes_state(ToolCall("write_stdin", {"session_id": 7, "chars": "y\n"})) is True
    assert changes_state(ToolCall("write_stdin", {"session_id": 7, "chars": ""})) is False
    assert changes_state(ToolCall("write_stdin", MISSING)) is True


@pytest.mark.parametrize("tool", ["TodoWrite", "write_todos", "update_todo_list", "mcp__x__todo_read", "update_plan"])
def test_what_an_agent_notes_of_its_own_work_changes_nothing(tool):
    assert takes_note(ToolCall(tool, {"todos": ["look"]}))
    assert changes_state(ToolCall(tool, {"todos": ["look"]})) is False


def test_a_plan_of_others_is_no_note():
    assert not takes_note(ToolCall("update_subscription_plan", {"plan": "team"}))
    assert not takes_note(ToolCall("get_floor_plan", {}))
