"""What a source does not carry, said once, with the switch that turns it on."""

from __future__ import annotations

import logging

from turnwatch.sources.spans.dialect import Dialect

logger = logging.getLogger("turnwatch")


class Complaints:
    """Remembers what was said already. The dialects that are known bound it."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def lacks_arguments(self, dialect: Dialect) -> None:
        """Say that a dialect's spans come without tool arguments, and how to put them there."""
        if dialect.name in self._said:
            return
        self._said.add(dialect.name)
        logger.warning(
            "Spans of %s come without tool arguments, so repeated calls cannot be told in its turns. "
            "What puts arguments on its spans: %s.",
            dialect.name,
            dialect.switch or "see its documentation on capturing content, and turnwatch's docs/frameworks",
        )
