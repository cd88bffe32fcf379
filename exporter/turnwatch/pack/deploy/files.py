"""Prometheus and Alertmanager: files, a reload, and a look at what the server has loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from turnwatch.pack.deploy.changes import Action, Change, DeployError, text_diff
from turnwatch.pack.deploy.http import Server
from turnwatch.pack.render import ALERTMANAGER_FILE, GENERATED, RULES_FILE, TEMPLATE_FILE

_MARKS: Final = (GENERATED.partition(" from ")[0], "{{/* Made by turnwatch")
"""How a file of ours begins."""


class FileTarget:
    """A server that reads files of ours and is told to read them again."""

    def __init__(
        self, name: str, server: Server, files: Mapping[Path, str], missing_from: Callable[[Server], str | None]
    ) -> None:
        self.name = name
        self._server = server
        self._files = dict(files)
        self._missing_from = missing_from

    def changes(self, *, prune: bool) -> list[Change]:
        """See ``Target.changes``."""
        if not self._server.ask("GET", "/-/ready").is_ok:
            raise DeployError(f"{self.name} at {self._server.url} is not ready. Nothing was changed")
        changes = []
        for path, content in self._files.items():
            there = _content_of(path)
            if there is None:
                changes.append(Change("create", str(path), text_diff("", content, path.name)))
            elif there != content:
                action: Action = "update" if there.startswith(_MARKS) else "conflict"
                changes.append(Change(action, str(path), text_diff(there, content, path.name)))
        if prune:
            for path in sorted({other for file in self._files for other in file.parent.iterdir()} - self._files.keys()):
                there = _content_of(path) if path.is_file() else None
                if there is not None and there.startswith(_MARKS):
                    changes.append(Change("delete", str(path), text_diff(there, "", path.name)))
        return changes

    def apply(self, changes: list[Change]) -> None:
        """See ``Target.apply``."""
        before: dict[Path, str | None] = {}
        try:
            for change in changes:
                path = Path(change.what)
                before[path] = _content_of(path)
                _put(path, None if change.action == "delete" else self._files[path])
            self._reload()
            if fault := self._missing_from(self._server):
                raise DeployError(f"{self.name} was reloaded, but {fault}")
        except (OSError, DeployError) as error:
            taken_back = self._take_back(before)
            raise DeployError(f"{self.name}: {error}. {taken_back}") from None

    def _take_back(self, before: Mapping[Path, str | None]) -> str:
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
            raise DeployError(f"it refused the files: {answer.text.strip()}")


def prometheus(url: str, rules_folder: Path, pack: Path) -> FileTarget:
    """Return the target of the rules in ``pack``.

    Args:
        url: Prometheus's URL.
        rules_folder: A folder that its ``rule_files`` names; Prometheus sees it under any path.
        pack: Where ``turnwatch pack render`` wrote to.
    """
    content = (pack / RULES_FILE).read_text(encoding="utf-8")
    wanted = {
        group["name"]: [rule.get("alert") or rule["record"] for rule in group["rules"]]
        for group in yaml.safe_load(content)["groups"]
    }
    file_name = Path(RULES_FILE).name

    def missing_from(server: Server) -> str | None:
        loaded = {
            group["name"]: [rule["name"] for rule in group["rules"]]
            for group in server.ask("GET", "/api/v1/rules").json()["data"]["groups"]
            if group["file"].rpartition("/")[2] == file_name
        }
        if loaded == wanted:
            return None
        if not loaded:
            return f"it has no rules of {file_name}: name {rules_folder} in its rule_files"
        return "it holds other rules than the pack's"

    return FileTarget("Prometheus", Server(url), {rules_folder / file_name: content}, missing_from)


def alertmanager(url: str, config_file: Path, pack: Path) -> FileTarget:
    """Return the target of routes, inhibition and templates in ``pack``.

    Args:
        url: Alertmanager's URL.
        config_file: The file it was started with. The template goes beside it.
        pack: Where ``turnwatch pack render`` wrote to.
    """
    content = (pack / ALERTMANAGER_FILE).read_text(encoding="utf-8")
    wanted: dict[str, Any] = yaml.safe_load(content)
    files = {
        config_file.parent / Path(TEMPLATE_FILE).name: (pack / TEMPLATE_FILE).read_text(encoding="utf-8"),
        config_file: content,
    }

    def missing_from(server: Server) -> str | None:
        loaded = yaml.safe_load(server.ask("GET", "/api/v2/status").json()["config"]["original"])
        receivers = [[receiver["name"] for receiver in config["receivers"]] for config in (loaded, wanted)]
        rules = [len(config.get("inhibit_rules", [])) for config in (loaded, wanted)]
        if receivers[0] == receivers[1] and rules[0] == rules[1]:
            return None
        return f"it holds another configuration: was it started with {config_file}?"

    return FileTarget("Alertmanager", Server(url), files, missing_from)


def _content_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        return "(not text)"


def _put(path: Path, content: str | None) -> None:
    """Write a whole file or none: a server that reloads by itself must not read half of one."""
    if content is None:
        path.unlink(missing_ok=True)
        return
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(content, encoding="utf-8")
    beside.replace(path)
