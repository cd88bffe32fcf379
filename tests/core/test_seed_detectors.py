import threading

import pytest

from turnwatch.core.seed_detectors import LoopDetector
from turnwatch.errors import LoopDetected, SelfLoopDetected, TurnStopped


def test_the_fourth_of_the_last_ten_raises():
    detector = LoopDetector(window=10, threshold=4)
    for number in range(3):
        detector.observe("search", {"q": "x"})
        detector.observe("read", {"n": number})
    with pytest.raises(LoopDetected) as raised:
        detector.observe("search", {"q": "x"})
    assert raised.value.stop_reason == "loop_detected"
    assert isinstance(raised.value, TurnStopped)
    assert LoopDetected is SelfLoopDetected


def test_what_left_the_window_does_not_count():
    detector = LoopDetector(window=4, threshold=3)
    for number in range(12):
        detector.observe("search", {"q": "x"})
        detector.observe("read", {"n": number})
        detector.observe("read", {"m": number})


def test_the_second_of_a_conversation_is_told():
    detector = LoopDetector(window=None, threshold=2)
    assert detector.record("search", {"q": "x"}) is False
    for number in range(500):
        assert detector.record("read", {"n": number}) is False
    assert detector.record("search", {"q": "x"}) is True


def test_the_first_call_is_never_a_repeat():
    assert LoopDetector(window=None, threshold=1).record("read", {}) is False


def test_the_order_of_keys_does_not_matter_and_numbers_do():
    detector = LoopDetector(window=None, threshold=2)
    assert not detector.record("f", {"a": 1, "b": 2})
    assert detector.record("f", {"b": 2, "a": 1.0})
    assert not detector.record("f", {"a": 1, "b": 3})


def test_calls_whose_arguments_are_not_known_are_not_identical():
    detector = LoopDetector(window=None, threshold=2)
    assert [detector.record("f") for _ in range(5)] == [False] * 5


def test_conversations_do_not_mix_and_can_be_forgotten():
    detector = LoopDetector(window=None, threshold=2)
    assert not detector.record("f", {}, conversation_id="a")
    assert not detector.record("f", {}, conversation_id="b")
    detector.forget("a")
    assert not detector.record("f", {}, conversation_id="a")
    assert detector.record("f", {}, conversation_id="b")


def test_a_tool_can_have_a_threshold_of_its_own():
    detector = LoopDetector(window=10, threshold=2, tool_thresholds={"get_job": 5})
    for _ in range(4):
        detector.observe("get_job", {"id": 1})
    with pytest.raises(LoopDetected):
        detector.observe("get_job", {"id": 1})


def test_the_advised_wait_doubles_over_the_wider_window():
    detector = LoopDetector(window=2, threshold=2, backoff_window=20, backoff_seconds=0.5, max_backoff_seconds=3.0)
    waits = []
    for number in range(5):
        waits.append(detector.observe("get_job", {"id": 1}))
        detector.observe("read", {"n": number})
    assert waits == [0.0, 0.5, 1.0, 2.0, 3.0]


def test_arguments_are_not_in_the_message():
    detector = LoopDetector(window=10, threshold=2)
    detector.observe("log_in", {"password": "hunter2"})
    with pytest.raises(LoopDetected, match="log_in was called 2 times with the same arguments") as raised:
        detector.observe("log_in", {"password": "hunter2"})
    assert "hunter2" not in repr(raised.value)


def test_arguments_that_do_not_show_what_they_hold_are_not_the_same():
    detector = LoopDetector(window=10, threshold=2)
    assert [detector.record("find", {"query": object()}) for _ in range(4)] == [False] * 4


@pytest.mark.parametrize(
    "wrong", [{"window": 1}, {"window": 3, "threshold": 4}, {"window": 4, "tool_thresholds": {"a": 5}}]
)
def test_a_loop_fits_into_its_window(wrong):
    with pytest.raises(ValueError, match="cannot hold"):
        LoopDetector(**{"threshold": 2} | wrong)


@pytest.mark.parametrize("wrong", [{"window": 0}, {"threshold": 0}, {"tool_thresholds": {"a": 0}}])
def test_windows_and_thresholds_are_at_least_one(wrong):
    with pytest.raises(ValueError, match="at least 1"):
        LoopDetector(**wrong)


def test_no_call_is_lost_between_threads():
    detector = LoopDetector(window=None, threshold=2)
    told = []

    def ask():
        for number in range(200):
            told.append(detector.record("f", {"n": number}))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told.count(False) == 200
