"""``turnwatch top`` in a real terminal: tmux draws it, presses the keys, and looks at the screen."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from tests.ports import kept_port
from tests.top.servers import Agents, until

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not on this machine (make test installs it)"
)

COMMAND = [sys.executable, "-c", "from turnwatch.cli import main; main()", "top"]


class Terminal:
    """A tmux session with a shell in it, on a server of its own."""

    def __init__(self, folder, width=80, height=24):
        self._socket = folder / "tmux"
        environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TMUX")}
        shell = "env PS1='ready> ' sh"
        self._tmux(
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            "top",
            "-x",
            str(width),
            "-y",
            str(height),
            shell,
            env=environment,
        )
        until(lambda: "ready>" in self.screen(), self.screen)

    def _tmux(self, *arguments, env=None):
        command = ["tmux", "-S", str(self._socket), *arguments]
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True, timeout=20).stdout

    def run(self, *command):
        self.press("-l", shlex.join(command))
        self.press("Enter")

    def press(self, *keys):
        self._tmux("send-keys", "-t", "top", *keys)

    def screen(self, *options):
        return self._tmux("capture-pane", "-p", "-t", "top", *options)

    @property
    def is_drawn_on(self):
        """Whether the alternate screen is shown."""
        return self._state()[0] == "1"

    def has_shell_back(self):
        """Wait for the shell's own screen, with its cursor, and for its prompt."""
        until(
            lambda: self._state() == ["0", "1"] and self.screen().rstrip().endswith("ready>"),
            lambda: f"the shell: {self._state()}\n{self.screen()}",
        )

    def send(self, number):
        """Send a signal to what runs in the shell."""
        shell = self._tmux("display-message", "-p", "-t", "top", "#{pane_pid}").strip()
        (child,) = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        os.kill(int(child), number)

    def _state(self):
        return self._tmux("display-message", "-p", "-t", "top", "#{alternate_on} #{cursor_flag}").split()

    def resize(self, width, height):
        self._tmux("resize-window", "-t", "top", "-x", str(width), "-y", str(height))

    def shows(self, *texts, without=()):
        def holds():
            screen = self.screen()
            return all(text in screen for text in texts) and not any(text in screen for text in without) and screen

        return until(holds, lambda: f"{texts} without {without} on\n{self.screen()}")

    def shows_agents(self, *names):
        """Wait for these agents, in this order: what is new may be drawn at the top and not yet below."""

        def shown():
            lines = self.screen().splitlines()
            return [line.split()[1] for line in lines if line.startswith(("STUCK ", "busy ", "idle "))]

        until(lambda: shown() == list(names), lambda: f"{names} in this order on\n{self.screen()}")

    def drawn(self):
        """The screen, once all of it is drawn."""
        screens = [""]

        def stands_still():
            screens.append(self.screen())
            return screens[-1] == screens[-2] and screens[-1]

        return until(stands_still, lambda: f"the screen to stand still:\n{screens[-1]}")

    def keys_are_as_before(self):
        """Let the shell say that keys are echoed and come in lines, as they did."""
        self.press("-l", "echo $(stty -a | tr ' ;' '\\n\\n' | grep -x -e icanon -e echo)")
        self.press("Enter")
        self.shows("\nicanon echo")

    def close(self):
        self._tmux("kill-server")


@pytest.fixture
def terminal():
    # Not tmp_path: the name of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="top-") as folder:
        session = Terminal(Path(folder))
        yield session
        session.close()


@pytest.fixture
def at_work(agents):
    """A looping agent and a healthy one, at work until the test is over."""
    enough = threading.Event()

    def work():
        while not enough.wait(0.1):
            agents.loop("support-bot", "search_orders")
            agents.work("billing-bot", "get_invoice")

    thread = threading.Thread(target=work)
    thread.start()
    yield agents
    enough.set()
    thread.join()


def test_a_stuck_agent_is_seen_sorted_filtered_and_left_in_order(terminal, at_work):
    terminal.run(*COMMAND, "--interval", "200ms", at_work.url)
    screen = terminal.shows(
        "STUCK support-bot", "billing-bot", "search_orders", "1 stuck", "stale_repeat", "rates over", "q quit"
    )
    assert len(screen.splitlines()) == 24
    assert "q quit" in screen.splitlines()[-1]
    terminal.shows_agents("support-bot", "billing-bot")
    assert terminal.is_drawn_on

    terminal.press("N")
    terminal.shows("by AGENT")
    terminal.shows_agents("billing-bot", "support-bot")
    terminal.press("r")
    terminal.shows("by AGENT reversed")
    terminal.shows_agents("support-bot", "billing-bot")

    terminal.press("/")
    terminal.press("-l", "BILL")
    terminal.shows("filter: BILL_", "billing-bot", "get_invoice", without=["support-bot"])
    terminal.press("Enter")
    terminal.shows('filter "BILL"', "q quit")
    terminal.press("Escape")
    terminal.shows("support-bot", without=['filter "'])

    terminal.press("?")
    terminal.shows("turnwatch top: keys", "quit")
    terminal.press("q")
    terminal.shows("STATE")

    terminal.press("Right", "Right", "Right", "Right")
    terminal.shows("CALL/m")

    terminal.press("q")
    terminal.has_shell_back()
    terminal.press("-l", "echo code:$?")
    terminal.press("Enter")
    terminal.shows("code:0")
    terminal.keys_are_as_before()
    assert "STATE" not in terminal.screen()


