"""Grafana: dashboards, through the interface of version 12 and later or the one before it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import quote

from turnwatch.pack.deploy.changes import Action, Change, DeployError, text_diff
from turnwatch.pack.deploy.http import Server, ServerAnswer

TAG: Final = "turnwatch"
PREFIX: Final = "turnwatch-"
_OF_THE_SERVER: Final = frozenset({"id", "uid", "version", "iteration"})
"""Keys of a dashboard that the server sets."""
_FOLDER: Final = "grafana.app/folder"
_MOST_PAGES: Final = 1000
_T = TypeVar("_T")

Dashboard = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Found:
    """A dashboard that a Grafana holds.

    Attributes:
        dashboard: Its JSON.
        folder_uid: Where it is; "" for no folder.
        rest: What the interface needs to write over it: the metadata, or nothing.
    """

    dashboard: Dashboard
    folder_uid: str
    rest: Mapping[str, Any] = field(default_factory=dict)


class _Interface(Protocol):
    """One of Grafana's interfaces for dashboards."""

    def read(self, uid: str) -> _Found | None: ...
    def write(self, uid: str, dashboard: Dashboard, folder_uid: str) -> None: ...
    def remove(self, uid: str) -> None: ...
    def uids(self) -> list[str]: ...


class GrafanaTarget:
    """Dashboards of a Grafana. A new one goes into the folder; one that is there stays where somebody put it."""

    def __init__(self, server: Server, folder_uid: str, dashboards: Mapping[str, Dashboard], namespace: str) -> None:
        self.name = "Grafana"
        self.up_to_date = "up to date"
        self._server = server
        self._folder_uid = folder_uid
        self._dashboards = dict(dashboards)
        self._namespace = namespace
        self._known: _Interface | None = None
        self._seen: dict[str, _Found | None] = {}

    def changes(self, *, prune: bool) -> list[Change]:
        """See ``Target.changes``."""
        changes = []
        for uid, dashboard in self._dashboards.items():
            there = self._seen[uid] = self._interface.read(uid)
            after = _normalised(dashboard)
            if there is None:
                changes.append(Change("create", uid, text_diff("", after, uid)))
            elif (before := _normalised(there.dashboard)) != after:
                action: Action = "update" if _is_ours(uid, there.dashboard) else "conflict"
                changes.append(Change(action, uid, text_diff(before, after, uid)))
        if prune:
            for uid in sorted(set(self._interface.uids()) - self._dashboards.keys()):
                there = self._seen[uid] = self._interface.read(uid)
                if there is not None and _is_ours(uid, there.dashboard):
                    changes.append(Change("delete", uid, text_diff(_normalised(there.dashboard), "", uid)))
        return changes

    def apply(self, changes: list[Change]) -> None:
        """See ``Target.apply``."""
        done: list[str] = []
        try:
            if any(change.action == "create" for change in changes):
                self._make_folder()
            for change in changes:
                uid, seen = change.what, self._seen[change.what]
                there = self._interface.read(uid)
                if _normalised_if_any(there) != _normalised_if_any(seen):
                    raise DeployError(f"{uid} was changed by somebody else in the meantime")
                done.append(uid)
                if change.action == "delete":
                    self._interface.remove(uid)
                else:
                    folder = self._folder_uid if there is None else there.folder_uid
                    self._interface.write(uid, self._dashboards[uid], folder)
            for change in changes:
                wanted = None if change.action == "delete" else _normalised(self._dashboards[change.what])
                if _normalised_if_any(self._interface.read(change.what)) != wanted:
                    raise DeployError(f"{change.what} is not what was sent")
        except BaseException as error:
            taken_back = self._take_back(done)
            if isinstance(error, Exception):
                said = error if isinstance(error, DeployError) else "it answers as no Grafana does"
                raise DeployError(f"Grafana: {said}. {taken_back}") from None
            raise

    def _take_back(self, done: list[str]) -> str:
        left = []
        for uid in reversed(done):
            before = self._seen[uid]
            try:
                there = self._interface.read(uid)
                if before is None and there is not None:
                    self._interface.remove(uid)
                elif before is not None and _normalised_if_any(there) != _normalised(before.dashboard):
                    self._interface.write(uid, before.dashboard, before.folder_uid)
            except DeployError:
                left.append(uid)
        return f"These could not be put back: {', '.join(left)}" if left else "The dashboards are as they were before"

    def _make_folder(self) -> None:
        if not self._folder_uid:
            return
        answer = self._server.ask("GET", f"/api/folders/{_quoted(self._folder_uid)}")
        if answer.status == 404:
            answer = self._server.ask("POST", "/api/folders", {"uid": self._folder_uid, "title": "Agents"})
        _expect(answer, f"folder {self._folder_uid}")

    @property
    def _interface(self) -> _Interface:
        if self._known is None:
            answer = self._server.ask("GET", "/apis/dashboard.grafana.app")
            offered = [] if answer.status == 404 else _field(_expect(answer, "its interfaces").json(), "versions", list)
            versions = [entry.get("version") for entry in offered if isinstance(entry, dict)]
            version = next((one for one in ("v1", "v1beta1") if one in versions), None)
            # Grafana 11 has a first draft of the new interface only.
            self._known = (
                _BeforeTwelve(self._server) if version is None else _SinceTwelve(self._server, version, self._namespace)
            )
        return self._known


