"""A watch that counts into a store of its own, on a clock that the test moves."""

from __future__ import annotations

import pytest

from turnwatch import configure  # noqa: F401  installs the guards
from turnwatch.core.watch import Watch
from turnwatch.metrics.store import Store
from turnwatch.settings import Settings


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Counted(Watch):
    """A watch whose counters can be read."""

    def value(self, name: str, *labels: str) -> float:
        assert isinstance(self.meter, Store)
        cell = self.meter.counters.get(name, {}).get(labels)
        return 0.0 if cell is None else cell.value

    def total(self, name: str) -> float:
        assert isinstance(self.meter, Store)
        return sum(cell.value for cell in self.meter.counters.get(name, {}).values())


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make_watch(clock: Clock, tmp_path):
    def make(**settings: object) -> Counted:
        settings.setdefault("kill_dir", str(tmp_path / "kill"))
        return Counted(Settings(**settings), Store(), clock=clock)

    return make


@pytest.fixture
def watch(make_watch) -> Counted:
    return make_watch()
