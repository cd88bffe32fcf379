"""What Haystack's spans tell of a model call inside the replies that they carry, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from turnwatch.sources.spans.values import json_of

_OUTPUTS: Final = ("haystack.agent.step.llm.output", "haystack.component.output")


def reply_meta(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The first reply's ``meta``: model, finish reason and usage. Empty where there is none."""
    for name in _OUTPUTS:
        output = json_of(attributes.get(name))
        replies = output.get("replies") if isinstance(output, dict) else None
        for reply in replies if isinstance(replies, list) else ():
            meta = reply.get("meta") if isinstance(reply, dict) else None
            if isinstance(meta, dict) and meta:
                return meta
    return {}
