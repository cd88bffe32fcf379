"""A test marked untraced runs without coverage, and the tests after it with it."""

import os
import subprocess
import sys
import threading

import pytest
from coverage import Coverage

IS_TRACED = "import sys; print(sys.gettrace() is not None)"


def of_a_thread():
    seen = []
    thread = threading.Thread(target=lambda: seen.append(sys.gettrace()))
    thread.start()
    thread.join()
    return seen[0]


def of_a_process():
    ran = subprocess.run([sys.executable, "-c", IS_TRACED], capture_output=True, text=True, check=True)
    return ran.stdout.strip() == "True"


@pytest.mark.untraced
def test_neither_its_threads_nor_its_processes_are_traced():
    assert (sys.gettrace(), of_a_thread(), of_a_process()) == (None, None, False)


def test_the_next_is_traced_again_with_all_its_threads_and_processes():
    if Coverage.current() is None or "COVERAGE_PROCESS_CONFIG" not in os.environ:
        pytest.skip("this run measures no coverage, so there is none to go on with")
    assert sys.gettrace() is not None
    assert of_a_thread() is not None
    assert of_a_process()
