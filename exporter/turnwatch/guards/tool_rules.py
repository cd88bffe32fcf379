"""What holds for one tool: the settings for all tools, and what is said about this one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from turnwatch.core.effects import changes_state, is_polling, runs_code
from turnwatch.core.events import ToolCall
from turnwatch.default_volatile_keys import DEFAULT_VOLATILE_KEYS
from turnwatch.errors import SettingsError
from turnwatch.near_names import did_you_mean
from turnwatch.settings import Retries, Settings, ToolOverride


@dataclass(frozen=True, slots=True)
class ToolRules:
    """The rules of one tool.

    Attributes:
        override: What is declared about it.
        reuse_s: Seconds for which an identical call gets this one's result.
        retries: When a failed call is tried again.
        volatile_keys: Arguments that somebody said make no difference. The general list of keys like ``nonce`` and
            ``call_id`` is not in it: that is good enough for counting, not for handing out another call's result.
    """

    override: ToolOverride
    reuse_s: float
    retries: Retries
    volatile_keys: frozenset[str]

    def declare(self, call: ToolCall) -> None:
        """Tell a call what is declared about its tool."""
        said = self.override
        call.read_only = said.read_only
        call.polling = said.polling
        call.idempotent = said.idempotent
        call.destructive = said.side_effect
        if said.side_effect is False:
            call.mutates = False


def rules_for(settings: Settings, tool: str, here: ToolOverride | None) -> ToolRules:
    """The rules of one tool.

    Args:
        settings: Of the process.
        tool: Its name.
        here: What the gateway was told about it; it wins over the settings, key by key.

    Raises:
        SettingsError: It is said both to change nothing and to have a side effect.
    """
    tools = settings.tools
    override = tools.overrides.get(tool, ToolOverride())
    if here is not None:
        override = override.model_copy(update={name: getattr(here, name) for name in here.model_fields_set})
    if override.read_only and override.side_effect:
        raise SettingsError(f"overrides of {tool}: read_only and side_effect cannot both be true")
    dedupe = tools.dedupe_window_s if override.dedupe_window_s is None else override.dedupe_window_s
    cache = tools.cache_ttl_s if override.cache_ttl_s is None else override.cache_ttl_s
    return ToolRules(
        override=override,
        # A declared read has a lifetime of its own, longer or shorter than the window.
        reuse_s=cache if override.read_only and cache else dedupe,
        retries=tools.retries if override.retries is None else override.retries,
        volatile_keys=override.volatile_keys | (settings.detect.volatile_keys - DEFAULT_VOLATILE_KEYS),
    )


def override_of(tool: str, said: ToolOverride | Mapping[str, Any]) -> ToolOverride:
    """What a gateway was told about a tool.

    Raises:
        SettingsError: A key is unknown or has the wrong type.
    """
    if isinstance(said, ToolOverride):
        return said
    try:
        return ToolOverride(**said)
    except SettingsError as error:
        raise SettingsError(f"overrides of {tool}: {error}") from None


def check_tools(
    impls: Mapping[str, object], overrides: Mapping[str, ToolOverride], safe_mode: Mapping[str, object]
) -> None:
    """Refuse what a gateway was told that would protect nothing.

    Raises:
        TypeError: A tool is nothing that can be called.
        SettingsError: An override or a safe-mode answer is for a tool that the gateway has not.
    """
    for tool, impl in impls.items():
        if not callable(impl):
            raise TypeError(f"impls: {tool} wants a function, not {type(impl).__name__}")
    for option, named in (("overrides", overrides), ("safe_mode", safe_mode)):
        for tool in named:
            if tool not in impls:
                hint = did_you_mean(tool, impls) or f"there are {', '.join(impls) or 'none'}"
                raise SettingsError(f"{option}: {tool} is none of the gateway's tools; {hint}")


def may_be_reused(call: ToolCall) -> bool:
    """Whether an identical call may get this one's result. A polling tool is asked because it may answer anew."""
    return not is_polling(call)


def may_change_something(call: ToolCall) -> bool:
    """Whether results from before this call may be out of date after it. When in doubt, they are."""
    effect = changes_state(call)
    if effect is False and runs_code(call):
        return not (call.read_only or call.polling or call.mutates is False)
    return effect is not False


def is_side_effect(call: ToolCall) -> bool:
    """Whether doing this twice is worse than once."""
    return changes_state(call) is True and not call.idempotent


def may_be_repeated(call: ToolCall) -> bool:
    """Whether the gateway may send this again when it cannot know what became of the first."""
    return bool(call.idempotent) or not may_change_something(call)
