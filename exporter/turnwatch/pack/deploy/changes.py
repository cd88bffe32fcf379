"""What a deployment would change on one server, and how it went wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from turnwatch.errors import TurnwatchError

Action = Literal["create", "update", "delete", "conflict", "reload"]


class DeployError(TurnwatchError):
    """A server refused, did not answer, or does not hold what it was sent. What had been changed was taken back."""


class DeployConflictError(DeployError):
    """Something that turnwatch did not make stands in the way. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that would be made, changed or removed.

    Attributes:
        action: "conflict" where it is there, differs, and was not made by turnwatch; "reload" where it is there and the
            same, and the server does not hold it.
        what: The file or the dashboard.
        diff: Unified diff, both sides normalised; what the server lacks, where it is to reload.
        backup: Where a conflict is kept once ``force`` has replaced it; "" for nowhere.
        instead: What somebody can do about a conflict instead of replacing it.
        refused: Why it is not made, not even by force; "" for no reason.
    """

    action: Action
    what: str
    diff: str
    backup: str = ""
    instead: str = ""
    refused: str = ""

    @property
    def done(self) -> str:
        """The change in words, once it is made."""
        if self.action != "conflict":
            return f"{self.action} {self.what}"
        return f"replaced {self.what}" + (f" (backup at {self.backup})" if self.backup else "")


class Target(Protocol):
    """A server that parts of the pack go to.

    Attributes:
        name: The server's.
        up_to_date: What is said where a deployment would change nothing.
    """

    name: str
    up_to_date: str

    def changes(self, *, prune: bool) -> list[Change]:
        """Return what a deployment would change; nothing where it has been deployed already.

        Args:
            prune: Also remove what turnwatch made before and does not make any more.

        Raises:
            DeployError: The server does not answer.
        """
        ...

    def apply(self, changes: list[Change]) -> None:
        """Make the changes and see that the server holds them.

        Raises:
            DeployError: It did not go well; what had been changed was taken back.
        """
        ...


def deploy(
    targets: Sequence[Target], *, prune: bool = False, force: bool = False
) -> Iterator[tuple[Target, list[Change]]]:
    """Bring servers up to date, one after the other, and yield what was changed on each.

    Every server is asked, and every conflict found, before the first is changed. What has been yielded stays when a
    later server refuses.

    Args:
        targets: The servers.
        prune: Also remove what turnwatch made before and does not make any more.
        force: Replace what turnwatch did not make, too.

    Raises:
        DeployConflictError: Something that turnwatch did not make would be replaced, and ``force`` is not set.
        DeployError: A change is refused, and nothing was changed; or it did not go well, and what had been changed on
            that server was taken back.
    """
    planned = [(target, target.changes(prune=prune)) for target in targets]
    every = [(target.name, change) for target, changes in planned for change in changes]
    conflicts = [(name, change) for name, change in every if change.action == "conflict"]
    refused = [f"{name}: {change.refused}" for name, change in every if change.refused]
    if conflicts and not force:
        those = ", ".join(f"{name}: {change.what}" for name, change in conflicts)
        instead = "".join(f". {change.instead}" for _, change in conflicts if change.instead)
        by_force = "" if refused else "; --force replaces it"
        raise DeployConflictError(f"not made by turnwatch: {those}{by_force}{instead}. Nothing was changed")
    if refused:
        raise DeployError(f"{'; '.join(refused)}. Nothing was changed")
    for target, changes in planned:
        if changes:
            target.apply(changes)
        yield target, changes


def text_diff(before: str, after: str, name: str) -> str:
    """Return the unified diff of two texts."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"{name} (there)", f"{name} (pack)", n=1
    )
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)
