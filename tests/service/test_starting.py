"""What keeps the service from starting is said in one line."""

import socket

import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from tests.service.running import serving


def refused(folder, *arguments, **settings):
    with pytest.raises(RuntimeError) as failed, serving(folder, *arguments, **settings):
        pass
    return str(failed.value)


@pytest.mark.parametrize("option", ["--port", "--grpc-port", "--metrics-port"])
def test_an_address_that_is_taken(tmp_path, option):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = refused(tmp_path, option, port, grpc=True)
    assert f"cannot listen on 127.0.0.1:{port}" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--token-file", "missing"), "the token cannot be read"),
        (("--tls-certificate", "missing", "--tls-key", "missing"), "certificate missing"),
        (("--tls-key", "missing"), "given together"),
        (("--forward", "ftp://x"), "--forward"),
    ],
)
def test_options_that_cannot_be_used(tmp_path, arguments, what):
    said = refused(tmp_path, *arguments)
    assert what in said
    assert "Traceback" not in said


def test_a_key_that_needs_a_passphrase(tmp_path):
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    issued = trustme.CA().issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(certificate)
    plain = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    locked = serialization.BestAvailableEncryption(b"secret")
    key.write_bytes(plain.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked))
    said = refused(tmp_path, "--tls-certificate", certificate, "--tls-key", key)
    assert f"certificate {certificate} with key {key}: the key is protected by a passphrase" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("token", ["schlüssel", "two\nlines", "spaced "])
def test_a_token_that_would_never_match_over_http(tmp_path, token):
    said = refused(tmp_path, token=token)
    assert "TURNWATCH_SERVICE__TOKEN: service.token: wants printable ASCII" in said
    assert token not in said


@pytest.mark.parametrize("token", ["schlüssel", "two\nlines"])
def test_a_file_whose_token_would_never_match_over_http(tmp_path, token):
    file = tmp_path / "token"
    file.write_text(f"{token}\n", "utf-8")
    said = refused(tmp_path, "--token-file", file)
    assert f"{file}: the token wants printable ASCII" in said
    assert token not in said


def test_a_setting_of_the_wrong_kind(tmp_path):
    assert "TURNWATCH_SERVICE__MAX_BODY_BYTES" in refused(tmp_path, max_body_bytes="many")


@pytest.mark.parametrize(
    ("config", "named"), [("budgets: {max_steps: 25}\non_loop: nudge", "on_loop, budgets"), ("on_loop: observe", "")]
)
def test_settings_that_only_guards_obey_are_named_in_one_line(tmp_path, config, named):
    file = tmp_path / "turnwatch.yaml"
    file.write_text(config)
    with serving(tmp_path, "--config", file) as service:
        said = service.errors.read_text()
    rest = "heeded where the agent runs under a guard (docs/guards.md); turns that come as spans are only watched"
    assert said.splitlines() == ([f"turnwatch: {named}: {rest}"] if named else [])
