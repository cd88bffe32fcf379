"""Where kill flags are kept: in this process, in a directory of this machine, in Redis."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol, final

from turnwatch.core.forking import fork_safe_lock
from turnwatch.core.latest import keep_latest
from turnwatch.errors import MissingExtraError, SettingsError, TurnwatchError

MAX_IN_MEMORY: Final = 10_000
# A look at a directory costs some microseconds on a quiet machine and a hundred on a busy one.
DIRECTORY_LOOK_SECONDS: Final = 0.2
REDIS_TTL_SECONDS: Final = 86_400
# A Redis that is down answers late: 50 ms is what a guard may cost then, and for a while it is not asked again.
REDIS_TIMEOUT_SECONDS: Final = 0.05
REDIS_ASK_AGAIN_SECONDS: Final = 1.0
REDIS_DOWN_SECONDS: Final = 5.0
# Whoever kills a conversation would rather wait than hear that Redis was busy for a moment.
REDIS_TELL_TIMEOUT_SECONDS: Final = 2.0


class WritableKillStore(Protocol):
    """A place where kill flags are kept."""

    def is_killed(self, conversation_id: str) -> bool:
        """Whether the flag is up."""

    def kill(self, conversation_id: str) -> None:
        """Put the flag up."""

    def revive(self, conversation_id: str) -> bool:
        """Take the flag down; whether it was up."""


@final
class MemoryKills:
    """Flags of this process; past 10,000 the oldest are dropped."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()

    def is_killed(self, conversation_id: str) -> bool:
        """Whether the flag is up."""
        return conversation_id in self._ids

    def kill(self, conversation_id: str) -> None:
        """Put the flag up."""
        keep_latest(self._ids, conversation_id, None, MAX_IN_MEMORY)

    def revive(self, conversation_id: str) -> bool:
        """Take the flag down; whether it was up."""
        with contextlib.suppress(KeyError):
            del self._ids[conversation_id]
            return True
        return False


@final
class DirectoryKills:
    """Flags of the processes that see one directory: a file each, named by a hash of the id that it holds.

    Args:
        directory: Where the files are. Made when the first flag is put up, for its owner only.
        must_be_ours: Flags in a directory of another user (not root) do not count: for directories under /tmp.
    """

    def __init__(self, directory: str | Path, *, must_be_ours: bool = False) -> None:
        self.directory = Path(directory)
        self._must_be_ours = must_be_ours and hasattr(os, "getuid")
        self._seen: frozenset[str] = frozenset()
        self._look_again = 0.0

    def is_killed(self, conversation_id: str) -> bool:
        """Whether the flag is up, as of a fifth of a second ago at the latest.

        Raises:
            OSError: The directory is there and cannot be read.
        """
        now = time.monotonic()
        if now >= self._look_again:
            self._look_again = now + DIRECTORY_LOOK_SECONDS
            self._seen = self._look()
        return bool(self._seen) and _file_name(conversation_id) in self._seen

    def _look(self) -> frozenset[str]:
        try:
            return frozenset(entry.name for entry in self.directory.iterdir()) if self._is_ours() else frozenset()
        except FileNotFoundError:
            return frozenset()

    def kill(self, conversation_id: str) -> None:
        """Put the flag up.

        Raises:
            TurnwatchError: The directory cannot be written, or belongs to somebody else.
        """
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._is_ours():
                raise TurnwatchError(f"{self.directory} belongs to another user; set TURNWATCH_KILL_DIR")
            flag = self.directory / _file_name(conversation_id)
            flag.touch(mode=0o600)
            flag.write_bytes(conversation_id.encode("utf-8", "surrogatepass"))
            self._look_again = 0.0
        except OSError as error:
            raise TurnwatchError(f"no flag can be put into {self.directory}: {error.strerror}") from error

    def revive(self, conversation_id: str) -> bool:
        """Take the flag down; whether it was up.

        Raises:
            TurnwatchError: The directory cannot be written.
        """
        try:
            (self.directory / _file_name(conversation_id)).unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise TurnwatchError(f"no flag can be taken out of {self.directory}: {error.strerror}") from error
        self._look_again = 0.0
        return True

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return str(self.directory)

    def flags(self) -> list[str]:
        """The conversations whose flags are up.

        Raises:
            TurnwatchError: The directory cannot be read.
        """
        try:
            files = [self.directory / name for name in self._look()]
            return sorted(file.read_bytes().decode(errors="replace") for file in files)
        except OSError as error:
            raise TurnwatchError(f"flags in {self.directory} cannot be read: {error.strerror}") from error

    def _is_ours(self) -> bool:
        return not self._must_be_ours or self.directory.stat().st_uid in (os.getuid(), 0)


