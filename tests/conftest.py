"""What every test shares."""

import pytest

_MINIMAL_WORDS = 3
_unexplained: list[str] = []


def _note_unexplained_skip(report) -> None:
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped:").strip()
    if reason == "unconditional skip" or len(reason.split()) < _MINIMAL_WORDS:
        _unexplained.append(f"{report.nodeid}: {reason or 'no reason'}")


def pytest_runtest_logreport(report):
    _note_unexplained_skip(report)


def pytest_collectreport(report):
    _note_unexplained_skip(report)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if _unexplained and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    if _unexplained:
        terminalreporter.section("skips without a reason", red=True)
        for skip in _unexplained:
            terminalreporter.line(skip)
