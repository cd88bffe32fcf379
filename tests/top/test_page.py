"""What is read of a page of metrics, and what is no such page."""

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from turnwatch.top import page as page_module
from turnwatch.top.page import PageError, PageReader

HOSTILE = ['a"b', "back\\slash", "two\nlines", "} 1", 'x="y",', "line\u2028separator", "\x1b[31mred", "[bold]", ""]


def test_only_what_is_shown_is_read_and_under_its_own_name():
    registry = CollectorRegistry()
    Counter("agent_spend_usd", "help", ["agent", "model"], registry=registry).labels("a", "m").inc(2.5)
    Gauge("agent_open_turns", "help", ["agent"], registry=registry).labels("a").set(3)
    Counter("http_requests", "not ours", registry=registry).inc()
    samples = PageReader().samples(generate_latest(registry).decode())
    assert {(sample.name, sample.value) for sample in samples} == {
        ("agent_spend_usd_total", 2.5),
        ("agent_open_turns", 3),
    }


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_any_label_value_is_read_as_it_was_the_first_time_and_after(name):
    registry = CollectorRegistry()
    gauge = Gauge("agent_open_turns", "help", ["agent"], registry=registry).labels(name)
    reader = PageReader()
    for value in (1, 2):
        gauge.set(value)
        (sample,) = reader.samples(generate_latest(registry).decode())
        assert sample.labels == {"agent": name}
        assert sample.value == value


def test_a_timestamp_after_the_value_does_no_harm():
    reader = PageReader()
    for value in (4, 5):
        (sample,) = reader.samples(f'agent_open_turns{{agent="a"}} {value} 1796024720000\n')
        assert sample.value == value


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf"])
def test_what_is_no_number_is_left_out(value):
    assert PageReader().samples(f'agent_open_turns{{agent="a"}} {value}\n') == []


@pytest.mark.parametrize(
    "text",
    ["", "<html><body>hello</body></html>", "go_goroutines 12\n", "agent_config_load_success 1\n", "\x00\xff\n"],
    ids=["empty", "html", "go", "another-agent", "binary"],
)
def test_a_page_without_turnwatchs_metrics_says_so(text):
    with pytest.raises(PageError, match="no turnwatch metrics"):
        PageReader().samples(text)


@pytest.mark.parametrize(
    "line", ["agent_open_turns", 'agent_open_turns{agent="a"} ', 'agent_open_turns{agent="a} 1', "agent_open_turns{} x"]
)
def test_a_line_that_is_none_makes_the_page_unusable(line):
    with pytest.raises(PageError, match="text format"):
        PageReader().samples(line + "\n")


def test_a_process_that_has_no_agents_yet_is_fine():
    assert PageReader().samples('turnwatch_build_info{version="1"} 1\n') == []


def test_ten_thousand_series_are_parsed_once_and_then_only_what_is_new(monkeypatch):
    parsed = []
    parse = page_module.text_string_to_metric_families
    monkeypatch.setattr(page_module, "text_string_to_metric_families", lambda line: parsed.append(line) or parse(line))

    def page(value, extra=0):
        tools = range(10_000 + extra)
        lines = (f'agent_turn_stale_calls_max{{agent="a{tool % 50}",tool="t{tool}"}} {value}' for tool in tools)
        return "\n".join(lines) + "\n"

    reader = PageReader()
    assert len(reader.samples(page(1))) == len(parsed) == 10_000
    parsed.clear()
    assert {sample.value for sample in reader.samples(page(2, extra=3))} == {2}
    assert len(parsed) == 3


def test_too_many_series_are_refused(monkeypatch):
    monkeypatch.setattr(page_module, "MAX_SERIES", 10)
    text = "\n".join(f'agent_open_turns{{agent="a{number}"}} 1' for number in range(11))
    with pytest.raises(PageError, match="more than 10 series"):
        PageReader().samples(text)
