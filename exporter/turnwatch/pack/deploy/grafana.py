"""Grafana: dashboards, through the interface of version 12 and later or the one before it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote

from turnwatch.pack.deploy.changes import Action, Change, DeployError, text_diff
from turnwatch.pack.deploy.http import Answer, Server

TAG: Final = "turnwatch"
PREFIX: Final = "turnwatch-"
_OF_THE_SERVER: Final = frozenset({"id", "uid", "version", "iteration"})
"""Keys of a dashboard that the server sets."""

Dashboard = Mapping[str, Any]


class _Interface(Protocol):
    """One of Grafana's interfaces for dashboards."""

    def read(self, uid: str) -> Dashboard | None: ...
    def write(self, uid: str, dashboard: Dashboard) -> None: ...
    def remove(self, uid: str) -> None: ...
    def uids(self) -> list[str]: ...


class GrafanaTarget:
    """Dashboards in one folder of a Grafana."""

    def __init__(self, server: Server, folder_uid: str, dashboards: Mapping[str, Dashboard], namespace: str) -> None:
        self.name = "Grafana"
        self._server = server
        self._folder_uid = folder_uid
        self._dashboards = dict(dashboards)
        self._namespace = namespace
        self._found: _Interface | None = None

    def changes(self, *, prune: bool) -> list[Change]:
        """See ``Target.changes``."""
        changes = []
        for uid, dashboard in self._dashboards.items():
            there = self._interface.read(uid)
            after = _normalised(dashboard)
            if there is None:
                changes.append(Change("create", uid, text_diff("", after, uid)))
            elif _normalised(there) != after:
                action: Action = "update" if _is_ours(uid, there) else "conflict"
                changes.append(Change(action, uid, text_diff(_normalised(there), after, uid)))
        if prune:
            for uid in sorted(set(self._interface.uids()) - self._dashboards.keys()):
                there = self._interface.read(uid)
                if there is not None and _is_ours(uid, there):
                    changes.append(Change("delete", uid, text_diff(_normalised(there), "", uid)))
        return changes

    def apply(self, changes: list[Change]) -> None:
        """See ``Target.apply``."""
        before: dict[str, Dashboard | None] = {}
        try:
            self._make_folder()
            for change in changes:
                before[change.what] = self._interface.read(change.what)
                if change.action == "delete":
                    self._interface.remove(change.what)
                else:
                    self._interface.write(change.what, self._dashboards[change.what])
            for change in changes:
                there = self._interface.read(change.what)
                wanted = None if change.action == "delete" else _normalised(self._dashboards[change.what])
                if (None if there is None else _normalised(there)) != wanted:
                    raise DeployError(f"{change.what} is not what was sent")
        except DeployError as error:
            raise DeployError(f"Grafana: {error}. {self._take_back(before)}") from None

    def _take_back(self, before: Mapping[str, Dashboard | None]) -> str:
        left = []
        for uid, dashboard in reversed(list(before.items())):
            try:
                there = self._interface.read(uid)
                if dashboard is None and there is not None:
                    self._interface.remove(uid)
                elif dashboard is not None and (there is None or _normalised(there) != _normalised(dashboard)):
                    self._interface.write(uid, dashboard)
            except DeployError:
                left.append(uid)
        return f"These could not be put back: {', '.join(left)}" if left else "The dashboards are as they were before"

    def _make_folder(self) -> None:
        if not self._folder_uid:
            return
        answer = self._server.ask("GET", f"/api/folders/{quote(self._folder_uid)}")
        if answer.status == 404:
            answer = self._server.ask("POST", "/api/folders", {"uid": self._folder_uid, "title": "Agents"})
        _expect(answer, f"folder {self._folder_uid}")

    @property
    def _interface(self) -> _Interface:
        if self._found is None:
            answer = self._server.ask("GET", "/apis/dashboard.grafana.app")
            if answer.status == 404:
                self._found = _BeforeTwelve(self._server, self._folder_uid)
            else:
                versions = [entry["version"] for entry in _expect(answer, "its interfaces").json().get("versions", [])]
                version = next((one for one in ("v1", "v1beta1") if one in versions), None)
                if version is None:
                    raise DeployError(f"Grafana: no interface for dashboards that is known here, only {versions}")
                self._found = _SinceTwelve(self._server, self._folder_uid, version, self._namespace)
        return self._found


