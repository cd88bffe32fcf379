"""Numbers in few cells."""

from __future__ import annotations

from typing import Final

UNKNOWN: Final = "-"


def count(value: float | None) -> str:
    """A whole number: 5, 1234, 12k."""
    return UNKNOWN if value is None else _short(value, f"{value:.0f}")


def per_minute(value: float | None) -> str:
    """A rate: 0, 0.4, 12, 1.2k."""
    if value is None:
        return UNKNOWN
    if value and value < 9.95:
        return f"{value:.1f}" if value >= 0.05 else "<0.1"
    return _short(value, f"{value:.0f}", limit=1_000)


def dollars(value: float | None) -> str:
    """Dollars: 0, 0.04, 12.3, 1234, 12k."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0"
    if value < 0.005:
        return "<0.01"
    if value < 99.95:
        return f"{value:.2f}" if value < 9.995 else f"{value:.1f}"
    return _short(value, f"{value:.0f}")


def age(seconds: float | None) -> str:
    """How long: 5s, 12m34, 3h05, 2d04h; "-" for nothing open."""
    if not seconds:
        return UNKNOWN
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"


def _short(value: float, plain: str, limit: float = 10_000) -> str:
    if value < limit - 0.5:
        return plain
    for suffix in ("k", "M", "G", "T"):
        value /= 1_000
        if value < 999.5:
            return f"{value:.1f}{suffix}" if value < 99.95 else f"{value:.0f}{suffix}"
    return f"{value * 1e12:.0e}"


def share(part: float | None, whole: float | None) -> str:
    """A part in percent; "-" where there is nothing to take it of."""
    return UNKNOWN if part is None or not whole else f"{100 * part / whole:.0f}"
