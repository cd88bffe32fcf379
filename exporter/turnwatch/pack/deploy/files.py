"""Prometheus and Alertmanager: files, a reload, and a look at what the server has loaded."""

from __future__ import annotations

import fcntl
import itertools
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml

from turnwatch.pack.deploy.changes import Change, DeployError, text_diff
from turnwatch.pack.deploy.http import Server
from turnwatch.pack.deploy.placeholders import placeholders
from turnwatch.pack.deploy.rule_files import line_to_add
from turnwatch.pack.deploy.secrets import as_shown
from turnwatch.pack.render import ALERTMANAGER_FILE, GENERATED, RULES_FILE, TEMPLATE_FILE
from turnwatch.pack.yaml_text import value_of

_MARK: Final = GENERATED.partition(" from ")[0].encode()
_TEMPLATE_MARK: Final = b"{{/* Made by turnwatch"
"""How files of ours begin."""


class _RefusedError(DeployError):
    """The server read the files and refused them."""


class FileTarget:
    """A server that reads files of ours and is told to read them again.

    Args:
        name: The server's.
        server: Where it is.
        pack: The folder that was rendered to.
        files: What is to be in which file.
        look: Asked before the first file is written, with the files that are new. What it returns is asked once the
            server has been reloaded: what it lacks, or None for nothing.
        is_left_over: Whether a file that begins with our mark and is not among ``files`` is one of this server's.
        with_secrets: Those of ``files`` that a diff must not show whole.
        instead: What can be done about a file of somebody else's in the place of one of ``files``.
        refused: Why one of ``files`` is not to be written.
    """

    def __init__(
        self,
        name: str,
        server: Server,
        pack: Path,
        files: Mapping[Path, str],
        look: Callable[[Server, frozenset[Path]], Callable[[], str | None]],
        is_left_over: Callable[[bytes], bool],
        with_secrets: frozenset[Path] = frozenset(),
        instead: Mapping[Path, str] = MappingProxyType({}),
        refused: Mapping[Path, str] = MappingProxyType({}),
    ) -> None:
        self.name = name
        self.up_to_date = f"up to date: {' and '.join(map(str, files))} there already, the same, and loaded"
        self._server = server
        self._pack = pack
        self._files = {path: content.encode() for path, content in files.items()}
        self._look = look
        self._is_left_over = is_left_over
        self._with_secrets = with_secrets
        self._instead = instead
        self._refused = refused
        self._seen: dict[Path, bytes | None] = {}

    def changes(self, *, prune: bool) -> list[Change]:
        """See ``Target.changes``."""
        if not self._server.ask("GET", "/-/ready").is_ok:
            raise DeployError(f"{self.name} at {self._server.url} is not ready. Nothing was changed")
        try:
            return list(self._changes(prune=prune)) or list(self._unloaded())
        except OSError as error:
            raise DeployError(f"{self.name}: {error.filename}: {error.strerror}. Nothing was changed") from None

    def _changes(self, *, prune: bool) -> Iterator[Change]:
        for path, content in self._files.items():
            there = self._seen[path] = _content_of(path)
            if there is None:
                yield Change("create", str(path), self._diff(b"", content, path), refused=self._refused.get(path, ""))
            elif there != content:
                is_ours = there.startswith((_MARK, _TEMPLATE_MARK))
                yield Change(
                    "update" if is_ours else "conflict",
                    str(path),
                    self._diff(there, content, path),
                    backup="" if is_ours else str(_unused_name(path)),
                    instead=self._instead.get(path, ""),
                    refused=self._refused.get(path, ""),
                )
        if prune:
            for path in sorted({other for file in self._files for other in file.parent.iterdir()} - self._files.keys()):
                there = None if path.is_symlink() or not path.is_file() else _content_of(path)
                if there is not None and self._is_left_over(there):
                    self._seen[path] = there
                    yield Change("delete", str(path), self._diff(there, b"", path))

    def _unloaded(self) -> Iterator[Change]:
        """The files are as they should be; somebody else may have put them there, where the server does not look."""
        if lacks := self._look(self._server, frozenset())():
            *_, path = self._files
            said = f"{path} is there already, and the same, but {self.name} does not hold it. Deploying reloads it"
            yield Change("reload", str(path), f"{said}, which helps unless {lacks}\n")

    def _diff(self, before: bytes, after: bytes, path: Path) -> str:
        shown = as_shown if path in self._with_secrets else str
        return text_diff(shown(_text(before)), shown(_text(after)), path.name)

    def apply(self, changes: list[Change]) -> None:
        """See ``Target.apply``."""
        with _alone_in({Path(change.what).parent for change in changes}):
            self._apply(changes)

    def _apply(self, changes: list[Change]) -> None:
        before: dict[Path, bytes | None] = {}
        try:
            lacking = self._look(self._server, frozenset(Path(new.what) for new in changes if new.action == "create"))
            for change in changes:
                path = Path(change.what)
                there = _content_of(path)
                if there != self._seen[path]:
                    raise DeployError(f"{path} was changed by somebody else in the meantime")
                if change.action == "reload":
                    continue
                if change.backup:
                    backup = Path(change.backup)
                    before[backup] = None
                    _put(backup, there, like=path)
                before[path] = there
                _put(path, None if change.action == "delete" else self._files[path])
            self._reload()
            if fault := lacking():
                raise DeployError(f"{self.name} was reloaded, but {fault}")
        except BaseException as error:
            taken_back = self._take_back(before)
            if isinstance(error, Exception):
                hint = (
                    f". `turnwatch pack check {self._pack}` names the line" if isinstance(error, _RefusedError) else ""
                )
                raise DeployError(f"{self.name}: {_said(error)}. {taken_back}{hint}") from None
            raise

    def _take_back(self, before: Mapping[Path, bytes | None]) -> str:
        if not before:
            return "Nothing was changed"
        try:
            for path, content in before.items():
                _put(path, content)
        except OSError as error:
            return f"The files could not be put back: {error}"
        try:
            self._reload()
        except DeployError:
            return "The files are as they were before; the server could not be reloaded"
        return "The files are as they were before, and the server was reloaded"

    def _reload(self) -> None:
        answer = self._server.ask("POST", "/-/reload")
        if answer.status in {403, 405}:
            raise DeployError("it does not take reloads; start it with --web.enable-lifecycle")
        if not answer.is_ok:
            raise _RefusedError(f"it refused the files: {answer.said}")


