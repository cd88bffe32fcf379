"""Has somebody killed this conversation or agent? In this process, on this machine, or through Redis.

``turnwatch kill CONVERSATION_ID`` and ``turnwatch.kill(...)`` write the flag; every guarded turn asks for it before
each model and tool call. What is killed stays killed until the flag is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, final

from turnwatch.core.default import default_watch
from turnwatch.core.forking import fork_safe_lock
from turnwatch.core.names import id_of, name_of
from turnwatch.guards.kill_places import (
    DirectoryKills,
    MemoryKills,
    RedisKills,
    WritableKillStore,
    default_directory,
)

if TYPE_CHECKING:
    from turnwatch.settings import Settings

# No id from a command line begins like this.
_OF_AGENT: Final = "\0agent\0"


def flag_of_agent(agent: str) -> str:
    """What stands in the place of a conversation's id in the flag of an agent, by the name that its metrics have."""
    return _OF_AGENT + (name_of(agent) or "unknown")


def agent_of(flag: str) -> str | None:
    """The agent whose flag this is; None where it is a conversation's."""
    return flag.removeprefix(_OF_AGENT) if flag.startswith(_OF_AGENT) else None


@final
class AllKills:
    """Several places as one: a flag in any of them counts, and is put up in all of them.

    A place that fails keeps nobody from asking and telling the others. What it raised is raised afterwards, unless a
    flag was found.
    """

    def __init__(self, stores: Sequence[WritableKillStore]) -> None:
        self.stores = tuple(stores)

    def is_killed(self, conversation_id: str) -> bool:
        """Whether the flag is up anywhere."""
        fault: Exception | None = None
        for store in self.stores:
            try:
                if store.is_killed(conversation_id):
                    return True
            except Exception as error:
                fault = error
        if fault is not None:
            raise fault
        return False

    def kill(self, conversation_id: str) -> None:
        """Put the flag up everywhere."""
        known_as = id_of(conversation_id)  # as turns are
        self._tell(lambda store: store.kill(known_as))

    def revive(self, conversation_id: str) -> bool:
        """Take the flag down everywhere; whether it was up anywhere."""
        known_as = id_of(conversation_id)
        return any(self._tell(lambda store: store.revive(known_as)))

    def _tell(self, tell: Callable[[WritableKillStore], object]) -> list[object]:
        fault: Exception | None = None
        told: list[object] = []
        for store in self.stores:
            try:
                told.append(tell(store))
            except Exception as error:
                fault = fault or error
        if fault is not None:
            raise fault
        return told


_in_this_process: Final = MemoryKills()
_lock: Final = fork_safe_lock()
_made: Final[dict[tuple[str | None, str | None], AllKills]] = {}


def kill(conversation_id: str | None = None, *, agent: str | None = None) -> None:
    """Stop a conversation or an agent: its guarded turns raise ConversationKilled at their next model or tool call.

    So do the turns below them, whatever their conversation and agent, and those that begin later.

    Seen by this process at once, by other processes of this user on this machine (or wherever ``kill_dir`` is
    mounted), and by all that share ``redis_url`` where that is set.

    Args:
        conversation_id: The conversation, or the turn id of a turn that has none.
        agent: In its place, the agent by the name that its metrics have.

    Raises:
        TypeError: It is not one of the two.
        TurnwatchError: It is killed in this process, but other processes cannot be told.
    """
    kills_of(default_watch().settings).kill(_flag(conversation_id, agent))


def revive(conversation_id: str | None = None, *, agent: str | None = None) -> bool:
    """Take back what ``kill`` did; whether there was a flag.

    Raises:
        TypeError: It is not one of the two.
        TurnwatchError: The flag is taken down in this process, but other processes cannot be told.
    """
    return kills_of(default_watch().settings).revive(_flag(conversation_id, agent))


def _flag(conversation_id: str | None, agent: str | None) -> str:
    if conversation_id is not None and agent is None:
        return conversation_id
    if agent is not None and conversation_id is None:
        return flag_of_agent(agent)
    raise TypeError("wants either a conversation_id or an agent")


def kills_of(settings: Settings) -> AllKills:
    """Every place in which these settings look for a flag: this process, the directory, Redis where it is set.

    Made once for the same settings, because a connection to Redis is kept.

    Raises:
        MissingExtraError: ``redis_url`` is set and redis-py is not installed.
        SettingsError: ``redis_url`` is none of a Redis.
    """
    key = (settings.kill_dir, settings.redis_url)
    kills = _made.get(key)
    if kills is None:
        with _lock:
            kills = _made.setdefault(key, _make(settings))
    return kills


def _make(settings: Settings) -> AllKills:
    directory = DirectoryKills(settings.kill_dir or default_directory(), must_be_ours=not settings.kill_dir)
    stores: list[WritableKillStore] = [_in_this_process, directory]
    if settings.redis_url:
        stores.append(RedisKills.at(settings.redis_url))
    return AllKills(stores)
