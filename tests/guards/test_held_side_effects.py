"""Which side effects may have been carried out, and which later call would be the same one again."""

from __future__ import annotations

import contextlib
import http
import subprocess

import pytest

import turnwatch as tw


class Response:
    def __init__(self, status: int) -> None:
        self.status_code = status


class Wrapped(Exception):
    pass


class DeadlineExceeded(Exception):
    code = http.HTTPStatus.GATEWAY_TIMEOUT


def wrapped() -> None:
    try:
        raise TimeoutError
    except TimeoutError as error:
        raise Wrapped from error


def raised_while_handling() -> None:
    try:
        raise ConnectionResetError
    except ConnectionResetError:
        raise Wrapped  # noqa: B904 as tools do


def hidden() -> None:
    try:
        raise TimeoutError
    except TimeoutError:
        raise Wrapped from None


def raising(error: Exception):
    def run() -> None:
        raise error

    return run


def charge_twice(watch, run, first=None, second=None, **override) -> int:
    """How often a charge is sent when it is asked for twice."""
    sent: list[int] = []

    def charge(**_: object) -> object:
        sent.append(1)
        return run()

    gateway = tw.ToolGateway(
        impls={"charge": charge}, watch=watch, overrides={"charge": {"side_effect": True, **override}}
    )
    for args in (first or {"cents": 5}, second or first or {"cents": 5}):
        with contextlib.suppress(Exception):
            gateway.call("charge", args)
    return len(sent)


@pytest.mark.parametrize(
    "run",
    [
        wrapped,
        raised_while_handling,
        raising(subprocess.TimeoutExpired("pay", 5)),
        raising(DeadlineExceeded()),
        lambda: Response(504),
        lambda: Response(500),
        lambda: Response(408),
    ],
)
def test_a_charge_of_unknown_fate_is_sent_once(watch, run):
    assert charge_twice(watch, run) == 1


@pytest.mark.parametrize("run", [hidden, raising(ValueError("no such card")), lambda: Response(422)])
def test_a_charge_that_was_certainly_refused_may_be_sent_again(watch, run):
    assert charge_twice(watch, run, {"cents": 5}, {"cents": 5, "request_id": "2"}) == 2


@pytest.mark.parametrize(
    ("first", "second", "override"),
    [
        ({"cents": 5, "request_id": "1"}, {"cents": 5, "request_id": "2"}, {}),
        ({"cents": 5, "reason": "a"}, {"cents": 5, "reason": "b"}, {"volatile_keys": {"reason"}}),
        ({"cents": 5, "what": {1}}, {"cents": 5, "what": {1}}, {}),
    ],
)
def test_the_same_charge_in_other_clothes_is_held_too(watch, first, second, override):
    assert charge_twice(watch, raising(TimeoutError()), first, second, **override) == 1


def test_another_charge_is_not_held(watch):
    assert charge_twice(watch, raising(TimeoutError()), {"cents": 5}, {"cents": 6}) == 2
