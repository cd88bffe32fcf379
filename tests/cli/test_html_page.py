"""The page of ``turnwatch scan --html``: what is drawn, and that nothing from outside does anything on it."""

from __future__ import annotations

import base64
import functools
import hashlib
import http.server
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from turnwatch.cli.scan import scan_app

Call = dict[str, Any]

_VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """Elements and text of a page; checks that what is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str, kind: str | None = None) -> list[dict[str, str | None]]:
        found = [attributes for name, attributes in self.elements if name == tag]
        return found if kind is None else [each for each in found if kind in (each.get("class") or "").split()]

    @property
    def marks(self) -> list[str | None]:
        """Kinds of the drawn calls: those that stand somewhere on a timeline."""
        return [use["class"] for use in self.all("use") if (use["x"] or "").endswith("%")]


def calls(times: int, tool: str = "search_orders", result: str = "nothing of the kind", **more: Any) -> list[Call]:
    return [{"tool": tool, "args": {"customer_id": "SECRET-ARGUMENT"}, "result": result, **more} for _ in range(times)]


def run(name: str, *made: list[Call], **more: Any) -> dict[str, Any]:
    return {"trajectory_id": name, "agent": "support-bot", "calls": [call for part in made for call in part], **more}


def reading(pages: int) -> list[Call]:
    return [{"tool": "read", "args": {"page": n}, "result": f"page {n} says something new"} for n in range(pages)]


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Page]:
    """Scans runs and gives the page, its text as ``.source``."""

    def scan(*runs: dict[str, Any] | str, code: int = 0, arguments: tuple[str, ...] = ()) -> Page:
        file, html = tmp_path / "runs.jsonl", tmp_path / "page.html"
        file.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in runs))
        done = CliRunner().invoke(scan_app, [str(file), "--html", str(html), *arguments])
        assert done.exit_code == code, done.output
        page = Page(html.read_text("utf-8"))
        page.source = html.read_text("utf-8")
        return page

    return scan


def test_a_stuck_turn_is_drawn_with_a_mark_a_call(written):
    page = written(run("stuck", reading(3), calls(7), reading(1)), run("healthy", reading(2)))
    assert page.marks == ["first"] * 4 + ["same"] * 6 + ["same"]
    assert [page.all("rect", name) != [] for name in ("loop", "wasted")] == [True, True]
    assert "1 of 2 turns is stuck" in page.text
    assert "loop starts at call 4" in page.text
    assert "seen at call 7, 4 calls wasted after it" in page.text
    assert "search_orders gave the same result 4 times" in page.text


def test_errors_and_changed_results_have_marks_of_their_own(written):
    failing = [{"tool": "bash", "args": {"command": "make"}, "error": "exit code 2: no rule"}] * 4
    changed = [{"tool": "status", "args": {}, "result": f"{word} and more"} for word in ("red", "green")]
    page = written(run("stuck", changed, failing))
    assert page.marks == ["first", "changed", "error", *["error-again"] * 3]


def test_nothing_of_arguments_and_results_is_on_the_page(written):
    page = written(run("stuck", calls(8, result="SECRET-RESULT that came back")))
    assert "SECRET" not in page.source


def test_the_page_asks_nothing_of_the_network_and_runs_no_script(written):
    page = written(run("stuck", calls(8)))
    assert [name for name, _ in page.elements if name in ("script", "link", "img", "iframe", "object", "base")] == []
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "src", "srcset")]
        assert all((attributes[name] or "").startswith("#") for name in ("href", "xlink:href") if name in attributes)
    style = re.search(r"<style>(.*?)</style>", page.source, re.DOTALL)
    assert style is not None
    assert "http" not in style[1]
    assert "url(" not in style[1].replace("url(#", "")
    policy = next(each["content"] for each in page.all("meta") if each.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


HOSTILE = "<script>alert(1)</script>\"'&\x00\x1b[31m\u202e"


def test_hostile_names_are_only_text(written):
    tool = calls(8, tool=HOSTILE)
    page = written(run(HOSTILE, tool, agent=HOSTILE), "not JSON <script>alert(2)</script>", code=2)
    assert page.all("script") == []
    assert page.text.count("<script>alert(1)</script>\"'&") >= 4
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", page.source)
    assert "Not read" in page.text


def test_a_long_name_is_cut(written):
    page = written(run("n" * 5_000, calls(8, tool="t" * 5_000), agent="a" * 5_000))
    assert max(len(word) for word in page.text.split()) <= 200


def test_stuck_turns_come_before_warned_ones_and_the_most_wasteful_first(written):
    page = written(run("warned", calls(3)), run("stuck a little", calls(6)), run("stuck", calls(12)))
    found = [page.text.index(f"turn {name}\n") for name in ("stuck", "stuck a little", "warned")]
    assert found == sorted(found)
    assert [each["class"] for each in page.all("article")] == ["turn stuck", "turn stuck", "turn warn"]


def test_only_the_worst_turns_are_drawn_and_the_page_says_how_many_are_not(written):
    page = written(*(run(f"run {n}", calls(4 + n % 20)) for n in range(100)))
    assert len(page.all("article")) == 30
    assert "70 more turns with a verdict, less wasteful, are not drawn." in page.text
    assert "100 of 100 turns are stuck" in page.text


def test_a_long_turn_is_drawn_in_parts(written):
    page = written(run("long", reading(2_000), calls(6), reading(2_000)))
    assert 100 < len(page.marks) < 300
    assert page.text.count("calls not drawn") == 2
    assert f"{4_006 - len(page.marks):,} of its 4,006 calls are not drawn." in page.text


def test_times_are_on_the_axis_where_they_are_known_and_tell_the_calls_apart(written):
    timed = [{**call, "ts": 1_760_000_000 + 20 * n} for n, call in enumerate(calls(8))]
    crowded = [{**call, "ts": 1_760_000_000 + n * 0.001 + 9_000 * (n > 6)} for n, call in enumerate(calls(8))]
    assert "2:00" in written(run("timed", timed)).text
    assert "2025-10-09 08:53:20 to 2025-10-09 08:55:40 UTC" in written(run("timed", timed)).text
    assert "2:00" not in written(run("crowded", crowded)).text


def test_many_tools_share_a_lane(written):
    others = [{"tool": f"tool_{n}", "args": {}, "result": f"result number {n}"} for n in range(40)]
    page = written(run("stuck", others, calls(8)))
    lanes = page.all("line", "lane")
    assert len(lanes) == 10
    lowest = max(float(lane["y1"] or 0) for lane in lanes)
    assert lowest < float(page.all("svg", "timeline")[0]["height"] or 0) < lowest + 60
    assert "other tools" in page.text
    assert "search_orders" in page.text


def test_what_the_calls_had_cost_is_drawn_where_it_is_known(written):
    page = written(run("dear", calls(8, cost_usd=0.5)), run("unpriced", calls(8)))
    assert len(page.all("svg", "spend")) == 1
    assert "spend so far: $4.00 at the last call" in page.text


def test_agents_and_tools_have_tables(written):
    page = written(run("stuck", calls(8), reading(2)), run("healthy", reading(3), agent="coder"))
    assert page.text.count("support-bot") == 2
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</th>(.*?)</tr>", page.source)
    cells = {name: re.findall(r"<td>(?:<[^>]+>)*([^<]*)", row) for name, row in rows}
    assert cells["support-bot"][:6] == ["1", "1", "0", "10", "10", "7"]
    assert cells["search_orders"][:4] == ["8", "0", "0", "7"]


def test_a_scan_without_a_stuck_turn_says_so(written):
    page = written(run("healthy", reading(2)))
    assert "None of 1 turn is stuck" in page.text
    assert page.all("article") == []
    assert "No turn of an agent was found" in written("{}", code=2).text


def test_the_exit_codes_stay(written, tmp_path):
    assert written(run("stuck", calls(8)), code=1, arguments=("--fail-on-loop",)).all("article")
    assert written(run("stuck", calls(8)), "{broken", code=2).all("article")
    missing = CliRunner().invoke(scan_app, [str(tmp_path / "runs.jsonl"), "--html", str(tmp_path / "no" / "page.html")])
    assert "cannot be written: No such file or directory" in str(missing.exception)


# In a browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """Where a server of this machine serves the folder."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    handler.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def browse(address: str, folder: Path) -> tuple[Page, set[str]]:
    """The document as Chromium has it, and the addresses that it asked for on its behalf."""
    assert CHROMIUM is not None
    log = folder / "net-log.json"
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        f"--user-data-dir={folder / 'profile'}",
        f"--log-net-log={log}",
        "--dump-dom",
    ]
    shown = subprocess.run([CHROMIUM, *flags, address], capture_output=True, text=True, timeout=120, check=True)
    text = log.read_text()
    try:
        events = json.loads(text)["events"]
    except ValueError:  # Chromium may leave before it has closed the log
        events = json.loads(text.rstrip().rstrip(",") + "]}")["events"]
    asked = [event["params"] for event in events if "url" in event.get("params", {})]
    # The browser has requests of its own; the document is the initiator of its own ones only.
    return Page(shown.stdout), {each["url"] for each in asked if each.get("initiator", "").startswith("http://127.")}


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine, so the page was not opened in one")
def test_chromium_draws_the_marks_and_asks_for_nothing_else(written, tmp_path, served):
    (tmp_path / "control.html").write_text('<img src="http://elsewhere.invalid/x.png">')
    assert "http://elsewhere.invalid/x.png" in browse(f"{served}/control.html", tmp_path)[1]
    written(run(HOSTILE, reading(3), calls(8, tool=HOSTILE)))
    page, asked = browse(f"{served}/page.html", tmp_path)
    assert asked == set()
    assert len(page.marks) == 11
