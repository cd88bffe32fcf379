"""Does a shell, SQL or code text change state, only look, or wait? A guess from its words."""

from __future__ import annotations

import re
from typing import Final

_LOOKED_AT_CHARS: Final = 4096


def _words(text: str) -> list[str]:
    return text.split()


_PACKAGE_MANAGERS: Final = _words("pip pip3 conda npm yarn pnpm apt apt-get brew cargo gem poetry uv")
_SHELL_WORDS: Final = _words(
    "rm mv cp mkdir rmdir touch ln chmod chown tee patch apply_patch dd truncate kill pkill "
    "Set-Content Add-Content Out-File New-Item Remove-Item Copy-Item Move-Item Rename-Item"
)
_GIT_WORDS: Final = _words(
    "apply checkout switch commit reset stash add rm mv merge rebase bisect clean restore revert fetch pull push init "
    "clone cherry-pick am submodule"
)
_SQL_WORDS: Final = _words(
    "insert update delete create alter drop truncate replace merge grant revoke rename begin commit rollback use set"
)
_CODE_WORDS: Final = _words(
    "write write_text write_bytes writelines open save to_csv remove rename mkdir makedirs unlink shutil edit_file "
    "insert_content create_file append_file writeFile commit"
)

# Whatever changes state has one of these words, or a ">"; most commands have none and need no closer look.
_WORDS: Final = re.compile(r"[A-Za-z_][\w-]*")
_TELLING_WORDS: Final = frozenset(
    [*_PACKAGE_MANAGERS, *_SHELL_WORDS, *_CODE_WORDS, "git", "sed", "perl", "make", "docker", "kubectl", "systemctl"]
    + ["export", "cd", "find", "edit_file_by_replace"]
    + [spelt for word in [*_SQL_WORDS, "with"] for spelt in (word, word.upper(), word.capitalize())]
)

_AT_START: Final = r"(?:^|[|;&(\n]|sh\s+-\w*c\s+[\"']?|\bthen\b|\bdo\b|\bsudo\b|\bxargs\b)\s*(?:\w+=\S+\s+)*"
_SHELL_WRITES: Final = re.compile(
    _AT_START
    + "(?:"
    + "|".join(
        [
            rf"(?:{'|'.join(_SHELL_WORDS)})\b",
            r"sed\s+(?:-\S+\s+)*-[a-zA-Z]*i",
            r"perl\s+-\S*i",
            rf"git\s+(?:{'|'.join(_GIT_WORDS)})\b",
            rf"(?:{'|'.join(_PACKAGE_MANAGERS)})\s+(?:\w+\s+)?(?:install|uninstall|remove|add|i|update|upgrade)\b",
            r"make\s+install",
            r"docker\s+(?:run|rm|stop|start|build)\b",
            r"kubectl\s+(?:apply|delete|create|patch|edit|scale)\b",
            r"systemctl\s+(?:start|stop|restart)\b",
            r"export\s",
            r"cd\s+\S+\s*$",
        ]
    )
    + ")"
    # A file that is written to; not 2>&1, ->, =>, /dev/null or a comparison with a number.
    + r"|(?<![0-9&<>=\-])>{1,2}\s*(?!/dev/null|&)[A-Za-z_./$~\"'{]"
    + r"|\bfind\b[^|;]*\s-(?:delete|exec\s+(?:rm|sed|mv))",
)
_CODE_WRITES: Final = re.compile(
    r"\.write(?:_text|_bytes|lines)?\(|open\([^)]*,\s*(?:mode\s*=\s*)?[\"'][wax]|\.save\(|\.to_csv\("
    r"|os\.(?:remove|rename|mkdir|makedirs|unlink)|shutil\.|\.commit\("
    r"|\b(?:edit_file|insert_content|create_file|append_file|writeFile)"
)
_SQL_WRITES: Final = re.compile(rf"^\s*(?:with\b.*?\)\s*)?(?:{'|'.join(_SQL_WORDS)})\b", re.IGNORECASE | re.DOTALL)
_SQL_READS: Final = re.compile(r"\s*(?:select|show|desc|describe|explain|pragma)\b", re.IGNORECASE)
# Programs that only tell what there is, and the words between programs. Any other program may do something of which
# its output says nothing, unless it is told to look: gh run list, kubectl get pods, docker ps.
_LOOKING: Final = frozenset(
    _words(
        "ls dir cat head tail less more grep egrep fgrep rg ag ack find fd locate wc sort uniq cut awk sed tr diff cmp "
        "stat file du df ps env printenv pwd cd which whereis type command echo printf tree nl od xxd hexdump strings "
        "jq yq git date uname hostname id whoami test [ true false sleep man help lsof netstat ss md5sum sha256sum "
        "basename dirname realpath readlink column tac rev seq search_dir search_file find_file "
        "Get-Content Get-ChildItem Select-String Get-Item Get-Location Test-Path "
        "for while if then else do done fi"
    )
)
_LOOKS: Final = re.compile(
    r"(?:\s+[\w-]+){0,2}\s+(?:get|list|ls|ps|show|view|status|describe|info|logs?|inspect|history|version)\b(?![./])"
)
_QUOTED: Final = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_SHELL_IN_SHELL: Final = re.compile(r"^\s*(?:/\S*/)?\w*sh\s+-\w*c\s+[\"']?")
_PROGRAM: Final = re.compile(
    r"(?:^|[|;&\n(])[\s(!]*(?:(?:(?:then|else|do|if|while|until|sudo|xargs)|\w+=\S*|-\S+)\s+)*([^\s|;&()<>\"'`!]+)"
)
_SLEEPS: Final = re.compile(r"\bsleep\s*\(?\s*\d")


def writes(command: str) -> bool:
    """Whether this text changes files, tables or processes; what it calls may do so unseen."""
    command = command[:_LOOKED_AT_CHARS]
    if ">" not in command and _TELLING_WORDS.isdisjoint(_WORDS.findall(command)):
        return False
    if _SQL_READS.match(command):  # its ">" compares
        return False
    return (
        _SHELL_WRITES.search(command) is not None
        or _SQL_WRITES.search(command) is not None
        or _CODE_WRITES.search(command) is not None
    )


def only_looks(command: str) -> bool:
    """Whether every program of this shell text, or this SQL, only tells what there is."""
    command = command[:_LOOKED_AT_CHARS]
    if _SQL_READS.match(command):
        return True
    text = _QUOTED.sub("_", _SHELL_IN_SHELL.sub("", command))
    programs = list(_PROGRAM.finditer(text))
    looks = all(program[1] in _LOOKING or _LOOKS.match(text, program.end()) is not None for program in programs)
    return bool(programs) and looks and not writes(command)


def sleeps(command: str) -> bool:
    """Whether this text waits for some time: it polls."""
    return "sleep" in command and _SLEEPS.search(command[:_LOOKED_AT_CHARS]) is not None
