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
_NO_ANSWER_ENDINGS: Final = ("Timeout", "TimeoutError", "ConnectionError", "Disconnected", "ProtocolError")
_STATUS_NAMES: Final = ("status_code", "status", "code")


def status_of(thing: object) -> int | None:
    """The HTTP status that an exception or a response carries, if it carries one."""
    for holder in (thing, getattr(thing, "response", None)):
        if holder is None:
            continue
        for name in _STATUS_NAMES:
            value = getattr(holder, name, None)
            if type(value) is int and 100 <= value <= 599:
                return value
    return None


def is_worth_retrying(error: BaseException, policy: Retries) -> bool:
    """Whether the same call might work in a moment: by its status, else by the names of its class and bases."""
    if not isinstance(error, Exception):
        return False
    status = status_of(error)
    if status is not None:
        return status in policy.retryable_status
    return not _names(error).isdisjoint(policy.retryable_exceptions)


def is_ambiguous(error: BaseException) -> bool:
    """Whether the tool may have done its work although the call failed: no answer came, or a server's error."""
    if not isinstance(error, Exception):
        return True  # cancelled or interrupted while it ran
    status = status_of(error)
    if status is not None:
        return status == 408 or (status >= 500 and status not in (501, 503))
    names = _names(error)
    if not _NOTHING_SENT.isdisjoint(names):
        return False
    return not _NO_ANSWER.isdisjoint(names) or any(name.endswith(_NO_ANSWER_ENDINGS) for name in names)


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
    if headers is not None:
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
