"""Why a request is not taken, and what each protocol calls that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from turnwatch.errors import TurnwatchError


@dataclass(frozen=True, slots=True)
class Reason:
    """One kind of refusal.

    Attributes:
        outcome: Its label in ``turnwatch_requests_total``.
        http: HTTP status. 429, 502, 503 and 504 are those that OTLP exporters send again.
        grpc: Number of the gRPC status, which is google.rpc.Status.code over HTTP as well.
    """

    outcome: str
    http: int
    grpc: int


MALFORMED: Final = Reason("malformed", 400, 3)
UNAUTHORIZED: Final = Reason("unauthorized", 401, 16)
NOT_FOUND: Final = Reason("not_found", 404, 12)
WRONG_METHOD: Final = Reason("wrong_method", 405, 12)
SLOW: Final = Reason("slow", 408, 4)
# Without RetryInfo an exporter does not send this again, and it must not: it would be too large again.
TOO_LARGE: Final = Reason("too_large", 413, 8)
UNSUPPORTED: Final = Reason("unsupported", 415, 3)
FAULT: Final = Reason("fault", 500, 13)
BUSY: Final = Reason("busy", 503, 14)

RETRY_AFTER_SECONDS: Final = 1


class Refusal(TurnwatchError):
    """A request is not taken.

    Attributes:
        reason: The kind.
        headers: Further HTTP headers of the answer.
    """

    def __init__(self, reason: Reason, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.headers = headers or {}
        if reason is BUSY:
            self.headers.setdefault("retry-after", str(RETRY_AFTER_SECONDS))