class _SinceTwelve:
    """/apis/dashboard.grafana.app/v1 (v1beta1 on 12.x). A resourceVersion guards against writing over others."""

    def __init__(self, server: Server, folder_uid: str, version: str, namespace: str) -> None:
        self._server = server
        self._folder_uid = folder_uid
        self._api = f"dashboard.grafana.app/{version}"
        self._path = f"/apis/{self._api}/namespaces/{quote(namespace)}/dashboards"

    def read(self, uid: str) -> Dashboard | None:
        whole = self._read(uid)
        return None if whole is None else whole["spec"]

    def write(self, uid: str, dashboard: Dashboard) -> None:
        there = self._read(uid)
        metadata: dict[str, Any] = {"name": uid, "annotations": {"grafana.app/folder": self._folder_uid}}
        if there is not None:
            metadata["resourceVersion"] = there["metadata"]["resourceVersion"]
        spec = {key: value for key, value in dashboard.items() if key not in _OF_THE_SERVER}
        body = {"apiVersion": self._api, "kind": "Dashboard", "metadata": metadata, "spec": spec}
        if there is None:
            _expect(self._server.ask("POST", self._path, body), uid)
        else:
            _expect(self._server.ask("PUT", f"{self._path}/{quote(uid)}", body), uid)

    def remove(self, uid: str) -> None:
        _expect(self._server.ask("DELETE", f"{self._path}/{quote(uid)}"), uid)

    def uids(self) -> list[str]:
        names: list[str] = []
        more = ""
        while True:
            page = _expect(self._server.ask("GET", f"{self._path}?limit=500{more}"), "its dashboards").json()
            names += [item["metadata"]["name"] for item in page["items"]]
            token = page.get("metadata", {}).get("continue")
            if not token:
                return names
            more = f"&continue={quote(token)}"

    def _read(self, uid: str) -> dict[str, Any] | None:
        answer = self._server.ask("GET", f"{self._path}/{quote(uid)}")
        if answer.status == 404:
            return None
        whole: dict[str, Any] = _expect(answer, uid).json()
        return whole


class _BeforeTwelve:
    """/api/dashboards. The version that was read guards against writing over others: 412 when it is not the last."""

    def __init__(self, server: Server, folder_uid: str) -> None:
        self._server = server
        self._folder_uid = folder_uid

    def read(self, uid: str) -> Dashboard | None:
        answer = self._server.ask("GET", f"/api/dashboards/uid/{quote(uid)}")
        if answer.status == 404:
            return None
        dashboard: Dashboard = _expect(answer, uid).json()["dashboard"]
        return dashboard

    def write(self, uid: str, dashboard: Dashboard) -> None:
        there = self.read(uid)
        body = {
            "dashboard": {
                **{key: value for key, value in dashboard.items() if key not in _OF_THE_SERVER},
                "uid": uid,
                "id": None if there is None else there["id"],
                "version": 0 if there is None else there["version"],
            },
            "folderUid": self._folder_uid,
            "overwrite": False,
            "message": "turnwatch pack deploy",
        }
        _expect(self._server.ask("POST", "/api/dashboards/db", body), uid)

    def remove(self, uid: str) -> None:
        _expect(self._server.ask("DELETE", f"/api/dashboards/uid/{quote(uid)}"), uid)

    def uids(self) -> list[str]:
        answer = self._server.ask("GET", f"/api/search?type=dash-db&limit=5000&tag={TAG}")
        return [found["uid"] for found in _expect(answer, "its dashboards").json()]


def grafana(url: str, token: str | None, folder_uid: str, pack: Path, *, namespace: str = "default") -> GrafanaTarget:
    """Return the target of the dashboards in ``pack``.

    Args:
        url: Grafana's URL.
        token: A service account's token with the right to write dashboards and folders.
        folder_uid: The folder, made when it is missing; "" for none.
        pack: Where ``turnwatch pack render`` wrote to.
        namespace: Of Grafana 12 and later: "default", or "org-<id>", or "stacks-<id>" in the cloud.
    """
    dashboards = {
        path.stem: json.loads(path.read_text("utf-8")) for path in sorted((pack / "dashboards").glob("*.json"))
    }
    return GrafanaTarget(Server(url, token), folder_uid, dashboards, namespace)


def _is_ours(uid: str, dashboard: Dashboard) -> bool:
    return uid.startswith(PREFIX) and TAG in dashboard.get("tags", [])


def _normalised(dashboard: Dashboard) -> str:
    own = {key: value for key, value in dashboard.items() if key not in _OF_THE_SERVER}
    return json.dumps(own, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _expect(answer: Answer, what: str) -> Answer:
    if answer.status in {409, 412}:
        raise DeployError(f"{what} was changed by somebody else in the meantime")
    if answer.status in {401, 403}:
        raise DeployError(f"the token may not do this ({answer.status}) to {what}")
    if not answer.is_ok:
        raise DeployError(f"it answered {answer.status} for {what}: {answer.text.strip()[:300]}")
    return answer
