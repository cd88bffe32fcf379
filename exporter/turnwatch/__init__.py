"""turnwatch tells a team that an LLM agent is stuck, in the first minutes and from their own Prometheus.

The smallest start::

    import turnwatch as tw

    with tw.turn(agent="support-bot", conversation_id="c-17") as turn:
        rows = turn.call_tool("search_orders", search_orders, customer_id="C-7841")

Metrics go to prometheus-client's default registry unless ``configure`` says otherwise.
"""

from turnwatch.core.default import default_watch, install_factory
from turnwatch.core.events import MISSING, ModelCall, ToolCall, Usage
from turnwatch.core.evidence import Evidence
from turnwatch.core.hashing import bind_arguments, input_hash
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
    StepLimitExceeded,
    TimeLimitExceeded,
    ToolBudgetExceeded,
    ToolSpamDetected,
    TurnStopped,
    TurnwatchError,
)
from turnwatch.metrics.outlet import (
    configure,
    first_use,
    metrics_asgi_app,
    metrics_registry,
    metrics_wsgi_app,
    start_metrics_server,
)
from turnwatch.settings import Settings
from turnwatch.sources.hand import Turn, current_turn, turn, watch_tool, watch_turn

install_factory(first_use)

__all__ = [
    "MISSING",
    "BudgetExceeded",
    "ConversationKilled",
    "Evidence",
    "LoopDetected",
    "LoopDetector",
    "MissingExtraError",
    "ModelCall",
    "SelfLoopDetected",
    "Settings",
    "SettingsError",
    "StepLimitExceeded",
    "TimeLimitExceeded",
    "ToolBudgetExceeded",
    "ToolCall",
    "ToolSpamDetected",
    "Turn",
    "TurnState",
    "TurnStopped",
    "TurnwatchError",
    "Usage",
    "Verdict",
    "Watch",
    "bind_arguments",
    "configure",
    "current_turn",
    "default_watch",
    "input_hash",
    "metrics_asgi_app",
    "metrics_registry",
    "metrics_wsgi_app",
    "start_metrics_server",
    "turn",
    "watch_tool",
    "watch_turn",
]
