"""``turnwatch scan --junit``: what a CI server shows of a scan, one test case a turn."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import IO, Final, final
from xml.etree import ElementTree

from turnwatch.cli.scan_table import failing_verdict
from turnwatch.core.turn import TurnState
from turnwatch.errors import TurnwatchError
from turnwatch.sources.scan import ScannedTurn, Unread

_SUITE: Final = "turnwatch scan"
# What XML 1.0 cannot hold, even escaped.
_NOT_IN_XML: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@final
class JUnitReport:
    """Writes a report in the format of JUnit, as Jenkins and GitLab read it. Keeps nothing in memory.

    Every turn is a test case: of the class of its agent, failed when the turn is stuck
    (or repeats calls whose results are not known). What could not be read is a
    test case with an error.

    Args:
        path: Where the report goes; it is written when everything is known.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._cases: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 written until the report is
        self._tests = self._failures = self._errors = 0
        self._seconds = 0.0

    def add(self, item: ScannedTurn | Unread) -> None:
        """Add what the scan found next."""
        self._tests += 1
        if isinstance(item, Unread):
            self._errors += 1
            case = _case("unread", str(item).removesuffix(f": {item.reason}"), 0.0)
            ElementTree.SubElement(case, "error", message=_in_xml(item.reason), type="unread")
        else:
            turn = item.state
            seconds = turn.elapsed_seconds
            self._seconds += seconds
            where = item.source if item.line is None else f"{item.source}:{item.line}"
            case = _case(turn.agent or "unknown", f"{where} {turn.turn_id}", seconds)
            self._failures += _add_failure(case, item)
        self._cases.write(ElementTree.tostring(case, encoding="utf-8") + b"\n")

    def write(self) -> None:
        """Write the report.

        Raises:
            TurnwatchError: The file cannot be written.
        """
        counts = {"tests": self._tests, "failures": self._failures, "errors": self._errors}
        about = {"name": _SUITE, **{key: str(value) for key, value in counts.items()}, "time": f"{self._seconds:.3f}"}
        suites = ElementTree.Element("testsuites", about)
        ElementTree.SubElement(suites, "testsuite", {**about, "skipped": "0"}).text = "\n"
        head, end = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True).split(b"\n</testsuite>")
        self._cases.seek(0)
        try:
            with self._path.open("wb") as file:
                file.write(head + b"\n")
                shutil.copyfileobj(self._cases, file)
                file.write(b"</testsuite>" + end + b"\n")
        except OSError as error:
            raise TurnwatchError(f"{self._path}: the report cannot be written: {error.strerror or error}") from error
        finally:
            self._cases.close()


def _case(class_name: str, name: str, seconds: float) -> ElementTree.Element:
    about = {"classname": _in_xml(class_name), "name": _in_xml(name), "time": f"{seconds:.3f}"}
    return ElementTree.Element("testcase", about)


def _add_failure(case: ElementTree.Element, item: ScannedTurn) -> bool:
    turn: TurnState = item.state
    failing = failing_verdict(turn)
    if failing is None:
        return False
    verdict = turn.verdicts[failing]
    line = item.loop_lines[failing] if failing < len(item.loop_lines) else None
    message = (
        f"{verdict.kind} of {verdict.tool} from call {verdict.first_call}, detected at call {verdict.detected_call}"
    )
    failure = ElementTree.SubElement(case, "failure", message=_in_xml(message), type=verdict.kind)
    failure.text = _in_xml(
        "\n".join(
            [
                f"kind: {verdict.kind}",
                f"tool: {verdict.tool}",
                f"first call: {verdict.first_call}" + ("" if line is None else f" (line {line})"),
                f"detected at call: {verdict.detected_call}",
                f"tool calls: {turn.tool_calls}",
                f"wasted tool calls: {turn.wasted_tool_calls}",
                f"wasted dollars: {turn.wasted_usd:.4f}",
                f"conversation: {turn.conversation_id or ''}",
                verdict.reason,
            ]
        )
    )
    return True


def _in_xml(text: str) -> str:
    return _NOT_IN_XML.sub("�", text)
