"""``turnwatch kill``: stop a conversation that runs in another process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from turnwatch.guards.kill import REDIS_TTL_SECONDS, AllKills, DirectoryKills, RedisKills, kills_of
from turnwatch.settings_file import load_settings

kill_app = typer.Typer()


@kill_app.command()
def kill(
    conversation_id: Annotated[str, typer.Argument(help="The conversation, or the turn id of a turn without one.")],
    undo: Annotated[bool, typer.Option("--undo", help="Take the flag down again.")] = False,
    config: Annotated[
        Path | None, typer.Option(help="Settings file of the agent; names kill_dir and redis_url.", dir_okay=False)
    ] = None,
) -> None:
    """Put up a flag: guarded turns of the conversation raise ConversationKilled at their next model or tool call.

    Whether there is such a conversation is not known here, and the flag holds for turns that begin later, too.

    Reaches this user's processes on this machine, and those that share kill_dir or redis_url with this command.

    Both are settings, or the variables TURNWATCH_KILL_DIR and TURNWATCH_REDIS_URL.
    """
    kills = kills_of(load_settings(path=config))
    if undo:
        kills.revive(conversation_id)
        typer.echo("\n".join(f"no flag for {conversation_id} in {place}" for place, _ in _places(kills)))
    else:
        kills.kill(conversation_id)
        for place, lasting in _places(kills):
            typer.echo(f"flag set for {conversation_id} in {place}, {lasting}")
        typer.echo("guarded turns of this conversation, if there are any, stop at their next model or tool call")


def _places(kills: AllKills) -> list[tuple[str, str]]:
    """Where other processes see a flag, and how long it stays. The URL of Redis may hold a password."""
    places = []
    for store in kills.stores:
        if isinstance(store, DirectoryKills):
            places.append((str(store.directory), "until --undo"))
        elif isinstance(store, RedisKills):
            places.append(("Redis", f"for {REDIS_TTL_SECONDS // 3_600} hours or until --undo"))
    return places
