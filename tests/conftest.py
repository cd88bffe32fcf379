"""What every test shares."""

import contextlib
import os
import sys
import threading

import pytest

# The environments of the frameworks do not have hypothesis.
with contextlib.suppress(ImportError):
    from hypothesis import HealthCheck, settings

    # How long an example takes depends on what else the machine does. CI has a profile of hypothesis' own.
    settings.register_profile("turnwatch", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    if "CI" not in os.environ:
        settings.load_profile("turnwatch")

from turnwatch.guards import kill

_MINIMAL_WORDS = 3
_TRACED_PROCESSES = "COVERAGE_PROCESS_CONFIG"
_unexplained: list[str] = []


@pytest.fixture(autouse=True, scope="session")
def _flags_of_this_machine_do_not_count(tmp_path_factory):
    """Whoever kills a conversation c-1 on this machine stops no test's."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kill, "default_directory", lambda: tmp_path_factory.getbasetemp() / "kills")
        yield


def _note_unexplained_skip(report) -> None:
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped:").strip()
    if reason == "unconditional skip" or len(reason.split()) < _MINIMAL_WORDS:
        _unexplained.append(f"{report.nodeid}: {reason or 'no reason'}")


def _takes_long(item):
    return any(mark.name in ("untraced", "heavy") for mark in item.iter_markers())


def pytest_collection_modifyitems(items):
    # A process that comes to a long file last keeps the others waiting for it.
    items.sort(key=lambda item: not _takes_long(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    with _without_coverage() if _takes_long(item) else contextlib.nullcontext():
        return (yield)


@contextlib.contextmanager
def _without_coverage():
    """Trace neither this process nor those that it starts.

    pytest-cov's no_cover ends one tracer of two: xdist's workers have another, as processes that a traced one started.
    """
    of_thread, of_threads, of_processes = sys.gettrace(), threading.gettrace(), os.environ.pop(_TRACED_PROCESSES, None)
    sys.settrace(None)
    threading.settrace(None)
    try:
        yield
    finally:
        sys.settrace(of_thread)
        threading.settrace(of_threads)
        if of_processes is not None:
            os.environ[_TRACED_PROCESSES] = of_processes


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
