"""Readings at many times as one OpenMetrics text."""

import io
import re
import subprocess

import pytest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from turnwatch.core.watch import Watch
from turnwatch.metrics import history as history_module
from turnwatch.metrics.history import History
from turnwatch.metrics.prometheus import StoreCollector
from turnwatch.metrics.store import Store

START = 1_780_000_000


def written(history):
    out = io.BytesIO()
    history.write(out)
    history.close()
    return out.getvalue().decode()


def counter(**values):
    family = CounterMetricFamily("calls_total", "Calls.", labels=["tool"])
    for tool, value in values.items():
        family.add_metric([tool], value)
    return family


def test_samples_stand_by_series_then_by_time():
    history = History({"job": "bots"})
    history.add(START, [counter(a=1), GaugeMetricFamily("open", "Open.", value=2)])
    history.add(START + 15, [counter(a=2, b=0.25), GaugeMetricFamily("open", "Open.", value=0)])
    history.add_again(START + 30.5)
    assert (history.samples, history.series) == (8, 3)
    assert written(history).splitlines() == [
        "# HELP calls Calls.",
        "# TYPE calls counter",
        f'calls_total{{job="bots",tool="a"}} 1 {START}',
        f'calls_total{{job="bots",tool="a"}} 2 {START + 15}',
        f'calls_total{{job="bots",tool="a"}} 2 {START + 30}.5',
        f'calls_total{{job="bots",tool="b"}} 0.25 {START + 15}',
        f'calls_total{{job="bots",tool="b"}} 0.25 {START + 30}.5',
        "# HELP open Open.",
        "# TYPE open gauge",
        f'open{{job="bots"}} 2 {START}',
        f'open{{job="bots"}} 0 {START + 15}',
        f'open{{job="bots"}} 0 {START + 30}.5',
        "# EOF",
    ]


def test_what_waits_in_the_temporary_file_is_written_in_the_same_order(monkeypatch):
    def text():
        history = History({})
        for step in range(50):
            history.add(START + 15 * step, [counter(a=step, b=2 * step)])
        return written(history)

    in_memory = text()
    monkeypatch.setattr(history_module, "_BUFFERED_BYTES", 100)
    assert text() == in_memory


def test_promtool_takes_whatever_labels_say(tmp_path):
    history = History({"job": 'a "job"\\ of\nmine'})
    history.add(START, [counter(**{'quoted " name': 1, "back\\slash": 2, "new\nline": 3, "ünï": 4})])
    path = tmp_path / "history.om"
    path.write_text(written(history), encoding="utf-8")
    answer = subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(path), str(tmp_path / "blocks")],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (3.0, "3"), (0.1, "0.1"), (1e-7, "1e-07"), (-2.5, "-2.5"), (1e300, "1e+300"), (float("inf"), "+Inf")],
    ids=str,
)
def test_a_value_is_written_as_go_reads_it(value, text):
    history = History({})
    history.add(START, [GaugeMetricFamily("open", "Open.", value=value)])
    assert f"open {text} {START}\n" in written(history)


@pytest.fixture
def turns_text():
    """Two turns read every 15 s, and a clock that is not this machine's."""
    now = [float(START)]
    store = Store(clock=lambda: now[0])
    watch = Watch(meter=store, clock=lambda: now[0])
    collector = StoreCollector(store, lambda: watch)
    history = History({})
    for agent in ("a", "b"):
        turn = watch.open_turn(agent)
        turn.record("search", "0" * 16)
        turn.begin_model()
        now[0] += 10
        turn.end()
        history.add(now[0] + 5, collector.collect())
        now[0] += 20
    history.add(now[0], collector.collect())
    return written(history)


def test_series_of_one_histogram_stand_together_and_each_series_goes_forward_in_time(turns_text):
    latest, groups, family = {}, [], ""
    for line in turns_text.splitlines():
        if line.startswith("# TYPE"):
            family = line.split()[2]
        if line.startswith("#"):
            continue
        series, _, at = line.rsplit(" ", 2)
        assert float(at) > latest.get(series, 0)
        latest[series] = float(at)
        group = (family, re.sub('(,?le="[^"]*")', "", series.partition("{")[2]))
        if groups[-1:] != [group]:
            groups.append(group)
    assert len(groups) == len(set(groups))
    assert 'agent_iterations_bucket{agent="b",stop_reason="final_answer",le="1.0"} 1' in turns_text


def test_series_were_created_by_the_clock_of_the_readings(turns_text):
    created = re.findall(r'^agent_turns_created\{agent="(\w)".*\} (\d+) ', turns_text, re.MULTILINE)
    assert set(created) == {("a", str(START + 10)), ("b", str(START + 40))}