@final
class RedisKills:
    """Flags that every process on one Redis sees, for a day; asked for once a second at most.

    Args:
        client: A redis-py client, or anything with its ``exists``, ``set`` and ``delete``.
        teller: Puts flags up and down in its place, and may take its time: no agent waits for that.
    """

    def __init__(self, client: Any, teller: Any = None) -> None:
        self._client = client
        self._teller = client if teller is None else teller
        self._answers: OrderedDict[str, tuple[float, bool]] = OrderedDict()
        self._down_until = 0.0
        self._lock = fork_safe_lock()

    @classmethod
    def at(cls, url: str) -> RedisKills:
        """Flags on the Redis at this URL.

        Raises:
            MissingExtraError: redis-py is not installed.
            SettingsError: The URL is none of a Redis.
        """
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError:
            raise MissingExtraError("redis_url", "redis") from None
        try:
            client, teller = (
                redis.Redis.from_url(
                    url, socket_timeout=seconds, socket_connect_timeout=seconds, retry=Retry(NoBackoff(), 0)
                )
                for seconds in (REDIS_TIMEOUT_SECONDS, REDIS_TELL_TIMEOUT_SECONDS)
            )
        except ValueError:  # not its message: the URL may hold a password
            raise SettingsError("redis_url: wants a URL that begins with redis://, rediss:// or unix://") from None
        return cls(client, teller)

    def is_killed(self, conversation_id: str) -> bool:
        """Whether the flag is up, as of a second ago at the latest.

        Raises:
            redis.RedisError: Redis does not answer, and nobody knows of a flag. For five seconds after that it is not
                asked, and only flags that are known are up.
        """
        now = time.monotonic()
        with self._lock:
            asked, answer = self._answers.get(conversation_id, (-REDIS_ASK_AGAIN_SECONDS, False))
            if now - asked < REDIS_ASK_AGAIN_SECONDS or now < self._down_until:
                return answer
        try:
            answer = bool(self._client.exists(_redis_key(conversation_id)))
        except Exception:
            self._down_until = now + REDIS_DOWN_SECONDS
            if answer:  # who is killed stays killed
                return True
            raise
        with self._lock:
            keep_latest(self._answers, conversation_id, (now, answer), MAX_IN_MEMORY)
        return answer

    def kill(self, conversation_id: str) -> None:
        """Put the flag up for a day.

        Raises:
            TurnwatchError: Redis does not answer.
        """
        self._tell(lambda key: self._teller.set(key, conversation_id, ex=REDIS_TTL_SECONDS), conversation_id)

    def revive(self, conversation_id: str) -> bool:
        """Take the flag down; whether it was up.

        Raises:
            TurnwatchError: Redis does not answer.
        """
        return bool(self._tell(self._teller.delete, conversation_id))

    @property
    def place(self) -> str:
        """Where it is, in words, without user and password."""
        where = getattr(getattr(self._client, "connection_pool", None), "connection_kwargs", {})
        if "path" in where:
            return f"Redis at {where['path']}"
        return f"Redis at {where.get('host', 'localhost')}:{where.get('port', 6379)}" if where else "Redis"

    def flags(self) -> list[str]:
        """The conversations whose flags are up.

        Raises:
            TurnwatchError: Redis does not answer.
        """
        try:
            keys = list(self._teller.scan_iter(match=_redis_key_of("*"), count=1_000))
            found = self._teller.mget(keys) if keys else []
        except Exception as error:
            raise TurnwatchError(f"{self.place} does not tell its flags: {type(error).__name__}") from None
        return sorted(each.decode(errors="replace") if isinstance(each, bytes) else each for each in found if each)

    def _tell(self, tell: Callable[[str], object], conversation_id: str) -> object:
        try:
            told = tell(_redis_key(conversation_id))
        except Exception as error:  # not its message: it may hold a user's name
            raise TurnwatchError(f"{self.place} does not take the flag: {type(error).__name__}") from None
        with self._lock:
            self._answers.pop(conversation_id, None)
        return told


def default_directory() -> Path:
    """Where the flags of this user's processes on this machine are, when ``kill_dir`` is not set."""
    return Path(tempfile.gettempdir()) / f"turnwatch-kill-{os.getuid() if hasattr(os, 'getuid') else 'user'}"


def _file_name(conversation_id: str) -> str:
    return hashlib.sha256(conversation_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _redis_key(conversation_id: str) -> str:
    return _redis_key_of(_file_name(conversation_id))


def _redis_key_of(name: str) -> str:
    return f"turnwatch:{{{name}}}:killed"
