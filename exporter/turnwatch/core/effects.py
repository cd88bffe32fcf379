"""Does a call change state? What its declaration says, else a guess from its name and its command."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import orjson

from turnwatch.core.commands import only_looks, sleeps, writes
from turnwatch.core.events import ToolCall


def changes_state(call: ToolCall) -> bool | None:
    """Whether this call changes state if it succeeds; None when nothing tells.

    What is said outright wins (``call.mutates``), then the declaration (MCP's readOnlyHint, destructiveHint),
    then the words of the name, and for shell-like tools the command. Where the name says nothing, a command or an
    action among the arguments may.
    """
    if call.mutates is not None:
        return call.mutates
    if call.read_only or call.polling:
        return False
    if call.destructive:
        return True
    guess = _by_name(call.tool)
    if guess is _RUNS_CODE:
        command = _told_to(guess, call.args)
        return writes(command) if command is not None else None
    if guess in (_WAITS, _TALKS, _MOVES):
        return False
    if guess is _TYPES:
        args = _given(call.args)
        return type(args) is not dict or any(args.get(key) for key in _TYPED_KEYS)
    if guess is not None:
        return guess is _CHANGES
    return True if call.read_only is False else _by_action(call.args)


def is_polling(call: ToolCall) -> bool:
    """Whether this call is meant to be asked again until something changes: declared, or it sleeps first."""
    if call.polling is not None:
        return call.polling
    guess = _by_name(call.tool)
    if guess is _WAITS:
        return True
    command = _told_to(guess, call.args) if guess is _RUNS_CODE or guess is None else None
    return command is not None and sleeps(command)


def moves_on(call: ToolCall) -> bool:
    """Whether this call moves on from where the one before it stopped: scrolling, pressing a key."""
    guess = _by_name(call.tool)
    if guess is not None:
        return guess is _MOVES
    action = _told_to(None, call.args)
    return action is not None and _is_one_word(action) and (action == "key" or _by_name(action) is _MOVES)


def takes_note(call: ToolCall) -> bool:
    """Whether a tool by its name only takes note of what the agent says: thoughts, plans, lists of what is to be done.

    Its result is the same by design, and neither work nor news.
    """
    return _by_name(call.tool) is _TALKS


_TALKS: Final = "talks"
_WAITS: Final = "waits"
_MOVES: Final = "moves"  # on from where it is, so that the same call is the next step
_TYPES: Final = "types"  # into a running process, or nothing, to see what it has said meanwhile
_TYPED_KEYS: Final = ("chars", "input", "text", "data", "keys")


@lru_cache(maxsize=4096)
def hands_over(tool: str) -> bool:
    """Whether a tool by its name moves the conversation to another agent."""
    words = [word.lower() for word in _WORD.findall(tool.rsplit("__", 1)[-1].rsplit(".", 1)[-1])]
    return words[:2] == ["transfer", "to"] or words[:1] in (["handoff"], ["delegate"])


def runs_code(call: ToolCall) -> bool:
    """Whether a call runs a command or code, whose text tells only some of what it changes."""
    guess = _by_name(call.tool)
    if guess is not None:
        return guess is _RUNS_CODE
    action = _told_to(None, call.args)
    return action is not None and not _is_one_word(action)


def holds_command(call: ToolCall) -> bool:
    """Whether an argument is a command, a query or code: text with a meaning of its own."""
    return _told_to(_RUNS_CODE, call.args) is not None


_CHANGES: Final = "changes"
_READS: Final = "reads"
_RUNS_CODE: Final = "runs code"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_READ_WORDS: Final = _words(
    "get list ls read view show find search grep glob query lookup look fetch retrieve describe inspect check status "
    "count head tail cat open goto ask explain summarize summarise calculate calc compute "
    "validate verify preview diff compare history browse screenshot download peek stat tree which recall rag select "
    "info help is has exists watch monitor ping analyze analyse estimate"
)
_CHANGE_WORDS: Final = _words(
    "write edit create update delete remove insert append replace patch apply save store put post set add move mv "
    "rename cp copy mkdir rm touch upload send submit book cancel order buy purchase pay refund transfer commit push "
    "merge install uninstall deploy publish modify change drop truncate restart start stop kill enable disable assign "
    "close reopen approve reject schedule register upsert exchange return undo redo format chmod chown sed "
    "charge debit withdraw deposit"
)
_TALK_WORDS: Final = _words("think thinking thought plan planning reason reflect note log print echo say speak comment")
# An agent's list of what it means to do is its own, and the world is as before.
_TODO_WORDS: Final = _words("todo todos todolist")
_PLANNING: Final = (["update", "plan"], ["set", "plan"], ["write", "plan"], ["create", "plan"], ["make", "plan"])
_SEARCH_WORDS: Final = _words("search query ask retrieve recall rag grep glob find")
_QUESTION_KEYS: Final = _words(
    "query q question prompt search keywords terms phrase pattern filter topic input task request goal"
)
_MOVE_WORDS: Final = frozenset({"scroll", "swipe", "press", "keypress", "wheel"})
_WAIT_WORDS: Final = frozenset({"poll", "wait", "await", "sleep"})
_CODE_WORDS: Final = _words(
    "bash shell sh zsh terminal cmd command exec execute run ipython python code sql powershell console repl"
)
_SHELL_WORDS: Final = _words("bash shell sh zsh terminal cmd command exec execute run powershell")
_OTHER_CODE_WORDS: Final = _CODE_WORDS - _SHELL_WORDS
_EDITORS: Final = ("str_replace_based_edit_tool", "edit_file_tool")
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@lru_cache(maxsize=4096)
def _by_name(tool: str) -> str | None:
    words = [word.lower() for word in _WORD.findall(tool.rsplit("__", 1)[-1].rsplit(".", 1)[-1]) if not word.isdigit()]
    if not words:
        return None
    # An editor does as it is told: it views, too.
    if words[-1] == "editor" or tool in _EDITORS:
        return None
    # The world is as before.
    if hands_over(tool):
        return None
    if any(word in _WAIT_WORDS for word in words):
        return _WAITS
    if words[-1] == "stdin":
        return _TYPES
    first = words[0]
    if first in _TALK_WORDS or not _TODO_WORDS.isdisjoint(words) or words in _PLANNING:
        return _TALKS
    if first in _CODE_WORDS and not (len(words) > 1 and words[-1] in ("tests", "test", "lint", "linter", "checks")):
        return _RUNS_CODE
    for word in words:
        if word in _MOVE_WORDS:
            return _MOVES
        if word in _CHANGE_WORDS:
            return _CHANGES
        if word in _READ_WORDS:
            return _READS
    return _RUNS_CODE if words[-1] in _CODE_WORDS else None


def _given(args: object) -> object:
    """The arguments, read where they come as JSON text: that is what a model sends, and many sources pass it on."""
    if type(args) is str and args[:1] == "{":
        try:
            return orjson.loads(args)
        except ValueError:
            pass  # cut off, or text that only begins like JSON
    return args


# The first argument of these names tells.
_COMMANDS: Final = ("command", "cmd", "code", "query", "sql", "script", "statement", "input", "source")
_ACTIONS: Final = ("command", "cmd", "action", "operation", "method", "code", "script", "sql")
_HAS_ACTION: Final = frozenset(_ACTIONS)


def _told_to(guess: str | None, args: object) -> str | None:
    """What a tool is told to do: the command of one that runs code, else the action, where an argument says it."""
    is_code = guess is _RUNS_CODE
    if type(args) is not dict:
        args = _given(args)
        if type(args) is not dict:
            return args if is_code and isinstance(args, str) else None
    if not is_code and _HAS_ACTION.isdisjoint(args):
        return None
    for name in _COMMANDS if is_code else _ACTIONS:
        value = args.get(name)
        if isinstance(value, str):
            return value
        if is_code and isinstance(value, list):
            return " ".join(map(str, value))
    return None


def asks_in_words(call: ToolCall) -> bool:
    """Whether a call asks a question that can be put in other words.

    Such are the calls of tools that search by their name, looking commands and code, and a text of several words that
    is named as a question. The same answer for another name, number or document is a fact about it; for other words
    it is the same answer again.
    """
    guess = _by_name(call.tool)
    if guess is _TALKS:
        return False
    if guess is _RUNS_CODE:
        return _has_words(_told_to(_RUNS_CODE, call.args)) and not (_is_shell(call.tool) and may_act(call))
    args = _given(call.args)
    asks = _is_text if _searches(call.tool) else _has_words
    if type(args) is not dict:
        return asks(args)
    return any(asks(value) for key, value in args.items() if asks is _is_text or key in _QUESTION_KEYS)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value) and not value.isdigit()


def _has_words(value: object) -> bool:
    return isinstance(value, str) and " " in value.strip()


def may_act(call: ToolCall) -> bool:
    """Whether neither the declaration, nor the name, nor the command says that this call does nothing but look."""
    if call.read_only or call.polling:
        return False
    guess = _by_name(call.tool)
    if guess is None:
        action = _told_to(None, call.args)
        if action is not None and not _is_one_word(action):
            return not only_looks(action)
        return action is None or _by_name(action) is not _READS
    if guess is not _RUNS_CODE:
        return guess not in (_READS, _WAITS, _TALKS)
    command = _told_to(_RUNS_CODE, call.args)
    return command is not None and not only_looks(command)


@lru_cache(maxsize=4096)
def _is_shell(tool: str) -> bool:
    words = [word.lower() for word in _WORD.findall(tool)]
    return any(word in _SHELL_WORDS for word in words) and _OTHER_CODE_WORDS.isdisjoint(words)


@lru_cache(maxsize=4096)
def _searches(tool: str) -> bool:
    return not _SEARCH_WORDS.isdisjoint(word.lower() for word in _WORD.findall(tool))


# An action is one word or a few joined (add_comment, orders/create), and the rest is a command.
_ACTION: Final = re.compile(r"\w[\w./:-]{,63}")


def _is_one_word(action: str) -> bool:
    return _ACTION.fullmatch(action) is not None


def _by_action(args: object) -> bool | None:
    action = _told_to(None, args)
    if action is None:
        return None
    if _is_one_word(action):
        guess = _by_name(action)
        return guess is _CHANGES if guess is _CHANGES or guess is _READS else None
    return writes(action)
