"""Tells a stuck agent from a working one, call by call. See docs/detection.md."""

from turnwatch.core.engine.engine import Engine
from turnwatch.core.engine.seen import Seen
from turnwatch.core.engine.thresholds import Thresholds

__all__ = ["Engine", "Seen", "Thresholds"]
