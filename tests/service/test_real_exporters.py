"""The OpenTelemetry SDK's own exporters, as an agent would have them, over HTTP and gRPC."""

import socket

import grpc
import pytest
import trustme
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from tests.service.running import eventually, serving

TOKEN = "a token that nobody guesses"


def run_agent(exporter, agent, calls=4):
    """An agent with OpenTelemetry's GenAI spans that asks the same thing again and again."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("my.app")
    name = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
    with tracer.start_as_current_span(f"invoke_agent {agent}", attributes=name):
        for _ in range(calls):
            with tracer.start_as_current_span("execute_tool search_orders") as span:
                span.set_attribute("gen_ai.operation.name", "execute_tool")
                span.set_attribute("gen_ai.tool.name", "search_orders")
                span.set_attribute("gen_ai.tool.call.arguments", '{"customer_id": "C-7841"}')
                span.set_attribute("gen_ai.tool.call.result", "no orders")
    assert provider.force_flush()
    provider.shutdown()


def duplicates(service, agent):
    return service.metric("agent_duplicate_tool_calls_total", agent=agent, tool="search_orders")


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("service"), grpc=True) as running:
        yield running


@pytest.mark.parametrize("compression", list(Compression))
def test_over_http(service, compression):
    agent = f"http {compression.value}"
    run_agent(HttpExporter(f"{service.http}/v1/traces", compression=compression), agent)
    assert duplicates(service, agent) == 2


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_over_grpc(service, compression):
    agent = f"grpc {compression.name}"
    run_agent(GrpcExporter(f"http://{service.grpc}", compression=compression), agent)
    assert duplicates(service, agent) == 2


def certificate(folder):
    """A certificate for 127.0.0.1, its key, and the authority that vouches for it."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    for pem in issued.cert_chain_pems:
        pem.write_to_path(folder / "chain.pem", append=True)
    issued.private_key_pem.write_to_path(folder / "key.pem")
    authority.cert_pem.write_to_path(folder / "authority.pem")
    return folder / "chain.pem", folder / "key.pem", folder / "authority.pem"


def test_with_tls_and_a_token(tmp_path, monkeypatch):
    for variable in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # requests would trust these instead
        monkeypatch.delenv(variable, raising=False)
    chain, key, authority = certificate(tmp_path)
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    options = ("--tls-certificate", chain, "--tls-key", key, "--token-file", tmp_path / "token")
    with serving(tmp_path, *options, grpc=True) as service:
        assert service.http.startswith("https://")
        allowed = {"authorization": f"Bearer {TOKEN}"}
        where = f"{service.http}/v1/traces"
        run_agent(HttpExporter(where, certificate_file=str(authority), headers=allowed), "http")
        credentials = grpc.ssl_channel_credentials(authority.read_bytes())
        run_agent(GrpcExporter(f"https://{service.grpc}", credentials=credentials, headers=allowed), "grpc")
        eventually(lambda: duplicates(service, "http") == duplicates(service, "grpc") == 2)
        for wrong in ({}, {"authorization": "Bearer no"}, {"authorization": f"Basic {TOKEN}"}):
            answer = service.post(b"", {"content-type": "application/x-protobuf", **wrong}, verify=str(authority))
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert service.metric("turnwatch_requests_total", outcome="unauthorized") == 3
        assert TOKEN not in service.errors.read_text()


@pytest.mark.parametrize("begins", [b"", b"\x16\x03\x01\x02"], ids=["silent", "begun"])
def test_a_client_that_never_ends_its_tls_handshake_is_not_waited_for(tmp_path, begins):
    chain, key, _ = certificate(tmp_path)
    with serving(tmp_path, "--tls-certificate", chain, "--tls-key", key, grpc=True, header_timeout_s=0.5) as service:
        for port in (service.port, int(service.grpc.rpartition(":")[2])):
            # Left alone, uvicorn would wait for a minute and gRPC for two.
            with socket.create_connection(("127.0.0.1", port), timeout=50) as client:
                client.sendall(begins)
                assert client.recv(1) == b""
