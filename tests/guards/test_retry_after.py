"""A server that says when to come back is not asked before."""

import datetime
import email.utils
from types import SimpleNamespace

import httpx2
import pytest
import requests

from turnwatch.guards.retries import wait_before_retry
from turnwatch.settings import Retries

POLICY = Retries(max_attempts=3, backoff_s=1.0, max_backoff_s=120.0)


def _at_once(low: float, high: float) -> float:
    return low


def _wait(failure: object, attempt: int = 1) -> float | None:
    return wait_before_retry(failure, attempt, POLICY, _at_once)


def _in(seconds: float) -> str:
    moment = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
    return email.utils.format_datetime(moment, usegmt=True)


def _refused_by_httpx(headers: dict[str, str]) -> object:
    request = httpx2.Request("GET", "http://example.com")
    return httpx2.HTTPStatusError("busy", request=request, response=httpx2.Response(429, headers=headers))


def _refused_by_requests(headers: dict[str, str]) -> object:
    response = requests.Response()
    response.status_code = 429
    response.headers.update(headers)
    return requests.HTTPError("busy", response=response)


def _returned(headers: dict[str, str]) -> object:
    return httpx2.Response(503, headers=headers)


REFUSALS = pytest.mark.parametrize("refused", [_refused_by_httpx, _refused_by_requests, _returned])


@REFUSALS
def test_seconds(refused):
    assert _wait(refused({"retry-after": "7"})) == 7.0


@REFUSALS
def test_milliseconds_as_openai_sends_them(refused):
    assert _wait(refused({"retry-after-ms": "1500", "retry-after": "2"})) == 1.5


@REFUSALS
def test_a_date(refused):
    # An HTTP date has whole seconds.
    assert _wait(refused({"Retry-After": _in(60)})) == pytest.approx(60, abs=5)


@REFUSALS
def test_a_date_that_is_past_is_now(refused):
    assert _wait(refused({"Retry-After": _in(-60)})) == 0.0


@REFUSALS
def test_a_wait_that_is_too_long_is_no_retry(refused):
    assert _wait(refused({"Retry-After": "3600"})) is None
    assert _wait(refused({"Retry-After": _in(3600)})) is None


@pytest.mark.parametrize("nonsense", ["soon", "", "Mon, 99 Foo 2026", "1e999", "nan", "-5", "inf"])
def test_a_wait_that_is_none_changes_nothing_or_ends_it(nonsense):
    wait = _wait(_refused_by_httpx({"retry-after": nonsense}))
    assert wait in (0.0, None)


def test_an_exception_that_names_its_wait():
    assert _wait(SimpleNamespace(retry_after=3)) == 3.0


def test_no_attempt_is_left():
    assert _wait(_refused_by_httpx({"retry-after": "1"}), attempt=3) is None