def prometheus(server: Server, rules_folder: Path, pack: Path) -> FileTarget:
    """Return the target of the rules in ``pack``.

    Args:
        server: Prometheus.
        rules_folder: A folder that its ``rule_files`` names; Prometheus sees it under any path.
        pack: Where ``turnwatch pack render`` wrote to.
    """
    content = (pack / RULES_FILE).read_text(encoding="utf-8")
    wanted = [(group["name"], [_as_loaded(rule) for rule in group["rules"]]) for group in _groups(content)]
    path = rules_folder / Path(RULES_FILE).name

    def loaded(server: Server) -> dict[str, list[Any]]:
        files: dict[str, list[Any]] = {}
        for group in server.ask("GET", "/api/v1/rules").json()["data"]["groups"]:
            # Another team may have a file of this name, too.
            if group["file"].rpartition("/")[2] == path.name:
                rules = [_as_loaded(rule) for rule in group["rules"]]
                files.setdefault(group["file"], []).append((group["name"], rules))
        return files

    def look(server: Server, new: frozenset[Path]) -> Callable[[], str | None]:
        # Prometheus may see the folder under any path. But what it has of a file that is not there yet is another's.
        others = {seen for seen in loaded(server) if not _may_be(seen, path)} if path in new else set()

        def lacking() -> str | None:
            files = loaded(server)
            if any(sorted(files[name], key=str) == sorted(wanted, key=str) for name in files.keys() - others):
                return None
            if not files.keys() - others:
                elsewhere = f"; what it has is of {', '.join(sorted(others))}" if others else ""
                there = f"its rule_files do not name {rules_folder}: it has no rules of {path}{elsewhere}"
                return f"{there}. {line_to_add(server, path)}"
            return "it holds other rules than the pack's"

        return lacking

    def is_left_over(content: bytes) -> bool:
        # Not the pack's other files, which begin alike: the folder may be one that it was rendered to.
        return content.startswith(_MARK) and _document(content).keys() == {"groups"}

    return FileTarget("Prometheus", server, pack, {path: content}, look, is_left_over)


