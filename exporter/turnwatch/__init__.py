"""turnwatch tells a team that an LLM agent is stuck, in the first minutes and from their own Prometheus.

The smallest start::

    import turnwatch as tw

    with tw.turn(agent="support-bot", conversation_id="c-17") as turn:
        rows = turn.call_tool("search_orders", search_orders, customer_id="C-7841")

Metrics go to prometheus-client's default registry unless ``configure`` says otherwise.
"""

import importlib
from typing import TYPE_CHECKING, Any

from turnwatch.core.account import BudgetWarning
from turnwatch.core.default import default_watch, install_factory
from turnwatch.core.events import MISSING, ModelCall, ToolCall, Usage
from turnwatch.core.evidence import Evidence
from turnwatch.core.guard import Page, install_guards
from turnwatch.core.hashing import bind_arguments, input_hash
from turnwatch.core.limits import AssumedPrice, Limits
from turnwatch.core.seed_detectors import LoopDetector
from turnwatch.core.turn import TurnState
from turnwatch.core.verdict import Verdict
from turnwatch.core.watch import Watch
from turnwatch.errors import (
    BudgetExceeded,
    ConversationKilled,
    LoopDetected,
    MissingExtraError,
    SelfLoopDetected,
    SettingsError,
    SideEffectHeld,
    StepLimitExceeded,
    TimeLimitExceeded,
    ToolBudgetExceeded,
    ToolSpamDetected,
    TurnStopped,
    TurnwatchError,
    UnknownToolError,
)
from turnwatch.guards.from_settings import open_guard
from turnwatch.sources.decorators import watch_tool, watch_turn
from turnwatch.sources.hand import Turn, current_turn, turn

if TYPE_CHECKING:
    from turnwatch.guards.budget_gate import BudgetGate
    from turnwatch.guards.frameworks.clients import wrap
    from turnwatch.guards.gateway import ToolGateway
    from turnwatch.guards.kill import kill, revive
    from turnwatch.guards.pager import Pager, alertmanager, webhook
    from turnwatch.guards.partial import PartialResults
    from turnwatch.guards.step_limit import StepLimit
    from turnwatch.metrics.outlet import (
        configure,
        metrics_asgi_app,
        metrics_registry,
        metrics_wsgi_app,
        start_metrics_server,
    )
    from turnwatch.settings import Settings
    from turnwatch.sources.spans.instrument import instrument
    from turnwatch.sources.spans.processor import TurnSpanProcessor

# What is imported when it is first asked for. Pydantic, prometheus-client, asyncio and the OpenTelemetry SDK, which is
# optional, take three times as long as the rest together; many a process needs none of them, or has them already.
_LATER = {
    "turnwatch.guards.budget_gate": ("BudgetGate",),
    "turnwatch.guards.frameworks.clients": ("wrap",),
    "turnwatch.guards.gateway": ("ToolGateway",),
    "turnwatch.guards.kill": ("kill", "revive"),
    "turnwatch.guards.pager": ("Pager", "alertmanager", "webhook"),
    "turnwatch.guards.partial": ("PartialResults",),
    "turnwatch.guards.step_limit": ("StepLimit",),
    "turnwatch.metrics.outlet": (
        "configure",
        "metrics_asgi_app",
        "metrics_registry",
        "metrics_wsgi_app",
        "start_metrics_server",
    ),
    "turnwatch.settings": ("Settings",),
    "turnwatch.sources.spans.instrument": ("instrument",),
    "turnwatch.sources.spans.processor": ("TurnSpanProcessor",),
}
_MODULE_OF = {name: module for module, names in _LATER.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def _first_watch() -> Watch:
    from turnwatch.metrics.outlet import first_use

    return first_use()


install_factory(_first_watch)
install_guards(open_guard)

__all__ = [
    "MISSING",
    "AssumedPrice",
    "BudgetExceeded",
    "BudgetGate",
    "BudgetWarning",
    "ConversationKilled",
    "Evidence",
    "Limits",
    "LoopDetected",
    "LoopDetector",
    "MissingExtraError",
    "ModelCall",
    "Page",
    "Pager",
    "PartialResults",
    "SelfLoopDetected",
    "Settings",
    "SettingsError",
    "SideEffectHeld",
    "StepLimit",
    "StepLimitExceeded",
    "TimeLimitExceeded",
    "ToolBudgetExceeded",
    "ToolCall",
    "ToolGateway",
    "ToolSpamDetected",
    "Turn",
    "TurnSpanProcessor",
    "TurnState",
    "TurnStopped",
    "TurnwatchError",
    "UnknownToolError",
    "Usage",
    "Verdict",
    "Watch",
    "alertmanager",
    "bind_arguments",
    "configure",
    "current_turn",
    "default_watch",
    "input_hash",
    "instrument",
    "kill",
    "metrics_asgi_app",
    "metrics_registry",
    "metrics_wsgi_app",
    "revive",
    "start_metrics_server",
    "turn",
    "watch_tool",
    "watch_turn",
    "webhook",
    "wrap",
]