def test_paused_it_stands_still_and_its_keys_still_work(terminal, at_work):
    terminal.run(*COMMAND, "--interval", "100ms", at_work.url)
    terminal.shows("STUCK support-bot")
    terminal.press("Space")
    terminal.shows("PAUSED")
    before = terminal.drawn()
    counted = at_work.watch.gauges  # the agents go on meanwhile
    until(lambda: any(value > 20 for name, _, value in counted() if name == "agent_turn_tool_calls_max"), "more calls")
    assert terminal.screen() == before
    terminal.press("N")
    terminal.shows("by AGENT", "PAUSED")
    terminal.press("Space")
    terminal.shows("by AGENT", without=["PAUSED"])


def test_it_follows_the_size_of_the_terminal(terminal, at_work):
    terminal.run(*COMMAND, "--interval", "200ms", at_work.url)
    terminal.shows("STUCK support-bot", without=["#STOP"])
    terminal.resize(140, 40)
    assert len(terminal.shows("STUCK support-bot", "#STOP").splitlines()) == 40
    terminal.resize(60, 20)
    assert len(terminal.shows("STUCK support-bot", without=["$/h C", "#STOP"]).splitlines()) == 20


@pytest.mark.parametrize("keys", ["C-c", "C-z"])
def test_interrupted_or_suspended_the_shell_has_its_terminal_back(terminal, at_work, keys):
    terminal.run(*COMMAND, "--interval", "200ms", at_work.url)
    terminal.shows("STUCK support-bot")
    terminal.press(keys)
    terminal.has_shell_back()
    terminal.keys_are_as_before()
    if keys == "C-z":
        terminal.run("fg")
        terminal.shows("STUCK support-bot", "q quit")
        terminal.press("q")
        terminal.has_shell_back()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found in Linux's /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["term", "hup"])
def test_told_to_end_it_leaves_the_terminal_in_order(terminal, at_work, number):
    terminal.run(*COMMAND, "--interval", "200ms", at_work.url)
    terminal.shows("STUCK support-bot")
    terminal.send(number)
    terminal.has_shell_back()
    terminal.keys_are_as_before()


def test_a_source_that_dies_is_named_and_one_that_comes_back_is_shown_again(terminal):
    with kept_port() as port:
        first = Agents(port)
        first.loop("support-bot", "search_orders", rounds=5)
        terminal.run(*COMMAND, "--interval", "200ms", first.url)
        terminal.shows("STUCK support-bot", "1 up")
        first.close()
        terminal.shows("1 DOWN", "gone  support-bot", "Connection refused")
        again = Agents(port)
        again.loop("support-bot", "search_orders", rounds=2)
        try:
            terminal.shows("support-bot", "1 up", "back:", without=["DOWN", "gone "])
        finally:
            again.close()


def test_a_slow_source_does_not_hold_up_the_keys(terminal, agents, pages):
    enough = threading.Event()
    pages.answer = lambda path: (enough.wait(60), (200, "", {}))[1]
    agents.loop("support-bot", "search_orders", rounds=5)
    terminal.run(*COMMAND, "--timeout", "60s", agents.url, f"{pages.url}/metrics")
    terminal.shows("STUCK support-bot")
    terminal.press("?")
    terminal.shows("turnwatch top: keys")
    terminal.press("q", "q")
    terminal.has_shell_back()
    enough.set()


def test_hostile_names_stay_in_their_cells(terminal, agents):
    for name in ("\x1b[2J\x1b[1;1Hgone", "[bold red]x[/]", "tab\tand\nline", "日本語エージェント"):
        agents.loop(name, "tool\x07", rounds=1)
    agents.loop("support-bot", "search_orders", rounds=5)
    terminal.run(*COMMAND, "--sort", "agent", agents.url)
    screen = terminal.shows("STUCK support-bot", "[bold red]x", "tab�and�lin", "日本語エ", "q quit")
    assert screen.startswith("turnwatch top")
    assert sum(line.startswith(("busy", "STUCK")) for line in screen.splitlines()) == 5


@pytest.mark.parametrize(("setting", "is_coloured"), [("NO_COLOR=1", False), ("TERM=tmux", True)])
def test_no_color_takes_the_colour_and_leaves_the_words(terminal, agents, setting, is_coloured):
    agents.loop("support-bot", "search_orders", rounds=5)
    terminal.run("env", setting, *COMMAND, agents.url)
    terminal.shows("STUCK support-bot", "1 stuck")
    assert ("\x1b[31m" in terminal.screen("-e") or "\x1b[1;31m" in terminal.screen("-e")) is is_coloured


def test_where_nothing_can_be_drawn_it_says_what_to_do(terminal, agents):
    terminal.run("env", "TERM=dumb", *COMMAND, agents.url)
    terminal.shows("turnwatch: this is no terminal to draw on; --once prints one table")


def test_nobody_there_is_one_line_and_no_screen(terminal):
    terminal.run(*COMMAND, "127.0.0.1:1")
    terminal.shows("turnwatch: http://127.0.0.1:1: Connection refused")
    terminal.has_shell_back()
