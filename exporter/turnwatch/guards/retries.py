"""Is a failed call tried again, and when?"""

from __future__ import annotations

import datetime
import email.utils
import random
from collections.abc import Callable
from typing import Any, Final

from turnwatch.settings import Retries

# Raised before anything was sent, so the tool cannot have done its work.
_NOTHING_SENT: Final = frozenset(
    {"ConnectionRefusedError", "ConnectTimeout", "ConnectError", "PoolTimeout", "gaierror", "NewConnectionError"}
)
_NO_ANSWER: Final = frozenset({"TimeoutError", "Timeout", "TimeoutException", "ConnectionError", "TransportError"})
_NO_ANSWER_ENDINGS: Final = (
    "Timeout",
    "TimeoutError",
    "TimeoutExpired",
    "DeadlineExceeded",
    "ConnectionError",
    "Disconnected",
    "ProtocolError",
)
MAX_CAUSES: Final = 10
_STATUS_NAMES: Final = ("status_code", "status", "code")


def status_of(thing: object) -> int | None:
    """The HTTP status that an exception or a response carries, if it carries one."""
    for holder in (thing, getattr(thing, "response", None)):
        if holder is None:
            continue
        for name in _STATUS_NAMES:
            value = getattr(holder, name, None)
            if isinstance(value, int) and 100 <= value <= 599:  # HTTPStatus is an int as well
                return int(value)
    return None


def is_worth_retrying(error: BaseException, policy: Retries) -> bool:
    """Whether the same call might work in a moment: by its status, else by the names of its class and bases."""
    if not isinstance(error, Exception):
        return False
    status = status_of(error)
    if status is not None:
        return status in policy.retryable_status
    return not _names(error).isdisjoint(policy.retryable_exceptions)


def is_ambiguous(failure: object) -> bool:
    """Whether the tool may have done its work although the call failed: no answer came, or a server's error.

    Args:
        failure: The exception, or the response that was returned. What a tool raises when it meets a timeout says
            as much as the timeout itself.
    """
    if not isinstance(failure, BaseException):
        return _is_ambiguous_status(status_of(failure))
    if not isinstance(failure, Exception):
        return True  # cancelled or interrupted while it ran
    error: BaseException | None = failure
    for _ in range(MAX_CAUSES):
        if error is None:
            break
        status = status_of(error)
        if status is not None:
            return _is_ambiguous_status(status)
        names = _names(error)
        if not _NOTHING_SENT.isdisjoint(names):
            return False
        if not _NO_ANSWER.isdisjoint(names) or any(name.endswith(_NO_ANSWER_ENDINGS) for name in names):
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


def _is_ambiguous_status(status: int | None) -> bool:
    return status is not None and (status == 408 or (status >= 500 and status not in (501, 503)))


def wait_before_retry(
    failure: object, attempt: int, policy: Retries, draw: Callable[[float, float], float] = random.uniform
) -> float | None:
    """Seconds to wait before the next attempt; None when there is none.

    The wait is drawn from 0 up to a bound that doubles, so that many callers do not come back at once. A server
    that names its own wait (Retry-After) is not asked before; where it names more than ``max_backoff_s``, not again.

    Args:
        failure: The exception, or the response that was returned.
        attempt: The number of the attempt that failed, from 1.
        policy: How often and how long.
        draw: Draws a number between two; for tests.
    """
    if attempt >= policy.max_attempts:
        return None
    wait = draw(0.0, min(policy.max_backoff_s, policy.backoff_s * 2.0 ** min(attempt - 1, 32)))
    asked = _retry_after(failure)
    if asked is None:
        return wait
    return None if asked > policy.max_backoff_s else max(asked, wait)


def _names(error: BaseException) -> frozenset[str]:
    return frozenset(kind.__name__ for kind in type(error).__mro__)


def _retry_after(failure: object) -> float | None:
    headers: Any = getattr(failure, "headers", None)
    if headers is None:
        headers = getattr(getattr(failure, "response", None), "headers", None)
    if hasattr(headers, "get"):
        for name, unit in (("retry-after-ms", 0.001), ("Retry-After", 1.0), ("retry-after", 1.0)):
            value = headers.get(name)
            if value is not None:
                seconds = _seconds(str(value))
                return None if seconds is None else max(0.0, seconds * unit)
    seconds = getattr(failure, "retry_after", None)
    return max(0.0, float(seconds)) if isinstance(seconds, int | float) else None


def _seconds(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return (moment - datetime.datetime.now(datetime.UTC)).total_seconds()
