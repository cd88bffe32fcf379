"""A step of turnwatch's own whose faults are counted and go no further."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from turnwatch.core.watch import Watch


@final
class Quietly:
    """``with Quietly(watch, "a cache"): ...``: an exception inside is counted, and the code after the block goes on.

    Holds no state, so one object may be entered again and again, and side by side. A class and not a generator:
    there are a dozen such steps in a guarded call, and a generator's frame costs more than most of them do.

    Args:
        watch: Counts the fault.
        step: What failed, in words.
    """

    __slots__ = ("_step", "_watch")

    def __init__(self, watch: Watch, step: str) -> None:
        self._watch = watch
        self._step = step

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if kind is None or not issubclass(kind, Exception):
            return False
        self._watch.internal_error(self._step)
        return True
