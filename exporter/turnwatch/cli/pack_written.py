"""What ``turnwatch pack render`` says about what it wrote."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

from turnwatch.core.printable import many, printable

_WHAT_FOR: Final = {
    "alert_rules": "rules for Prometheus, routes and a template for Alertmanager",
    "alert_rules/tests": "for turnwatch pack test",
    "dashboards": "for Grafana",
    "runbooks": "what alerts link to",
    "history": "docs/backfill.md says what to do with them",
}
_FORMS: Final = "docs/alerts.md says how to load them"


def said_of(files: Iterable[str], changed: Iterable[Path], gone: Collection[Path], out: Path) -> Iterator[str]:
    """The lines for people: what was written, where to, and which command comes next.

    Args:
        files: Paths below the folder.
        changed: Those of them that were not there before, or otherwise.
        gone: Files of an earlier render that were removed.
        out: The folder.
    """
    names = list(files)
    fresh = len(list(changed))
    news = f"{fresh:,} of them new or changed" if fresh else "all as they were"
    removed = f"; {many(len(gone), 'file')} of an earlier render removed" if gone else ""
    yield f"{printable(str(out.resolve()))}: {many(len(names), 'file')}, {news}{removed}"
    folders = Counter(str(Path(name).parent) for name in names)
    width = max(map(len, folders), default=0) + 1
    for folder, count in folders.items():
        yield f"  {f'{folder}/':{width}}  {many(count, 'file'):8}  {_WHAT_FOR.get(folder, _FORMS)}"
    pack = shlex.quote(printable(str(out)))
    yield f"next: turnwatch pack check {pack} && turnwatch pack test {pack}"
    yield f"then: turnwatch pack diff {pack} --prometheus-url URL --rules-folder FOLDER, and pack deploy with the same"
