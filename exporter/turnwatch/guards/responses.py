"""Which response to a stuck turn comes when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from turnwatch.core.guard import Response

RESPONSES: Final[frozenset[Response]] = frozenset({"observe", "nudge", "stop", "page"})


def steps_of(on_loop: Response | Sequence[Response]) -> tuple[Response, ...]:
    """The steps that a policy stands for.

    "nudge" is nudge, then stop. "page" and "observe" are said once and let the turn go on.

    Raises:
        ValueError: There is no such response, or no step at all.
    """
    try:
        steps: tuple[Response, ...] = (on_loop,) if isinstance(on_loop, str) else tuple(on_loop)
        known = RESPONSES.issuperset(steps)
    except TypeError:  # None, a number, a sequence of lists
        known = False
    if not known or not steps:
        raise ValueError(f"on_loop is one of {', '.join(sorted(RESPONSES))}, or a sequence of them")
    return (*steps, "stop") if steps[-1] == "nudge" else steps


@final
class Steps:
    """Walks through a policy's steps, one at each stuck call.

    A page is no step of its own: it goes out together with the step that follows it. The last step but a stop is
    taken once; a stop is taken at every call from then on.
    """

    __slots__ = ("_left",)

    def __init__(self, on_loop: Response | Sequence[Response]) -> None:
        self._left = list(steps_of(on_loop))

    def take(self) -> tuple[Response, ...]:
        """What to do now; nothing when all steps are taken."""
        due: list[Response] = []
        while self._left:
            step = self._left[0]
            due.append(step)
            if step == "stop":
                break
            del self._left[0]
            if step != "page":
                break
        return tuple(due)
