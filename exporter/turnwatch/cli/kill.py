"""``turnwatch kill``: stop a conversation or an agent that runs in another process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from turnwatch.core.printable import printable
from turnwatch.errors import SettingsError, TurnwatchError
from turnwatch.guards.kill import agent_of, flag_of_agent, kills_of
from turnwatch.guards.kill_places import REDIS_TTL_SECONDS, DirectoryKills, RedisKills
from turnwatch.settings_file import load_settings

kill_app = typer.Typer()

NO_FLAG: Final = 1
NOT_TOLD: Final = 2


@kill_app.command()
def kill(
    conversation_id: Annotated[
        str, typer.Argument(help="The conversation, or the turn id of a turn without one.")
    ] = "",
    agent: Annotated[
        str, typer.Option(help="In its place: every conversation of this agent, by the name that its metrics have.")
    ] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Take the flag down again.")] = False,
    list_flags: Annotated[bool, typer.Option("--list", help="Say which flags are up.")] = False,
    config: Annotated[
        Path | None, typer.Option(help="Settings file of the agent; names kill_dir and redis_url.", dir_okay=False)
    ] = None,
) -> None:
    """Put up a flag: guarded turns of the conversation raise ConversationKilled at their next model or tool call.

    So do the turns of other agents below them. Whether there is such a conversation or agent is not known here, and
    the flag holds for turns that begin later, too.

    Reaches this user's processes on this machine, and those that share kill_dir or redis_url with this command.

    Both are settings, or the variables TURNWATCH_KILL_DIR and TURNWATCH_REDIS_URL.

    Exit codes: 0, 1 when --undo finds no flag, 2 when one of them cannot be told or asked.
    """
    if list_flags and (conversation_id or agent or undo):
        raise SettingsError("--list stands alone")
    if conversation_id and agent:
        raise SettingsError("--agent stands in the place of CONVERSATION_ID")
    if not conversation_id and not agent and not list_flags:
        raise typer.BadParameter("is missing or empty", param_hint="CONVERSATION_ID")
    flag, whose = (flag_of_agent(agent), f"agent {agent}") if agent else (conversation_id, conversation_id)
    told, not_told, taken_down = 0, 0, 0
    for store in kills_of(load_settings(path=config)).stores:
        if not isinstance(store, DirectoryKills | RedisKills):
            continue  # this process's own
        try:
            if list_flags:
                _say_flags(store)
            elif not undo:
                store.kill(flag)
                lasting = (
                    f"for {REDIS_TTL_SECONDS // 3_600} hours or until" if isinstance(store, RedisKills) else "until"
                )
                typer.echo(f"flag set for {whose} in {store.place}, {lasting} --undo")
            elif store.revive(flag):
                typer.echo(f"flag taken down for {whose} in {store.place}")
                taken_down += 1
            else:
                typer.echo(f"there was no flag for {whose} in {store.place}")
            told += 1
        except TurnwatchError as error:  # the other places are told all the same
            typer.echo(f"turnwatch: {error}", err=True)
            not_told += 1
    if told and not undo and not list_flags:
        kind = "agent" if agent else "conversation"
        typer.echo(f"guarded turns of this {kind}, if there are any, stop at their next model or tool call")
    if not_told:
        raise typer.Exit(NOT_TOLD)
    if undo and not taken_down:
        raise typer.Exit(NO_FLAG)


def _say_flags(store: DirectoryKills | RedisKills) -> None:
    flags = store.flags()
    for flag in flags:
        agent = agent_of(flag)
        whose = flag if agent is None else f"--agent {agent}"
        typer.echo(f"{printable(whose) or '(an id that is not known)'} in {store.place}")
    if not flags:
        typer.echo(f"no flags in {store.place}")