def alertmanager(server: Server, config_file: Path, pack: Path) -> FileTarget:
    """Return the target of routes, inhibition and templates in ``pack``.

    Args:
        server: Alertmanager.
        config_file: The file it was started with. The template goes beside it.
        pack: Where ``turnwatch pack render`` wrote to.
    """
    content = (pack / ALERTMANAGER_FILE).read_text(encoding="utf-8")
    wanted: dict[str, Any] = value_of(content)
    files = {
        config_file.parent / Path(TEMPLATE_FILE).name: (pack / TEMPLATE_FILE).read_text(encoding="utf-8"),
        config_file: content,
    }

    def lacking() -> str | None:
        loaded = value_of(server.ask("GET", "/api/v2/status").json()["config"]["original"])
        receivers = [[receiver["name"] for receiver in config["receivers"]] for config in (loaded, wanted)]
        rules = [len(config.get("inhibit_rules", [])) for config in (loaded, wanted)]
        if receivers[0] == receivers[1] and rules[0] == rules[1]:
            return None
        return f"it holds another configuration: was it started with {config_file}?"

    def is_left_over(content: bytes) -> bool:
        return content.startswith(_TEMPLATE_MARK)

    source = pack / ALERTMANAGER_FILE
    instead = (
        f"Merge routes, inhibition and receivers of {source} into it by hand (docs/alerts.md), or leave"
        " --alertmanager-url and --alertmanager-file out"
    )
    refused = {}
    if found := placeholders(wanted):
        refused[config_file] = (
            f"{source} has the example's addresses, which lead nowhere: {', '.join(found)}. Put your own receivers into"
            " it, or leave --alertmanager-url and --alertmanager-file out"
        )
    return FileTarget(
        "Alertmanager",
        server,
        pack,
        files,
        lambda *_: lacking,
        is_left_over,
        frozenset({config_file}),
        {config_file: instead},
        refused,
    )


def _may_be(seen: str, path: Path) -> bool:
    """Whether this name of Prometheus', which may be relative to its own folder, says where ``path`` is, too."""
    return f"/{path.resolve()}".endswith(f"/{seen.removeprefix('./')}")


def _groups(content: str) -> list[Any]:
    return list(value_of(content)["groups"])


def _as_loaded(rule: Mapping[str, Any]) -> tuple[str, object, object]:
    """What a rule file and Prometheus' interface say alike; the query is printed anew by each Prometheus."""
    name = rule.get("alert") or rule.get("record") or rule["name"]
    return name, rule.get("labels") or {}, rule.get("annotations") or {}


def _document(content: bytes) -> Mapping[str, Any]:
    try:
        document = value_of(content)
    except yaml.YAMLError:
        return {}
    return document if isinstance(document, dict) else {}


def _said(error: Exception) -> str:
    """What went wrong. An answer of another shape than was asked for is a server of another kind."""
    return str(error) if isinstance(error, (DeployError, OSError)) else "it answers as no such server does"


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return "(not text)"


@contextmanager
def _alone_in(folders: set[Path]) -> Iterator[None]:
    """Keep other deployments out of these folders; the lock is gone with the process, and leaves nothing behind."""
    opened: list[int] = []
    try:
        for folder in sorted(folders):
            try:
                opened.append(os.open(folder, os.O_RDONLY))
                fcntl.flock(opened[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DeployError(f"another deployment is at work in {folder}. Nothing was changed") from None
            except OSError as error:
                raise DeployError(f"{folder}: {error.strerror}. Nothing was changed") from None
        yield
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _content_of(path: Path) -> bytes | None:
    if path.is_symlink():
        raise DeployError(f"{path} is a link, and would be replaced by a file: name what it leads to")
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _unused_name(path: Path) -> Path:
    """A name for a backup of this file, beside it: one that is not an older backup's."""
    numbers = itertools.count(2)
    name = path.with_name(f"{path.name}.bak")
    while os.path.lexists(name):
        name = path.with_name(f"{path.name}.bak{next(numbers)}")
    return name


def _put(path: Path, content: bytes | None, *, like: Path | None = None) -> None:
    """Write a whole file or none: a server that reloads by itself must not read half of one.

    A new name each time, so that nobody can have put a link there; and what could not read the file before, for there
    may be passwords in it, cannot after. A new file is ``like`` another one, or as any new file.
    """
    if content is None:
        path.unlink(missing_ok=True)
        return
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    os.close(descriptor)
    beside = Path(name)
    try:
        beside.write_bytes(content)
        try:
            there = (like or path).stat()
        except FileNotFoundError:
            beside.chmod(0o666 & ~_umask())
        else:
            beside.chmod(there.st_mode & 0o7777)
            with suppress(PermissionError):
                os.chown(beside, there.st_uid, there.st_gid)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
