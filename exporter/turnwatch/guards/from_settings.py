"""Which guard a turn gets: what ``turnwatch.turn`` was told, and the settings for the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from turnwatch.core.forking import fork_safe_lock
from turnwatch.core.guard import Guarding, Page, check_keywords
from turnwatch.core.limits import NO_LIMITS, Limits
from turnwatch.core.quietly import Quietly
from turnwatch.core.turn import TurnState
from turnwatch.errors import TurnStopped
from turnwatch.guards.kill import kills_of
from turnwatch.guards.pager import Pager, alertmanager, webhook
from turnwatch.guards.responses import steps_of
from turnwatch.guards.turn_guard import TurnGuard

if TYPE_CHECKING:
    from turnwatch.settings import Budgets, Settings


def open_guard(state: TurnState, guarding: Guarding) -> TurnGuard | None:
    """The guard of a turn that was just opened.

    Args:
        state: The turn.
        guarding: What it was told; nothing but keywords of ``Guarding``, as whoever took them has checked.

    Raises:
        TypeError: ``limits`` or ``conversation_limits`` is something else than Limits.
        ValueError: ``on_loop`` names no response.
        TurnStopped: ``fail_closed`` is set, and no guard can be made or some settings are wrong. Without it, a fault is
            counted and the turn goes unguarded, or without what was wrong.
    """
    watch = state.watch
    settings = watch.settings
    faults_before = watch.faults
    fail_closed = guarding.get("fail_closed", settings.fail_closed)
    on_loop = guarding.get("on_loop", settings.on_loop)
    _check_values({**guarding, "on_loop": on_loop})
    if fail_closed and watch.settings_faults:
        # Which limits were to hold nobody knows.
        raise TurnStopped(
            f"turnwatch's settings are wrong, and fail_closed is set: {watch.settings_faults[0]}", stop_reason="error"
        )
    try:
        if fail_closed and state.conversation_id is not None and state.conversation is None:
            raise LookupError("the turn could not enter its conversation, so the limits of that would not hold")
        limits = guarding.get("limits")
        conversation = guarding.get("conversation_limits")
        if conversation is None and state.conversation is not None and not state.conversation.account.limits:
            conversation = limits_of(settings.conversation_budgets)
        # A kill store or a pager that cannot be made costs its own part of the guard only.
        kills = guarding.get("kills")
        if kills is None:
            with Quietly(watch, "making the kill stores"):
                kills = kills_of(settings)
        pager = guarding.get("pager")
        if pager is None:
            with Quietly(watch, "making a pager"):
                pager = pager_of(settings)
        return TurnGuard(
            state,
            limits=limits_of(settings.budgets_of(state.agent)) if limits is None else limits,
            conversation_limits=conversation,
            on_loop=on_loop,
            on_warning=guarding.get("on_warning"),
            goal=guarding.get("goal"),
            pager=pager,
            kills=kills,
            fail_closed=fail_closed,
            faults_before=faults_before,
        )
    except Exception:
        watch.internal_error("making a turn's guard")
        if fail_closed:
            raise TurnStopped(
                "turnwatch could not make the turn's guard, and fail_closed is set", stop_reason="error"
            ) from None
        return None


def check_guarding(guarding: Guarding) -> None:
    """Refuse what would not look wrong, and would hold nothing back.

    Raises:
        TypeError: There is no such keyword, or ``limits`` or ``conversation_limits`` is something else than Limits.
        ValueError: ``on_loop`` names no response.
    """
    check_keywords(guarding)
    _check_values(guarding)


def _check_values(guarding: Guarding) -> None:
    if "on_loop" in guarding:
        steps_of(guarding["on_loop"])
    for name in ("limits", "conversation_limits"):
        given = guarding.get(name)
        if given is not None and not isinstance(given, Limits):
            raise TypeError(
                f"{name} wants a turnwatch.Limits, such as Limits(max_usd=1.00), not {type(given).__name__}"
            )


def limits_of(budgets: Budgets) -> Limits:
    """The limits that a section of budgets stands for."""
    limits = Limits(
        max_iterations=budgets.max_steps,
        max_tool_calls=budgets.max_tool_calls,
        max_seconds=budgets.max_seconds,
        max_usd=budgets.max_usd,
        max_tokens=budgets.max_tokens,
        unpriced=budgets.unpriced,
    )
    return limits or NO_LIMITS


_lock: Final = fork_safe_lock()
# A page has the links of the pack's alerts, which are rendered from the same settings.
_LINKS: Final = {"runbooks": "runbookBaseUrl", "dashboards": "dashboardBaseUrl"}
_pagers: Final[dict[tuple[object, ...], Callable[[Page], None]]] = {}


def pager_of(settings: Settings) -> Callable[[Page], None] | None:
    """Where these settings send pages; None where they name nothing. Made once, because it has a thread."""
    page = settings.page
    if page.alertmanager_url is None and page.webhook_url is None:
        return None
    links = {name: base for name, key in _LINKS.items() if isinstance(base := settings.alerts.get(key), str)}
    key = (page.alertmanager_url, page.webhook_url, *(tuple(sorted(pairs.items())) for pairs in (page.labels, links)))
    with _lock:
        if key not in _pagers:
            sends = []
            if page.alertmanager_url is not None:
                sends.append(alertmanager(page.alertmanager_url, page.labels, **links))
            if page.webhook_url is not None:
                sends.append(webhook(page.webhook_url, page.labels, **links))
            pagers = [Pager(send) for send in sends]

            def page_all(page: Page) -> None:
                for pager in pagers:
                    pager(page)

            _pagers[key] = page_all
        return _pagers[key]
