"""What a source does not carry, said once, with the switch that turns it on."""

from __future__ import annotations

import logging
from typing import Final

from turnwatch.sources.spans.dialect import Dialect

logger = logging.getLogger("turnwatch")

# Instrumentations that nobody declared may be any number.
_MOST: Final = 64


class Complaints:
    """Remembers what was said already: once for each instrumentation, and for no more than a bounded number of them."""

    def __init__(self) -> None:
        self._said: set[tuple[str, str]] = set()

    def lacks_arguments(self, dialect: Dialect, scope: str = "") -> None:
        """Say that an instrumentation's spans come without tool arguments, and how to put them there.

        Args:
            dialect: What its spans are written in.
            scope: The instrumentation scope, where it is known.
        """
        about = (dialect.name, scope)
        if about in self._said or len(self._said) >= _MOST:
            return
        self._said.add(about)
        logger.warning(
            "Spans of %s come without tool arguments, so repeated calls cannot be told in its turns. "
            "What puts arguments on its spans: %s.",
            f"{dialect.name} ({scope})" if scope else dialect.name,
            dialect.switch or "see its documentation on capturing content, and turnwatch's docs/frameworks",
        )
