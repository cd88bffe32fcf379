"""No token and no password is printed, sent to another server, or made readable by a deployment."""

import json
import stat
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from typer.testing import CliRunner

from turnwatch import http_answer
from turnwatch.cli.pack import pack_app
from turnwatch.pack.deploy import http
from turnwatch.pack.deploy.changes import DeployError
from turnwatch.pack.deploy.files import alertmanager
from turnwatch.pack.deploy.http import Server
from turnwatch.pack.home import pack_home

TOKEN = "glsa_secret"
PASSWORD = "hunter2"
FOREIGN = f"""\
global: {{slack_api_url: 'https://hooks.example.com/{PASSWORD}', smtp_auth_password: {PASSWORD}}}
route: {{receiver: mine}}
receivers:
  - name: mine
    pagerduty_configs: [{{routing_key: {PASSWORD}}}]
    webhook_configs:
      - url: 'https://me:{PASSWORD}@example.com'
        http_config: {{authorization: {{credentials: {PASSWORD}}}}}
    opsgenie_configs: [{{api_key_file: /etc/key}}]
"""


@contextmanager
def answering(answer):
    """A server whose handler of each request is given to `answer`, to reply; yields its URL and the requests."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def handle_request(self):
            seen.append((self.command, self.path, dict(self.headers)))
            answer(self)

        do_GET = do_POST = handle_request  # noqa: N815 http.server's names

        def reply(self, status, body="", **headers):
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format, *args):
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", seen
        finally:
            server.shutdown()
            thread.join()


def run(*arguments):
    return CliRunner().invoke(pack_app, [str(argument) for argument in arguments])


def error_of(*arguments):
    result = run(*arguments)
    assert isinstance(result.exception, DeployError), result.exception
    said = str(result.exception) + result.output
    assert TOKEN not in said
    assert PASSWORD not in said
    return said


def failure_of(url, token=TOKEN):
    with pytest.raises(DeployError) as failure:
        Server(url, token).ask("GET", "/")
    assert TOKEN not in str(failure.value)
    return str(failure.value)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_does_not_take_the_token_elsewhere(status):
    with answering(lambda request: request.reply(200, "{}")) as (elsewhere, seen_elsewhere):
        to = {"Location": f"{elsewhere}/login?state={TOKEN}"}
        with answering(lambda request: request.reply(status, **to)) as (url, seen):
            assert f"leads on to {elsewhere}/login: name the address itself" in failure_of(url)
    assert seen[0][2]["Authorization"] == f"Bearer {TOKEN}"
    assert seen_elsewhere == []


def test_a_server_that_says_what_it_was_sent_does_not_make_us_say_it():
    with answering(lambda request: request.reply(500, f"bad header: {request.headers['Authorization']}\x1b[2J")) as (
        url,
        _,
    ):
        answer = Server(url, TOKEN).ask("GET", "/")
    assert answer.said == "bad header: Bearer …�[2J"


@pytest.mark.parametrize("content", [f"{TOKEN}\nsecond line", f"{TOKEN} ", f"\x00{TOKEN}", "", "gl\u00fcck"])
def test_a_token_that_cannot_be_one_is_not_named(tmp_path, content):
    if content.endswith(" "):
        assert Server("http://x", content.strip()).token == TOKEN
        return
    file = tmp_path / "token"
    file.write_text(content, encoding="utf-8")
    said = error_of("deploy", "--grafana-url", "http://127.0.0.1:9", "--grafana-token-file", file)
    assert "not one line of visible ASCII characters" in said


def test_a_token_file_that_is_not_text_is_named(tmp_path):
    file = tmp_path / "token"
    file.write_bytes(b"\xff\xfe")
    assert f"{file} is not text" in error_of(
        "deploy", "--grafana-url", "http://127.0.0.1:9", "--grafana-token-file", file
    )


@pytest.mark.parametrize("name", ["prometheus", "alertmanager", "grafana"])
def test_a_token_for_each_server_comes_from_the_environment(monkeypatch, tmp_path, name):
    monkeypatch.setenv(f"{name.upper()}_TOKEN", TOKEN)
    with answering(lambda request: request.reply(401)) as (url, seen):
        target = {
            "prometheus": ("--prometheus-url", url, "--rules-folder", tmp_path),
            "alertmanager": ("--alertmanager-url", url, "--alertmanager-file", tmp_path / "alertmanager.yml"),
            "grafana": ("--grafana-url", url),
        }[name]
        error_of("deploy", *target)
    assert {headers["Authorization"] for _, _, headers in seen} == {f"Bearer {TOKEN}"}


@pytest.mark.parametrize("url", [f"http://me:{PASSWORD}@127.0.0.1:9", f"https://{PASSWORD}@example.com/grafana"])
def test_a_password_in_a_url_is_refused_and_not_shown(url):
    assert "no user or password in the URL" in error_of("deploy", "--grafana-url", url)


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://example.com", "localhost:3000", "http://", "http://x:port"]
)
def test_only_http_is_spoken(url):
    assert "is no http:// or https:// URL" in error_of("diff", "--grafana-url", url)


def test_an_answer_without_end_is_not_read(monkeypatch):
    monkeypatch.setattr(http_answer, "MAX_BODY_BYTES", 1 << 16)
    with answering(lambda request: request.reply(200, "x" * (1 << 18))) as (url, _):
        assert "more than 0 MB in one answer" in failure_of(url)


def test_an_answer_that_drips_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(http, "SECONDS", 0.3)
    stop = threading.Event()

    def drip(request):
        request.send_response(200)
        request.end_headers()
        while not stop.wait(0.05):
            request.wfile.write(b" ")

    try:
        with answering(drip) as (url, _):
            assert "no answer within 0.3 s" in failure_of(url)
            stop.set()
    finally:
        stop.set()


def test_what_speaks_no_http_is_an_error_in_one_line():
    with answering(lambda request: request.wfile.write(b"SSH-2.0-OpenSSH\r\n\x1b[2J\r\n")) as (url, _):
        said = failure_of(url)
    assert "does not answer" in said
    assert said.isprintable()


@pytest.fixture
def foreign(tmp_path):
    file = tmp_path / "alertmanager.yml"
    file.write_text(FOREIGN, encoding="utf-8")
    file.chmod(0o600)
    return file


@pytest.mark.parametrize("arguments", [("diff",), ("deploy", "--dry-run")])
def test_the_passwords_of_an_alertmanager_file_are_not_in_the_diff(foreign, arguments):
    command, *options = arguments
    with answering(lambda request: request.reply(200)) as (url, _):
        result = run(command, *options, "--alertmanager-url", url, "--alertmanager-file", foreign)
    assert f"Alertmanager: conflict {foreign}" in result.output
    assert PASSWORD not in result.output
    assert "-  slack_api_url: <hidden>" in result.output
    assert "/etc/key" in result.output
    assert "api_url_file: /etc/alertmanager/secrets/slack-webhook-url" in result.output


def test_a_file_that_is_no_yaml_is_not_shown_at_all(foreign):
    foreign.write_text(f"{PASSWORD}: [", encoding="utf-8")
    with answering(lambda request: request.reply(200)) as (url, _):
        result = run("diff", "--alertmanager-url", url, "--alertmanager-file", foreign)
    assert PASSWORD not in result.output
    assert "-(not YAML)" in result.output


def test_a_file_that_only_its_owner_could_read_stays_so(foreign):
    def answer(request):
        original = (pack_home() / "alert_rules" / "alertmanager.example.yaml").read_text("utf-8")
        request.reply(200, json.dumps({"config": {"original": original}}))

    with answering(answer) as (url, _):
        target = alertmanager(Server(url), foreign, pack_home())
        target.apply(target.changes(prune=False))
    assert stat.S_IMODE(foreign.stat().st_mode) == 0o600
    assert PASSWORD not in foreign.read_text("utf-8")
    backup = foreign.with_name("alertmanager.yml.bak")
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert backup.read_text("utf-8") == FOREIGN
    assert sorted(path.name for path in foreign.parent.iterdir()) == [foreign.name, backup.name, "turnwatch.tmpl"]
