"""``turnwatch kill``: stop a conversation that runs in another process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from turnwatch.errors import TurnwatchError
from turnwatch.guards.kill import REDIS_TTL_SECONDS, DirectoryKills, MemoryKills, WritableKillStore, kills_of
from turnwatch.settings_file import load_settings

kill_app = typer.Typer()

NOT_TOLD: Final = 2


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

    Exit codes: 0, 2 when one of them cannot be told.
    """
    if not conversation_id:
        raise typer.BadParameter("is empty", param_hint="CONVERSATION_ID")
    told, not_told = 0, 0
    for store in kills_of(load_settings(path=config)).stores:
        if isinstance(store, MemoryKills):
            continue
        place, lasting = _place(store)
        try:
            if undo:
                store.revive(conversation_id)
                typer.echo(f"no flag for {conversation_id} in {place}")
            else:
                store.kill(conversation_id)
                typer.echo(f"flag set for {conversation_id} in {place}, {lasting}")
            told += 1
        except TurnwatchError as error:  # the other places are told all the same
            typer.echo(f"turnwatch: {error}", err=True)
            not_told += 1
    if told and not undo:
        typer.echo("guarded turns of this conversation, if there are any, stop at their next model or tool call")
    if not_told:
        raise typer.Exit(NOT_TOLD)


def _place(store: WritableKillStore) -> tuple[str, str]:
    """Where other processes see a flag, and how long it stays. The URL of Redis may hold a password."""
    if isinstance(store, DirectoryKills):
        return str(store.directory), "until --undo"
    return "Redis", f"for {REDIS_TTL_SECONDS // 3_600} hours or until --undo"
