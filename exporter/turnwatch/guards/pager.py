"""How somebody is told at once that an agent is stuck: an alert to Alertmanager, a webhook, or a callable."""

from __future__ import annotations

import atexit
import datetime
import os
import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, final
from urllib.parse import urlencode

from turnwatch.core.default import default_watch
from turnwatch.core.forking import fork_safe_lock
from turnwatch.core.guard import Page
from turnwatch.errors import MissingExtraError

QUEUE_SIZE: Final = 100
TIMEOUT_SECONDS: Final = 5.0
ATTEMPTS: Final = 2
FLUSH_AT_EXIT_SECONDS: Final = 2.0
ALERT_LASTS: Final = datetime.timedelta(minutes=5)
RUNBOOKS: Final = "https://github.com/turnwatch/turnwatch/blob/main/runbooks"

_ALERT: Final = "AgentLoopDetected"

Send = Callable[[Page], None]
Fault = Callable[[str], None]


def _count_fault(where: str) -> None:
    default_watch().internal_error(where)


@final
class Pager:
    """Sends pages from a thread of its own, so that the agent never waits for a network.

    The queue is bounded: what does not fit, and what cannot be sent, is dropped and counted in
    turnwatch_internal_errors_total.

    Args:
        send: Called with each Page, in the thread. ``alertmanager(url)`` and ``webhook(url)`` make such callables.
        queue_size: Pages that may wait.
        on_fault: Told where a page was lost; counts an internal error when left out.
    """

    def __init__(self, send: Send, *, queue_size: int = QUEUE_SIZE, on_fault: Fault = _count_fault) -> None:
        self._send = send
        self._queue: queue.Queue[Page] = queue.Queue(queue_size)
        self._on_fault = on_fault
        self._lock = fork_safe_lock()
        self._process = 0

    def __call__(self, page: Page) -> None:
        """Put a page on the queue. Never waits."""
        self._start()
        try:
            self._queue.put_nowait(page)
        except queue.Full:
            self._on_fault("a pager whose queue is full")

    def flush(self, timeout_seconds: float = TIMEOUT_SECONDS) -> bool:
        """Wait until every page is sent or lost; whether that happened in time."""
        if self._process != os.getpid():  # forked: what waits, the parent sends
            return True
        waiting = self._queue
        with waiting.all_tasks_done:
            return waiting.all_tasks_done.wait_for(lambda: not waiting.unfinished_tasks, timeout_seconds)

    def _start(self) -> None:
        if self._process == os.getpid():
            return
        with self._lock:
            if self._process == os.getpid():
                return
            if self._process:  # forked: the parent's thread and its waiting pages are the parent's
                self._queue = queue.Queue(self._queue.maxsize)
            threading.Thread(target=self._work, name="turnwatch-pager", daemon=True).start()
            self._process = os.getpid()
            # A job that dies of its loop dies right after its page was queued.
            atexit.register(self.flush, FLUSH_AT_EXIT_SECONDS)

    def _work(self) -> None:
        while True:
            page = self._queue.get()
            try:
                self._try_to_send(page)
            except BaseException:  # of on_fault, or of a callable that exits: the next page goes out all the same
                _count_fault("a pager's thread")
            finally:
                self._queue.task_done()

    def _try_to_send(self, page: Page) -> None:
        for attempt in range(ATTEMPTS):
            try:
                self._send(page)
            except Exception:
                if attempt == ATTEMPTS - 1:
                    self._on_fault("a page that could not be sent")
            else:
                return


def alertmanager(
    url: str, labels: Mapping[str, str] | None = None, *, runbooks: str = RUNBOOKS, dashboards: str | None = None
) -> Send:
    """A ``send`` that posts to an Alertmanager's /api/v2/alerts.

    The annotations are those of the pack's alerts, and where to look: conversation_id, turn_id, trace_id.

    Args:
        url: Base URL (http://127.0.0.1:9093).
        labels: Further labels of the alert, such as cluster or namespace. The conversation is an annotation.
        runbooks: Where the runbooks are.
        dashboards: Where the dashboards are; without it there is no link to one.

    Raises:
        MissingExtraError: requests is not installed.
    """
    post = _poster()
    endpoint = f"{url.rstrip('/')}/api/v2/alerts"
    extra = dict(labels or {})

    def send(page: Page) -> None:
        now = datetime.datetime.now(datetime.UTC)
        annotations = {
            "summary": "An agent is stuck in a loop.",
            "description": page.reason,
            "turn_spend": None if page.spend_usd is None else f"{page.spend_usd:.2f} USD",
            **_places(page),
            **_links(page, extra, runbooks, dashboards),
        }
        alert = {
            "labels": {**_labels(page), **extra},
            "annotations": {name: text for name, text in annotations.items() if text},
            "startsAt": now.isoformat(),
            "endsAt": (now + ALERT_LASTS).isoformat(),
        }
        post(endpoint, [alert])

    return send


def webhook(
    url: str, labels: Mapping[str, str] | None = None, *, runbooks: str = RUNBOOKS, dashboards: str | None = None
) -> Send:
    """A ``send`` that posts each page as one JSON object.

    Args:
        url: Where to.
        labels: Further members of the object's ``labels``.
        runbooks: Where the runbooks are.
        dashboards: Where the dashboards are; without it the link to one is null.

    Raises:
        MissingExtraError: requests is not installed.
    """
    post = _poster()
    extra = dict(labels or {})

    def send(page: Page) -> None:
        post(
            url,
            {
                "labels": {**_labels(page), **extra},
                "reason": page.reason,
                "spend_usd": page.spend_usd,
                **_places(page),
                **_links(page, extra, runbooks, dashboards),
            },
        )

    return send


def _labels(page: Page) -> dict[str, str]:
    return {
        "alertname": _ALERT,
        "severity": "critical" if page.severity == "stuck" else "warning",
        "agent": page.agent or "unknown",
        "tool": page.tool or "unknown",
        "kind": page.kind,
        "source": "guard",
    }


def _places(page: Page) -> dict[str, str | None]:
    return {"conversation_id": page.conversation_id, "turn_id": page.turn_id, "trace_id": page.trace_id}


def _links(page: Page, labels: Mapping[str, str], runbooks: str, dashboards: str | None) -> dict[str, str | None]:
    """The links of the pack's own alert, whose labels fill in the dashboard's variables."""
    known = {**labels, "agent": page.agent, "tool": page.tool}
    variables = urlencode({f"var-{name}": value for name, value in known.items() if value})
    return {
        "runbook_url": f"{runbooks.rstrip('/')}/{_ALERT}.md",
        "dashboard_url": dashboards and f"{dashboards.rstrip('/')}/turnwatch-loops?{variables}",
    }


def _poster() -> Callable[[str, Any], None]:
    try:
        import requests
    except ImportError:
        raise MissingExtraError("a page over HTTP", "page") from None

    def post(url: str, body: Any) -> None:
        requests.post(url, json=body, timeout=TIMEOUT_SECONDS).raise_for_status()

    return post
