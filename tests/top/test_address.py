"""What is an address, and what of it is shown."""

import pytest

from turnwatch.errors import SettingsError
from turnwatch.top.address import address_of, headers_of


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("127.0.0.1:9464", "http://127.0.0.1:9464"),
        ("localhost", "http://localhost"),
        ("https://example.com/a/metrics", "https://example.com/a/metrics"),
        ("http://[::1]:9464/metrics", "http://[::1]:9464/metrics"),
    ],
)
def test_an_address_is_a_url_or_a_host_with_its_port(text, url):
    assert address_of(text, {}).url == url


@pytest.mark.parametrize(
    "text", ["", "http://", "ftp://x/", "x:y:z", "http://[bad", "a b", "host:99999", "a\nb", "x\x1b[m"]
)
def test_what_is_no_address_is_named(text):
    with pytest.raises(SettingsError, match="no address") as refused:
        address_of(text, {})
    assert repr(text) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_user_and_password_become_a_header_and_are_shown_nowhere():
    address = address_of("https://ann:s%40cret@example.com:8443/m?a=b", {"X-Scope": "1"})
    assert address.url == "https://example.com:8443/m"
    assert address.whole == "https://example.com:8443/m?a=b"
    assert address.headers == {"Authorization": "Basic YW5uOnNAY3JldA==", "X-Scope": "1"}
    assert "YW5" not in repr(address)


def test_a_wrong_address_does_not_show_its_password():
    with pytest.raises(SettingsError) as refused:
        address_of("ftp://ann:secret@example.com", {})
    assert "secret" not in str(refused.value)


def test_headers_are_read_as_curl_does():
    lines = ["Authorization: Bearer a:b", "X-Scope-OrgID:7"]
    assert headers_of(lines) == {"Authorization": "Bearer a:b", "X-Scope-OrgID": "7"}


@pytest.mark.parametrize("line", ["secret", ": secret", "a b: secret", "X: secret\r\nHost: elsewhere", "é: secret"])
def test_a_wrong_header_is_refused_without_its_value(line):
    with pytest.raises(SettingsError) as refused:
        headers_of([line])
    assert "secret" not in str(refused.value)
