"""A strict stand-in for Grafana's interfaces for dashboards, as its documentation describes them.

It refuses what a Grafana would refuse: requests without the token, wrong bodies, stale versions, unknown paths.
"""

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "glsa_secret"


class Grafana:
    """What it holds. `since_twelve` chooses the interface; `refuse` is a uid that it fails to write.

    `draft`: it names the new interface, in a version that came before. `noted`: annotations of others, by uid.
    """

    def __init__(self, since_twelve):
        self.since_twelve = since_twelve
        self.dashboards = {}
        self.folders = {}
        self.folder_of = {}
        self.noted = {}
        self.versions = {}
        self.refuse = None
        self.draft = False
        self.writes = 0
        self.url = ""

    def put(self, uid, dashboard, folder=""):
        self.versions[uid] = self.versions.get(uid, 0) + 1
        self.folder_of[uid] = folder
        self.dashboards[uid] = dashboard
        self.writes += 1

    def answer(self, method, path, body):
        for pattern, method_wanted, name in self.routes():
            found = re.fullmatch(pattern, path)
            if found and method == method_wanted:
                return getattr(self, name)(*found.groups(), **({} if body is None else {"body": body}))
        return 404, {"message": "Not found"}

    def routes(self):
        yield r"/api/folders/([^/?]+)", "GET", "read_folder"
        yield r"/api/folders", "POST", "make_folder"
        if self.draft:
            yield r"/apis/dashboard\.grafana\.app", "GET", "draft_interface"
        if self.since_twelve:
            base = r"/apis/dashboard\.grafana\.app/v1beta1/namespaces/default/dashboards"
            yield r"/apis/dashboard\.grafana\.app", "GET", "interfaces"
            yield base + r"\?limit=\d+(?:&continue=(\w+))?", "GET", "list_new"
            yield base + r"/([^/?]+)", "GET", "read_new"
            yield base, "POST", "create_new"
            yield base + r"/([^/?]+)", "PUT", "update_new"
            yield base + r"/([^/?]+)", "DELETE", "delete"
        else:
            yield r"/api/dashboards/uid/([^/?]+)", "GET", "read_old"
            yield r"/api/dashboards/db", "POST", "write_old"
            yield r"/api/dashboards/uid/([^/?]+)", "DELETE", "delete"
            yield r"/api/search\?type=dash-db&limit=5000&tag=(\w+)", "GET", "search"

    def read_folder(self, uid):
        return (200, {"uid": uid}) if uid in self.folders else (404, {"message": "folder not found"})

    def make_folder(self, body):
        self.folders[body["uid"]] = body["title"]
        return 200, body

    def draft_interface(self):
        return 200, {"kind": "APIGroup", "versions": [{"version": "v0alpha1"}]}

    def interfaces(self):
        return 200, {"kind": "APIGroup", "versions": [{"version": "v0alpha1"}, {"version": "v1beta1"}]}

    def whole(self, uid):
        metadata = {"name": uid, "resourceVersion": str(self.versions[uid]), "generation": self.versions[uid]}
        metadata["annotations"] = {"grafana.app/folder": self.folder_of[uid], **self.noted.get(uid, {})}
        return {"kind": "Dashboard", "metadata": metadata, "spec": self.dashboards[uid]}

    def list_new(self, page):
        uids = sorted(self.dashboards)
        half = len(uids) // 2
        part, metadata = (uids[half:], {}) if page else (uids[:half], {"continue": "more"})
        return 200, {"items": [self.whole(uid) for uid in part], "metadata": metadata}

    def read_new(self, uid):
        return (200, self.whole(uid)) if uid in self.dashboards else (404, {"reason": "NotFound"})

    def create_new(self, body):
        uid = body["metadata"]["name"]
        if fault := self.fault_of(body, uid):
            return fault
        if uid in self.dashboards:
            return 409, {"reason": "AlreadyExists"}
        self.put(uid, body["spec"], self.folder_in(body))
        return 201, self.whole(uid)

    def update_new(self, uid, body):
        if fault := self.fault_of(body, uid):
            return fault
        if uid not in self.dashboards:
            return 404, {"reason": "NotFound"}
        if body["metadata"].get("resourceVersion") != str(self.versions[uid]):
            return 409, {"reason": "Conflict"}
        if not self.noted.get(uid, {}).items() <= body["metadata"]["annotations"].items():
            return 422, {"message": "annotations of others are gone"}
        self.put(uid, body["spec"], self.folder_in(body))
        return 200, self.whole(uid)

    @staticmethod
    def folder_in(body):
        return body["metadata"].get("annotations", {}).get("grafana.app/folder", "")

    def fault_of(self, body, uid):
        if (body["apiVersion"], body["kind"]) != ("dashboard.grafana.app/v1beta1", "Dashboard"):
            return 400, {"reason": "BadRequest"}
        if self.folder_in(body) not in {"", *self.folders}:
            return 400, {"message": "folder not found"}
        if {"id", "uid", "version"} & body["spec"].keys():
            return 400, {"message": "these belong into metadata"}
        return (500, {"message": "disk full"}) if uid == self.refuse else None

    def read_old(self, uid):
        if uid not in self.dashboards:
            return 404, {"message": "Dashboard not found"}
        dashboard = {**self.dashboards[uid], "id": 7, "uid": uid, "version": self.versions[uid]}
        return 200, {"dashboard": dashboard, "meta": {"folderUid": self.folder_of[uid]}}

    def write_old(self, body):
        dashboard = dict(body["dashboard"])
        uid, number, version = dashboard.pop("uid"), dashboard.pop("id"), dashboard.pop("version")
        if body["folderUid"] not in {"", *self.folders}:
            return 400, {"message": "folder not found"}
        if uid == self.refuse:
            return 500, {"message": "disk full"}
        if uid in self.dashboards and (number is None or version != self.versions[uid]) and not body["overwrite"]:
            return 412, {"status": "version-mismatch"}
        self.put(uid, dashboard, body["folderUid"])
        return 200, {"status": "success", "uid": uid, "version": self.versions[uid]}

    def search(self, tag):
        return 200, [{"uid": uid} for uid, dashboard in self.dashboards.items() if tag in dashboard.get("tags", [])]

    def delete(self, uid):
        if uid not in self.dashboards:
            return 404, {"message": "Dashboard not found"}
        del self.dashboards[uid]
        return 200, {}


@contextmanager
def serving_grafana(since_twelve):
    grafana = Grafana(since_twelve)

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                status, said = 401, {"message": "Unauthorized"}
            else:
                status, said = grafana.answer(self.command, self.path, body)
            sent = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 http.server's names

        def log_message(self, format, *args):
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        grafana.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield grafana
        finally:
            server.shutdown()
            thread.join()
