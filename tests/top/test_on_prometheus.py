"""A real Prometheus that scrapes a real exporter says the same as the exporter itself."""

import pytest
from tests.top.servers import Agents, until

from turnwatch.demo.servers import running_prometheus
from turnwatch.settings import Settings
from turnwatch.top.address import address_of
from turnwatch.top.board import board_of
from turnwatch.top.journal import Journal
from turnwatch.top.marks import Marks
from turnwatch.top.polling import SourceState, look
from turnwatch.top.prometheus import whole_query
from turnwatch.top.sources import source_of

CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - {{job_name: agents, static_configs: [{{targets: ["127.0.0.1:{port}"]}}]}}
"""


@pytest.fixture
def prometheus(agents, tmp_path):
    (tmp_path / "prometheus.yml").write_text(CONFIG.format(port=agents.port))
    with running_prometheus(tmp_path) as url:
        yield url


class Watched:
    """What top shows of one source."""

    def __init__(self, url, **options):
        self.source = source_of(address_of(url, {}), window_seconds=15, timeout_seconds=10, **options)
        self.state = SourceState(url)
        self.journal = Journal()

    def look(self):
        reading, error = look(self.source)
        at = 1_000.0 + self.state.looks
        self.state = SourceState(
            self.state.address, self.source.kind, reading or self.state.reading, error, self.state.looks + 1, at
        )
        self.journal.note([self.state])
        return board_of([self.state], self.journal, Marks(Settings()), at)

    def agent(self, name):
        return next((row for row in self.look().agents if row.agent == name), None)


def test_levels_rates_verdicts_and_spend_arrive(agents, prometheus):
    agents.work("support-bot", "search_orders")
    watched = Watched(prometheus)
    until(lambda: watched.agent("support-bot"), "the first scrape")
    assert watched.source.kind == "prometheus"
    assert watched.look().up == 1

    agents.loop("support-bot", "search_orders", rounds=5)
    row = until(
        lambda: (row := watched.agent("support-bot")) and row.stale_calls == 5 and row.usd_per_hour and row,
        "the loop to be scraped",
    )
    assert (row.state, row.worst_tool, row.stuck_verdicts, row.open_turns) == ("STUCK", "search_orders", 1, 1)
    assert row.calls_per_minute > 0
    assert row.repeats_per_minute > 0
    assert row.tokens_per_minute > 0
    expected = Watched(agents.url).agent("support-bot")
    assert row.iterations == expected.iterations
    assert row.turn_usd == pytest.approx(expected.turn_usd)
    assert row.spent_usd == pytest.approx(expected.turn_usd), "what was spent since the first look, and no more"
    once = Watched(prometheus, since_exporters_began=True).agent("support-bot")
    assert (once.stuck_verdicts, once.warn_verdicts) == (1, 1)
    assert once.spent_usd > row.spent_usd, "what was spent before that look as well"
    assert {(event.sort, event.text) for event in watched.journal.events if event.agent} == {
        ("warn", "stale_repeat"),
        ("stuck", "stale_repeat"),
    }


def test_an_exporter_that_goes_down_and_comes_back_restarted(agents, prometheus):
    agents.loop("a", "search", rounds=5)
    watched = Watched(prometheus)
    until(lambda: watched.agent("a"), "the first scrape")
    port = agents.port
    agents.close()
    board = until(lambda: (board := watched.look()).down and board, "the target to be down")
    assert board.up == 0
    assert {row.state for row in board.agents} == {"gone"}
    again = Agents(port)
    try:
        again.loop("a", "search", rounds=2)
        row = until(lambda: (row := watched.agent("a")) and row.spent_usd and row, "the target to be back")
        assert row.open_turns == 1
        assert row.spent_usd == pytest.approx(row.turn_usd), "what the new process spent"
    finally:
        again.close()
        agents.close = lambda: None  # closed above, and the fixture closes it again


def test_another_teams_agents_are_left_out(agents, prometheus):
    agents.loop("a", "search")
    until(lambda: Watched(prometheus).agent("a"), "the first scrape")
    assert Watched(prometheus, selector='job="agents"').agent("a") is not None
    assert "no turnwatch metrics" in look(Watched(prometheus, selector='job="others"').source)[1]
    assert "parse error" in look(Watched(prometheus, selector="job=").source)[1]
    assert "--selector wants matchers" in look(Watched(prometheus, selector="job=x").source)[1]


def test_every_part_of_the_query_is_sound():
    from turnwatch.pack.queries import faults_of

    for selector in ("", 'job="agents"'):
        for is_first in (True, False):
            assert faults_of(whole_query(selector, 60, is_first=is_first)) == []
