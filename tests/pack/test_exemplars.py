"""Panels with exemplars lead to the trace of the turn: exporter -> Prometheus -> the question that Grafana asks."""

import json
import subprocess
import sys
import time
from urllib.parse import quote

import pytest

from turnwatch.demo.loopback import get_json, wait_until
from turnwatch.demo.servers import serving
from turnwatch.pack.check_dashboards import filled_in, panels_of
from turnwatch.pack.home import pack_home
from turnwatch.pack.render import RULES_FILE

AGENT = """
import sys
import turnwatch as tw
from opentelemetry.sdk.trace import TracerProvider

tracer = TracerProvider().get_tracer("agent")
server, _ = tw.start_metrics_server(port=0)
with tracer.start_as_current_span("request") as span, tw.turn(agent="support") as turn:
    for _ in range(4):
        with turn.model_call("claude-sonnet-4-5") as call:
            call.usage(input_tokens=100, output_tokens=10)
        turn.call_tool("search", lambda query: [], query="the same")
print(server.server_port, format(span.get_span_context().trace_id, "032x"), flush=True)
sys.stdin.read()
"""


def queries_with_exemplars():
    for path in sorted((pack_home() / "dashboards").glob("*.json")):
        for panel in panels_of(json.loads(path.read_text("utf-8"))):
            for target in panel["targets"]:
                if target.get("exemplar"):
                    yield pytest.param(
                        filled_in(target["expr"], {"__rate_interval": "1m"}),
                        id=f"{path.stem}, {panel['title']}, {target['refId']}",
                    )


@pytest.fixture(scope="module")
def found():
    """Asks a Prometheus for a query's exemplars; `found.trace` is the only trace there has been."""
    with (
        subprocess.Popen(
            [sys.executable, "-c", AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as agent,
        serving(pack_home() / RULES_FILE, {}) as servers,
    ):
        port, trace = agent.stdout.readline().split()
        servers.scrape({"agents": f"127.0.0.1:{port}"})

        def exemplars(expr):
            now = time.time()
            path = f"/api/v1/query_exemplars?query={quote(expr)}&start={now - 300}&end={now}"
            series = get_json(servers.prometheus + path)["data"]
            return {exemplar["labels"]["trace_id"] for one in series for exemplar in one["exemplars"]}

        wait_until(lambda: exemplars("agent_iterations_bucket"), "exemplars to be scraped", timeout_seconds=60)
        exemplars.trace = trace
        yield exemplars
        agent.stdin.close()


@pytest.mark.parametrize("expr", list(queries_with_exemplars()))
def test_the_panel_leads_to_the_turn(found, expr):
    assert found(expr) == {found.trace}
