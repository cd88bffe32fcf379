from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnwatch as tw
from turnwatch.core.watch import Watch

ITEMS = st.sampled_from(["tea", "gin", "oil"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), ITEMS),
        st.tuples(st.just("write"), ITEMS, st.integers(0, 9)),
        st.tuples(st.just("bash"), ITEMS, st.integers(0, 9)),
        st.tuples(st.just("frobnicate"), ITEMS, st.integers(0, 9)),
        st.tuples(st.just("wait"), st.sampled_from([1.0, 29.0, 31.0, 61.0])),
        st.tuples(st.just("turn"), st.sampled_from(["c-1", "c-2"])),
    ),
    max_size=40,
)


@pytest.mark.untraced
@settings(max_examples=150)
@given(STEPS, st.booleans())
def test_whatever_comes_between_a_read_gives_the_value_of_now(steps, declared):
    stock = {"tea": 0, "gin": 0, "oil": 0}
    now = [1_000.0]
    watch = Watch(tw.Settings(kill_dir="/nonexistent"), clock=lambda: now[0])
    gateway = tw.ToolGateway(
        impls={
            "stock.read": lambda item: {"count": stock[item]},
            "stock.write": lambda item, count: stock.__setitem__(item, count),
            "bash": lambda command, item, count: stock.__setitem__(item, count),
            "frobnicate": lambda item, count: stock.__setitem__(item, count),
        },
        watch=watch,
        overrides={"stock.read": {"read_only": True}} if declared else None,
    )
    turn = tw.Turn("a", "c-1", watch=watch).open()
    for step in steps:
        match step:
            case ("read", item):
                assert gateway.call("stock.read", {"item": item}, turn=turn) == {"count": stock[item]}
            case ("bash", item, count):
                gateway.call("bash", {"command": "make", "item": item, "count": count}, turn=turn)
            case ("wait", seconds):
                now[0] += seconds
            case ("turn", conversation):
                turn = tw.Turn("a", conversation, watch=watch).open()
            case (tool, item, count):
                name = "stock.write" if tool == "write" else tool
                gateway.call(name, {"item": item, "count": count}, turn=turn)


def test_readers_and_writers_side_by_side_never_see_what_was_written_over(watch):
    stock = {"count": 0}
    gateway = tw.ToolGateway(
        impls={"read": lambda: stock["count"], "write": lambda count: stock.__setitem__("count", count)}, watch=watch
    )
    turn = tw.Turn("a", watch=watch).open()
    returned = [0]
    old: list[tuple[int, int]] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            written = returned[0]  # a write that has returned before the read is asked for
            seen = gateway.call("read", turn=turn)
            if seen < written:
                old.append((seen, written))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for count in range(1, 200):
        gateway.call("write", {"count": count}, turn=turn)
        returned[0] = count
    done.set()
    for reader in readers:
        reader.join()
    assert old == []
