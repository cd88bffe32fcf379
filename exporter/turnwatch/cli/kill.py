"""``turnwatch kill``: stop a conversation that runs in another process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from turnwatch.guards.kill import kills_of
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
    """Stop a conversation: its guarded turns raise ConversationKilled at their next model or tool call.

    Reaches this user's processes on this machine, and those that share kill_dir or redis_url with this command.

    Both are settings, or the variables TURNWATCH_KILL_DIR and TURNWATCH_REDIS_URL.
    """
    kills = kills_of(load_settings(path=config))
    if undo:
        kills.revive(conversation_id)
        typer.echo(f"{conversation_id} may go on")
    else:
        kills.kill(conversation_id)
        typer.echo(f"{conversation_id} stops at its next model or tool call")
