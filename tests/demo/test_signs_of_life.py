"""`.ci/patiently`: what `make demo` shows while it installs, on a terminal and in a log."""

import os
import pty
import subprocess

from terminals import read_to_end, read_until

from turnwatch.pack.home import pack_home

COMMAND = [".ci/patiently", "installing things", "sh", "-c", "read line; echo $line; exit 3"]


def test_in_a_log_it_is_plain_lines_and_the_exit_code_is_the_commands():
    ran = subprocess.run(
        COMMAND, cwd=pack_home(), input="done\n", capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "done\n", "installing things\n")


def test_on_a_terminal_something_turns_and_is_wiped_away():
    terminal, its_end = pty.openpty()
    with subprocess.Popen(
        COMMAND, cwd=pack_home(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=its_end
    ) as ran:
        os.close(its_end)
        shown = read_until(terminal, b"\r/ ")
        ran.stdin.write(b"done\n")
        ran.stdin.close()
        shown += read_to_end(terminal)
    os.close(terminal)
    assert ran.returncode == 3
    assert shown.startswith(b"installing things\r\n\r|")
    assert shown.endswith(b"\r\x1b[K")