class _SinceTwelve:
    """/apis/dashboard.grafana.app/v1 (v1beta1 on 12.x). A resourceVersion guards against writing over others."""

    def __init__(self, server: Server, version: str, namespace: str) -> None:
        self._server = server
        self._api = f"dashboard.grafana.app/{version}"
        self._path = f"/apis/{self._api}/namespaces/{_quoted(namespace)}/dashboards"

    def read(self, uid: str) -> _Found | None:
        answer = self._server.ask("GET", f"{self._path}/{_quoted(uid)}")
        if answer.status == 404:
            return None
        whole = _expect(answer, uid).json()
        metadata = _field(whole, "metadata", dict)
        folder = (metadata.get("annotations") or {}).get(_FOLDER) or ""
        return _Found(_field(whole, "spec", dict), folder, metadata)

    def write(self, uid: str, dashboard: Dashboard, folder_uid: str) -> None:
        there = self.read(uid)
        # What others noted about the dashboard stays.
        metadata: dict[str, Any] = {"name": uid} if there is None else dict(there.rest)
        if folder_uid:
            metadata["annotations"] = {**(metadata.get("annotations") or {}), _FOLDER: folder_uid}
        spec = {key: value for key, value in dashboard.items() if key not in _OF_THE_SERVER}
        body = {"apiVersion": self._api, "kind": "Dashboard", "metadata": metadata, "spec": spec}
        if there is None:
            _expect(self._server.ask("POST", self._path, body), uid)
        else:
            _expect(self._server.ask("PUT", f"{self._path}/{_quoted(uid)}", body), uid)

    def remove(self, uid: str) -> None:
        _expect(self._server.ask("DELETE", f"{self._path}/{_quoted(uid)}"), uid)

    def uids(self) -> list[str]:
        names: list[str] = []
        more = ""
        for _ in range(_MOST_PAGES):
            page = _expect(self._server.ask("GET", f"{self._path}?limit=500{more}"), "its dashboards").json()
            names += [_field(_field(item, "metadata", dict), "name", str) for item in _field(page, "items", list)]
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return names
            more = f"&continue={_quoted(token)}"
        raise DeployError("Grafana's list of dashboards has no end")


class _BeforeTwelve:
    """/api/dashboards. The version that was read guards against writing over others: 412 when it is not the last."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def read(self, uid: str) -> _Found | None:
        answer = self._server.ask("GET", f"/api/dashboards/uid/{_quoted(uid)}")
        if answer.status == 404:
            return None
        whole = _expect(answer, uid).json()
        return _Found(_field(whole, "dashboard", dict), (whole.get("meta") or {}).get("folderUid") or "")

    def write(self, uid: str, dashboard: Dashboard, folder_uid: str) -> None:
        there = self.read(uid)
        body = {
            "dashboard": {
                **{key: value for key, value in dashboard.items() if key not in _OF_THE_SERVER},
                "uid": uid,
                "id": None if there is None else there.dashboard["id"],
                "version": 0 if there is None else there.dashboard["version"],
            },
            "folderUid": folder_uid,
            "overwrite": False,
            "message": "turnwatch pack deploy",
        }
        _expect(self._server.ask("POST", "/api/dashboards/db", body), uid)

    def remove(self, uid: str) -> None:
        _expect(self._server.ask("DELETE", f"/api/dashboards/uid/{_quoted(uid)}"), uid)

    def uids(self) -> list[str]:
        answer = self._server.ask("GET", f"/api/search?type=dash-db&limit=5000&tag={TAG}")
        return [_field(found, "uid", str) for found in _expect(answer, "its dashboards").json()]


def grafana(server: Server, folder_uid: str, pack: Path, *, namespace: str = "default") -> GrafanaTarget:
    """Return the target of the dashboards in ``pack``.

    Args:
        server: Grafana, with a service account's token that has the right to write dashboards and folders.
        folder_uid: The folder of new ones, made when it is missing; "" for none.
        pack: Where ``turnwatch pack render`` wrote to.
        namespace: Of Grafana 12 and later: "default", or "org-<id>", or "stacks-<id>" in the cloud.

    Raises:
        DeployError: A file is no dashboard.
    """
    dashboards = {}
    for path in sorted((pack / "dashboards").glob("*.json")):
        try:
            dashboard = json.loads(path.read_text("utf-8"))
        except ValueError:
            raise DeployError(f"{path} is not JSON") from None
        if not isinstance(dashboard, dict):
            raise DeployError(f"{path} is no dashboard")
        dashboards[str(dashboard.get("uid") or path.stem)] = dashboard
    return GrafanaTarget(server, folder_uid, dashboards, namespace)


def _is_ours(uid: str, dashboard: Dashboard) -> bool:
    return uid.startswith(PREFIX) and TAG in (dashboard.get("tags") or [])


def _normalised(dashboard: Dashboard) -> str:
    own = {key: value for key, value in dashboard.items() if key not in _OF_THE_SERVER}
    return json.dumps(own, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _normalised_if_any(found: _Found | None) -> str | None:
    return None if found is None else _normalised(found.dashboard)


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _field(whole: Any, name: str, kind: type[_T]) -> _T:
    """A field of an answer, which must be there and of this kind."""
    found = whole.get(name) if isinstance(whole, dict) else None
    if not isinstance(found, kind):
        raise DeployError("it answers as no Grafana does")
    return found


def _expect(answer: ServerAnswer, what: str) -> ServerAnswer:
    if answer.status in {409, 412}:
        raise DeployError(f"{what} was changed by somebody else in the meantime, or its title is taken ({answer.said})")
    if answer.status in {401, 403}:
        raise DeployError(f"the token may not do this ({answer.status}) to {what}")
    if not answer.is_ok:
        raise DeployError(f"it answered {answer.status} for {what}: {answer.said}")
    return answer
