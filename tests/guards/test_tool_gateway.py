from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import threading
import traceback

import pytest

import turnwatch as tw
from turnwatch.settings import Circuit, Retries, Tools
from turnwatch.settings_file import load_settings


class Shop:
    """A tool set with state, which notes what really ran."""

    def __init__(self) -> None:
        self.stock = {"tea": 1}
        self.ran: list[str] = []

    def read(self, item: str) -> dict[str, int]:
        self.ran.append("read")
        return {"count": self.stock[item]}

    def write(self, item: str, count: int) -> str:
        self.ran.append("write")
        self.stock[item] = count
        return "ok"

    def gateway(self, watch, **given) -> tw.ToolGateway:
        impls = {"stock.read": self.read, "stock.write": self.write, "stock": self.read}
        impls |= {"bash": self.bash, "acme": self.bash}
        return tw.ToolGateway(impls=impls, watch=watch, **given)

    def bash(self, command: str) -> str:
        self.ran.append(command)
        self.stock["tea"] += 1
        return "done"


@pytest.fixture
def shop() -> Shop:
    return Shop()


# Dedupe and cache


def test_an_identical_call_gets_the_first_results_content_again(watch, shop):
    gateway = shop.gateway(watch, agent="a")
    first = gateway.call("stock.read", {"item": "tea"})
    first["count"] = 99
    again = gateway.call("stock.read", {"item": "tea"})
    assert again == {"count": 1}
    assert again is not gateway.call("stock.read", {"item": "tea"})
    assert shop.ran == ["read"]
    assert watch.value("agent_tool_calls_total", "a", "stock.read", "ok") == 1
    assert watch.value("agent_tool_calls_total", "a", "stock.read", "cached") == 2
    assert watch.value("agent_duplicate_tool_calls_total", "a", "stock.read") == 1


@pytest.mark.parametrize("declared", [{}, {"stock.read": {"read_only": True}}, {"stock.write": {"side_effect": True}}])
def test_read_write_read_never_returns_the_old_value(watch, shop, declared):
    gateway = shop.gateway(watch, overrides=declared)
    for count in range(2, 6):
        gateway.call("stock.write", {"item": "tea", "count": count})
        assert gateway.call("stock.read", {"item": "tea"}) == {"count": count}
        assert gateway.call("stock.read", {"item": "tea"}) == {"count": count}
    assert shop.ran.count("read") == 4


def test_a_write_of_another_turn_invalidates_too(watch, shop):
    gateway = shop.gateway(watch, overrides={"stock.read": {"read_only": True}})
    with tw.turn("a", "c-1", watch=watch):
        gateway.call("stock.read", {"item": "tea"})
        with tw.turn("b", "c-2", watch=watch):
            gateway.call("stock.write", {"item": "tea", "count": 5})
        assert gateway.call("stock.read", {"item": "tea"}) == {"count": 5}


def test_a_failed_write_invalidates_too(watch, shop):
    def write(item: str) -> None:
        shop.stock[item] = 7
        raise OSError("disk full")

    gateway = tw.ToolGateway(impls={"read": shop.read, "write": write}, watch=watch)
    gateway.call("read", {"item": "tea"})
    with pytest.raises(OSError, match="disk full"):
        gateway.call("write", {"item": "tea"})
    assert gateway.call("read", {"item": "tea"}) == {"count": 7}


@pytest.mark.parametrize("tool", ["bash", "acme"])
@pytest.mark.parametrize("command", ["python restock.py", "make fill", "cat notes", "restock"])
def test_a_command_whose_effect_is_not_known_invalidates(watch, shop, tool, command):
    gateway = shop.gateway(watch)
    gateway.call("stock.read", {"item": "tea"})
    gateway.call(tool, {"command": command})
    assert gateway.call("stock.read", {"item": "tea"}) == {"count": 2}


def test_a_read_that_ran_beside_a_write_is_not_handed_out_after_it(watch):
    value, reading, written = [1], threading.Event(), threading.Event()

    def read() -> int:
        seen = value[0]
        if not written.is_set():
            reading.set()
            written.wait(10)
        return seen

    gateway = tw.ToolGateway(impls={"read": read, "write": lambda: value.__setitem__(0, 2)}, watch=watch)
    early: list[int] = []
    thread = threading.Thread(target=lambda: early.append(gateway.call("read")))
    thread.start()
    reading.wait(10)
    gateway.call("write")
    written.set()
    thread.join()
    assert early == [1]
    assert gateway.call("read") == 2


def test_a_state_changing_call_is_deduplicated_as_well(watch):
    sent = []
    gateway = tw.ToolGateway(impls={"send_email": lambda to: sent.append(to) or "sent"}, watch=watch)
    assert [gateway.call("send_email", {"to": "x"}) for _ in range(3)] == ["sent"] * 3
    assert sent == ["x"]


def test_the_dedupe_window_ends(watch, clock, shop):
    gateway = shop.gateway(watch)
    gateway.call("stock.read", {"item": "tea"})
    clock.now += 59
    gateway.call("stock.read", {"item": "tea"})
    assert shop.ran == ["read"]
    clock.now += 2
    gateway.call("stock.read", {"item": "tea"})
    assert shop.ran == ["read", "read"]


def test_a_declared_read_has_a_lifetime_of_its_own(watch, clock, shop):
    overrides = {"stock.read": {"read_only": True}, "stock": {"read_only": True, "cache_ttl_s": 600}}
    gateway = shop.gateway(watch, overrides=overrides)
    for tool in ("stock.read", "stock"):
        gateway.call(tool, {"item": "tea"})
    clock.now += 31
    gateway.call("stock.read", {"item": "tea"})
    assert len(shop.ran) == 3
    clock.now += 300
    gateway.call("stock", {"item": "tea"})
    assert len(shop.ran) == 3


def test_without_a_window_every_call_runs(make_watch, shop):
    gateway = shop.gateway(make_watch(tools=Tools(dedupe_window_s=0)))
    for _ in range(3):
        gateway.call("stock.read", {"item": "tea"})
    assert len(shop.ran) == 3


@pytest.mark.parametrize(("tool", "declared"), [("poll_job", {}), ("job", {"job": {"polling": True}})])
def test_a_poll_always_runs(watch, tool, declared):
    answers = iter(range(100))
    gateway = tw.ToolGateway(impls={tool: lambda: next(answers)}, watch=watch, overrides=declared)
    assert [gateway.call(tool) for _ in range(5)] == [0, 1, 2, 3, 4]


def test_conversations_never_share_results(watch):
    whose = contextvars.ContextVar("whose")
    gateway = tw.ToolGateway(
        impls={"get_profile": lambda: whose.get()}, watch=watch, overrides={"get_profile": {"read_only": True}}
    )
    for user in ("ann", "bob"):
        whose.set(user)
        with tw.turn("a", f"c-{user}", watch=watch):
            assert gateway.call("get_profile") == user


def test_a_new_turn_sends_again_and_a_declared_read_is_kept_for_the_conversation(watch):
    ran: list[str] = []
    gateway = tw.ToolGateway(
        impls={"send_email": lambda: ran.append("send"), "read_file": lambda: ran.append("read")},
        watch=watch,
        overrides={"read_file": {"read_only": True}},
    )
    for _ in range(2):
        with tw.turn("a", "c-1", watch=watch):
            gateway.call("send_email")
    for _ in range(2):
        with tw.turn("a", "c-1", watch=watch):
            gateway.call("read_file")
    assert ran == ["send", "send", "read"]


@pytest.mark.parametrize(
    "pair", [({"call_id": 1}, {"call_id": 2}), ({"v": None}, {"v": float("nan")}), ({"v": 1}, {"v": True})]
)
def test_arguments_that_only_count_as_the_same_do_not_share_results(watch, pair):
    gateway = tw.ToolGateway(impls={"get": lambda **args: repr(args)}, watch=watch)
    for args in pair:
        assert gateway.call("get", args) == repr(args)


def test_keys_that_the_user_calls_volatile_are_left_out(watch):
    ran = []
    gateway = tw.ToolGateway(
        impls={"get": lambda **args: ran.append(args)}, watch=watch, overrides={"get": {"volatile_keys": {"nonce"}}}
    )
    for nonce in range(3):
        gateway.call("get", {"id": 1, "nonce": nonce})
    assert len(ran) == 1


def test_arguments_and_results_that_cannot_be_had_twice_run_again(watch):
    gateway = tw.ToolGateway(
        impls={
            "get_stream": lambda n: iter([1, 2]),
            "get_lock": lambda n: threading.Lock(),
            "get_of": lambda n: object(),
        },
        watch=watch,
    )
    assert [list(gateway.call("get_stream", {"n": 1})) for _ in range(2)] == [[1, 2], [1, 2]]
    assert gateway.call("get_lock", {"n": 1}) is not gateway.call("get_lock", {"n": 1})
    assert gateway.call("get_of", {"n": object()}) is not gateway.call("get_of", {"n": object()})


def test_errors_are_not_kept(watch):
    ran = []
    gateway = tw.ToolGateway(impls={"get": lambda: ran.append(1) or 1 / 0}, watch=watch)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            gateway.call("get")
    assert len(ran) == 2


# Counting, limits, loops


def test_calls_count_in_the_current_turn_and_else_in_one_of_its_own(watch, shop):
    gateway = shop.gateway(watch, agent="own", limits=tw.Limits(max_tool_calls=3))
    with tw.turn("a", watch=watch) as turn:
        gateway.call("stock.read", {"item": "tea"})
    assert turn.tool_calls == 1
    with gateway:
        for _ in range(2):
            gateway.call("stock.read", {"item": "tea"})
        assert gateway.turn.tool_calls == 2
    assert watch.value("agent_turns_total", "own", "final_answer") == 1


def test_the_gateways_limits_hold_for_each_turn(watch, shop):
    gateway = shop.gateway(watch, limits=tw.Limits(max_tool_calls=2))
    for _ in range(2):
        with tw.turn("a", watch=watch) as turn:
            gateway.call("stock.read", {"item": "tea"})
            gateway.call("stock.read", {"item": "tea"})
            with pytest.raises(tw.ToolSpamDetected):
                gateway.call("stock.read", {"item": "tea"})
        assert (turn.tool_calls, turn.stop_reason) == (3, "max_tool_calls")


def test_a_turn_can_be_named_where_threads_do_not_inherit_it(watch, shop):
    gateway = shop.gateway(watch)
    with tw.turn("a", watch=watch) as turn:
        thread = threading.Thread(target=gateway.call, args=("stock.read", {"item": "tea"}), kwargs={"turn": turn})
        thread.start()
        thread.join()
    assert turn.tool_calls == 1


def test_a_loop_through_the_gateway_is_stopped_by_call_four_although_it_ran_once(watch, shop):
    gateway = shop.gateway(watch, on_loop="stop")
    for _ in range(3):
        gateway.call("stock.read", {"item": "tea"})
    with pytest.raises(tw.LoopDetected):
        gateway.call("stock.read", {"item": "tea"})
    assert shop.ran == ["read"]


def test_a_tool_may_have_a_cap_of_its_own(watch, shop):
    gateway = shop.gateway(watch, overrides={"stock.write": {"max_calls": 1}})
    gateway.call("stock.write", {"item": "tea", "count": 1})
    with pytest.raises(tw.ToolBudgetExceeded, match=r"stock\.write"):
        gateway.call("stock.write", {"item": "tea", "count": 2})


def test_an_unknown_tool_is_counted_and_named(watch, shop):
    gateway = shop.gateway(watch, agent="a")
    with pytest.raises(tw.UnknownToolError, match=r"'stock\.raed'; there are stock\.read"):
        gateway.call("stock.raed", {"item": "tea"})
    assert watch.value("agent_tool_calls_total", "a", "stock.raed", "error") == 1


def test_a_name_that_is_no_text_is_an_unknown_tool(watch, shop):
    gateway = shop.gateway(watch, agent="a")
    with pytest.raises(tw.UnknownToolError, match="'7'"):
        gateway.call(7, {"item": "tea"})
    assert watch.value("agent_tool_calls_total", "a", "7", "error") == 1


def test_asking_for_tools_that_do_not_exist_is_a_loop(watch, shop):
    gateway = shop.gateway(watch, on_loop="stop")
    for number in range(4):
        with pytest.raises(tw.UnknownToolError):
            gateway.call(f"tool_{number}")
    with pytest.raises(tw.LoopDetected):
        gateway.call("tool_9")


def test_an_exception_of_a_tool_passes_unchanged_with_its_traceback(watch):
    class Mine(Exception):
        pass

    error = Mine("mine")

    def inner() -> None:
        raise error

    gateway = tw.ToolGateway(impls={"get": inner}, watch=watch)
    with pytest.raises(Mine) as raised:
        gateway.call("get")
    assert raised.value is error
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    assert traceback.extract_tb(raised.value.__traceback__)[-1].name == "inner"


def test_an_override_with_an_unknown_key_is_refused(watch):
    with pytest.raises(tw.SettingsError, match="reed_only"):
        tw.ToolGateway(impls={}, watch=watch, overrides={"get": {"reed_only": True}})


# Retries


class Answer:
    def __init__(self, status: int, **headers: str) -> None:
        self.status_code = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class StatusError(Exception):
    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(f"status {status}")
        self.response = Answer(status, **headers)


def failing_gateway(watch, failures: list[object], tool: str = "search.read", **given):
    """A gateway to a tool that fails so often, the list of its waits, and the count of its runs."""
    waits: list[float] = []
    ran: list[int] = []

    def run(**_: object) -> object:
        ran.append(1)
        failure = failures.pop(0) if failures else "fine"
        if isinstance(failure, BaseException):
            raise failure
        return failure

    return tw.ToolGateway(impls={tool: run}, watch=watch, sleep=waits.append, **given), waits, ran


@pytest.mark.parametrize(
    "failure", [TimeoutError(), ConnectionResetError(), StatusError(503), StatusError(429), Answer(502)]
)
def test_a_passing_fault_is_retried_within_one_call(watch, failure):
    gateway, waits, ran = failing_gateway(watch, [failure], agent="a")
    assert gateway.call("search.read", {"q": "x"}) == "fine"
    assert (len(ran), len(waits)) == (2, 1)
    assert 0 <= waits[0] <= 0.5
    assert watch.value("agent_tool_calls_total", "a", "search.read", "ok") == 1


@pytest.mark.parametrize("failure", [ValueError("no"), StatusError(404), KeyError("x")])
def test_other_faults_are_not(watch, failure):
    gateway, waits, ran = failing_gateway(watch, [failure])
    with pytest.raises(type(failure)):
        gateway.call("search.read", {"q": "x"})
    assert (len(ran), waits) == (1, [])


def test_attempts_end(make_watch):
    watch = make_watch(tools=Tools(retries=Retries(max_attempts=4, backoff_s=2, max_backoff_s=5)))
    gateway, waits, ran = failing_gateway(watch, [TimeoutError() for _ in range(9)])
    with pytest.raises(TimeoutError):
        gateway.call("search.read", {"q": "x"})
    assert (len(ran), len(waits)) == (4, 3)
    assert all(0 <= wait <= bound for wait, bound in zip(waits, (2, 4, 5), strict=True))


def test_a_server_that_names_its_wait_gets_it(watch):
    gateway, waits, _ = failing_gateway(watch, [StatusError(429, Retry_After="7")])
    gateway.call("search.read", {"q": "x"})
    assert waits == [7.0]


def test_a_wait_that_is_too_long_is_not_waited(watch):
    gateway, waits, _ = failing_gateway(watch, [StatusError(429, Retry_After="3600")])
    with pytest.raises(StatusError):
        gateway.call("search.read", {"q": "x"})
    assert waits == []


def test_no_wait_goes_past_the_turns_time(watch):
    gateway, waits, _ = failing_gateway(watch, [StatusError(429, Retry_After="7")], limits=tw.Limits(max_seconds=5))
    with pytest.raises(StatusError):
        gateway.call("search.read", {"q": "x"})
    assert waits == []


def test_a_response_that_stays_bad_is_returned_and_not_kept(watch):
    bad = [Answer(503) for _ in range(4)]
    gateway, _, ran = failing_gateway(watch, list(bad))
    assert gateway.call("search.read", {"q": "x"}) is bad[1]
    assert gateway.call("search.read", {"q": "x"}) is bad[3]
    assert len(ran) == 4


def test_a_tool_may_have_a_policy_of_its_own(watch):
    gateway, _, ran = failing_gateway(
        watch, [TimeoutError()], overrides={"search.read": {"retries": {"max_attempts": 1}}}
    )
    with pytest.raises(TimeoutError):
        gateway.call("search.read", {"q": "x"})
    assert len(ran) == 1


# Side effects


@pytest.mark.parametrize("failure", [TimeoutError(), StatusError(504), ConnectionResetError()])
@pytest.mark.parametrize(
    ("tool", "declared"), [("charge_card", {}), ("pay", {}), ("zap", {"zap": {"side_effect": True}})]
)
def test_a_charge_that_timed_out_is_not_sent_twice_without_the_callers_word(watch, failure, tool, declared):
    gateway, _, ran = failing_gateway(watch, [failure], tool, overrides=declared, agent="a")
    with pytest.raises(type(failure)):
        gateway.call(tool, {"cents": 500})
    for _ in range(2):
        with pytest.raises(tw.SideEffectHeld, match="confirmed"):
            gateway.call(tool, {"cents": 500})
    assert len(ran) == 1
    assert watch.value("agent_tool_calls_total", "a", tool, "denied") == 2
    assert gateway.call(tool, {"cents": 900}) == "fine", "another call is not held"
    assert gateway.call(tool, {"cents": 500}, confirmed=True) == "fine"
    assert len(ran) == 3


def test_a_charge_that_was_certainly_not_sent_is_retried(watch):
    gateway, _, ran = failing_gateway(watch, [ConnectionRefusedError(), StatusError(503)], "pay")
    with pytest.raises(StatusError):
        gateway.call("pay", {"cents": 500})
    assert len(ran) == 2
    assert gateway.call("pay", {"cents": 500}) == "fine"


def test_an_idempotent_side_effect_is_retried(watch):
    gateway, _, ran = failing_gateway(watch, [TimeoutError()], "pay", overrides={"pay": {"idempotent": True}})
    assert gateway.call("pay", {"cents": 500}) == "fine"
    assert len(ran) == 2


def test_a_tool_of_unknown_effect_is_not_sent_again_on_its_own(watch):
    gateway, _, ran = failing_gateway(watch, [TimeoutError()], "frobnicate")
    with pytest.raises(TimeoutError):
        gateway.call("frobnicate")
    assert len(ran) == 1
    assert gateway.call("frobnicate") == "fine"


# Circuit breaker


def test_a_tool_that_is_down_is_answered_for(make_watch, clock):
    watch = make_watch(tools=Tools(retries=Retries(max_attempts=1), circuit=Circuit(failures=3, open_s=30)))
    gateway, _, ran = failing_gateway(watch, [TimeoutError() for _ in range(4)], agent="a")
    for number in range(3):
        with pytest.raises(TimeoutError):
            gateway.call("search.read", {"q": number})
    answer = gateway.call("search.read", {"q": 9})
    assert "search.read is down" in answer
    assert watch.value("agent_tool_calls_total", "a", "search.read", "denied") == 1
    clock.now += 31
    with pytest.raises(TimeoutError):
        gateway.call("search.read", {"q": 10})
    assert "is down" in gateway.call("search.read", {"q": 11})
    clock.now += 31
    assert gateway.call("search.read", {"q": 12}) == "fine"
    assert gateway.call("search.read", {"q": 13}) == "fine"
    assert len(ran) == 6


@pytest.mark.parametrize("safe_mode", ["closed today", lambda args: f"closed {args['q']}"])
def test_the_safe_mode_answer_may_be_the_users(make_watch, safe_mode):
    watch = make_watch(tools=Tools(retries=Retries(max_attempts=1), circuit=Circuit(failures=1)))
    gateway, _, _ = failing_gateway(watch, [TimeoutError()], safe_mode={"search.read": safe_mode})
    with pytest.raises(TimeoutError):
        gateway.call("search.read", {"q": "today"})
    assert gateway.call("search.read", {"q": "today"}) == "closed today"


def test_errors_about_the_question_do_not_open_the_circuit(make_watch):
    watch = make_watch(tools=Tools(circuit=Circuit(failures=2)))
    gateway, _, ran = failing_gateway(watch, [ValueError() for _ in range(5)])
    for number in range(5):
        with pytest.raises(ValueError, match=r"^$"):
            gateway.call("search.read", {"q": number})
    assert len(ran) == 5


# Scratchpad


def test_the_scratchpad_says_what_was_tried_in_the_models_words(watch, shop):
    gateway = shop.gateway(watch)
    assert gateway.scratchpad() == ""
    for _ in range(2):
        gateway.call("stock.read", {"item": "tea"})
    with pytest.raises(KeyError):
        gateway.call("stock.read", {"item": "gin"})
    gateway.note("gin is not sold here")
    assert gateway.scratchpad().splitlines() == [
        "Tried so far in this turn:",
        '- stock.read({"item":"tea"}) (2 times): the same result as before',
        '- stock.read({"item":"gin"}): failed (KeyError)',
        "- Note: gin is not sold here",
    ]
    with tw.turn("a", watch=watch):
        assert gateway.scratchpad() == ""


def test_the_scratchpad_is_bounded(watch):
    gateway = tw.ToolGateway(impls={"get": lambda **_: "x"}, watch=watch)
    for number in range(200):
        gateway.call("get", {"n": number, "text": "y" * 10_000})
    assert len(gateway.scratchpad()) < 25_000


# Coroutines


async def test_a_coroutine_function_is_awaited_and_a_plain_one_runs_in_a_thread(watch):
    async def get(n: int) -> int:
        return n

    where = []
    gateway = tw.ToolGateway(
        impls={"get": get, "get_plain": lambda: where.append(threading.current_thread())}, watch=watch
    )
    async with tw.turn("a", watch=watch) as turn:
        assert await gateway.acall("get", {"n": 3}) == 3
        await gateway.acall("get_plain")
    assert turn.tool_calls == 2
    assert where[0] is not threading.main_thread()
    with pytest.raises(TypeError, match="acall"):
        gateway.call("get", {"n": 3})


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (
            {"overrides": {"send_emial": {"side_effect": True}}},
            tw.SettingsError,
            "overrides: .* did you mean send_email",
        ),
        (
            {"safe_mode": {"zz": 1}},
            tw.SettingsError,
            "safe_mode: zz is none of the gateway's tools; there are send_email",
        ),
        ({"impls": {"send_email": 1}}, TypeError, "impls: send_email wants a function, not int"),
        (
            {"overrides": {"send_email": {"side_effect": True, "read_only": True}}},
            tw.SettingsError,
            "overrides of send_email: read_only and side_effect cannot both be true",
        ),
    ],
)
def test_what_would_protect_nothing_is_refused(given, error, words, watch):
    with pytest.raises(error, match=words):
        tw.ToolGateway(**{"impls": {"send_email": print}, "watch": watch} | given)


def test_what_a_gateway_is_told_may_not_contradict_the_settings(make_watch):
    watch = make_watch(tools=Tools(overrides={"send": {"read_only": True}}))
    with pytest.raises(tw.SettingsError, match="cannot both be true"):
        tw.ToolGateway({"send": print}, overrides={"send": {"side_effect": True}}, watch=watch)
    said = {"send": {"side_effect": True, "read_only": False}}
    assert tw.ToolGateway({"send": print}, overrides=said, watch=watch).tools == ("send",)


async def test_a_tool_that_turns_out_to_give_a_coroutine_is_refused_and_is_an_error(watch):
    async def get() -> int:
        return 1

    gateway = tw.ToolGateway(impls={"get": lambda: get()}, watch=watch, agent="a")
    with pytest.raises(TypeError, match="get gives a coroutine: use acall"):
        gateway.call("get")
    assert watch.value("agent_tool_calls_total", "a", "get", "error") == 1
    assert await gateway.acall("get") == 1


async def test_parallel_duplicates_run_once_and_each_gets_its_own_content(watch):
    ran = []

    async def search(q: str) -> list[str]:
        ran.append(q)
        await asyncio.sleep(0.01)
        return [q]

    gateway = tw.ToolGateway(impls={"search": search}, watch=watch, agent="a")
    first, *others = await asyncio.gather(*(gateway.acall("search", {"q": "x"}) for _ in range(5)))
    assert [first, *others] == [["x"]] * 5
    first.append("mine")
    assert others == [["x"]] * 4
    assert ran == ["x"]
    assert watch.value("agent_tool_calls_total", "a", "search", "cached") == 4


def test_parallel_duplicates_in_threads_run_once(watch):
    ran, start = [], threading.Barrier(6)

    def search(q: str) -> str:
        ran.append(q)
        threading.Event().wait(0.2)
        return "found"

    gateway = tw.ToolGateway(impls={"search": search}, watch=watch)
    found: list[str] = []

    def work() -> None:
        start.wait()
        found.append(gateway.call("search", {"q": "x"}))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["found"] * 6
    assert ran == ["x"]


async def test_parallel_duplicates_share_an_exception(watch):
    error = ValueError("no")

    async def search() -> None:
        await asyncio.sleep(0.01)
        raise error

    gateway = tw.ToolGateway(impls={"search": search}, watch=watch)
    outcomes = await asyncio.gather(*(gateway.acall("search") for _ in range(3)), return_exceptions=True)
    assert outcomes == [error] * 3


async def test_one_that_waits_may_be_cancelled_alone(watch):
    go_on = asyncio.Event()

    async def search() -> str:
        await go_on.wait()
        return "found"

    gateway = tw.ToolGateway(impls={"search": search}, watch=watch)
    first = asyncio.create_task(gateway.acall("search"))
    await asyncio.sleep(0)
    other = asyncio.create_task(gateway.acall("search"))
    await asyncio.sleep(0.01)
    other.cancel()
    go_on.set()
    assert await first == "found"
    with pytest.raises(asyncio.CancelledError):
        await other


async def test_a_charge_that_was_cancelled_is_held(watch):
    async def pay() -> None:
        await asyncio.sleep(10)

    gateway = tw.ToolGateway(impls={"pay": pay}, watch=watch)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(gateway.acall("pay"), 0.01)
    with pytest.raises(tw.SideEffectHeld):
        await gateway.acall("pay")


def test_a_tool_that_calls_itself_through_the_gateway_does_not_wait_for_itself(watch):
    depth = []

    def search(q: str) -> str:
        depth.append(1)
        return "found" if len(depth) > 2 else gateway.call("search", {"q": q})

    gateway = tw.ToolGateway(impls={"search": search}, watch=watch)
    assert gateway.call("search", {"q": "x"}) == "found"


async def test_two_tools_that_call_each_other_do_not_wait_for_each_other(watch):
    both_run = asyncio.Barrier(2)
    ran: list[str] = []

    async def tool(name: str, other: str) -> str:
        ran.append(name)
        if len(ran) > 2:
            return "found"
        await both_run.wait()
        return await gateway.acall(other)

    gateway = tw.ToolGateway(impls={"a": lambda: tool("a", "b"), "b": lambda: tool("b", "a")}, watch=watch)
    async with asyncio.timeout(20):
        assert await asyncio.gather(gateway.acall("a"), gateway.acall("b")) == ["found", "found"]
    assert sorted(ran[:2]) == ["a", "b"]
    assert len(ran) == 3  # one of them found the other under way, and the other did not wait for it


def test_a_call_that_was_running_when_the_process_forked_is_not_waited_for_in_the_child(watch):
    runs, go_on = threading.Event(), threading.Event()

    def search() -> str:
        runs.set()
        go_on.wait(20)
        return "found"

    gateway = tw.ToolGateway(impls={"search": search}, watch=watch)
    assert gateway.turn.tool_calls == 0  # its own turn is open, and the child's call belongs to it as well
    thread = threading.Thread(target=gateway.call, args=("search",))
    thread.start()
    runs.wait(20)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends a child that waits
        go_on.set()
        os._exit(0 if gateway.call("search") == "found" else 1)
    go_on.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


async def test_a_plain_call_in_the_loop_does_not_wait_for_a_coroutine_of_that_loop(watch):
    async def other() -> str:
        return gateway.call("get", {})

    def get() -> str:
        return "plain"

    gateway = tw.ToolGateway(impls={"get": get}, watch=watch)
    task = asyncio.create_task(gateway.acall("get"))
    await asyncio.sleep(0)
    assert await other() == "plain"
    assert await task == "plain"


def test_all_of_the_settings_for_tools_can_stand_in_a_file(tmp_path, clock):
    (tmp_path / "turnwatch.yaml").write_text(
        """
        budgets: {max_steps: 25, max_tool_calls: 12, max_seconds: 60, max_usd: 1.0}
        tools:
          dedupe_window_s: 60
          cache_ttl_s: 30
          retries: {max_attempts: 2, retryable_status: [408, 429, 500, 502, 503, 504]}
          overrides: {get_job_status: {polling: true}, send_email: {side_effect: true}, read_file: {read_only: true}}
        on_loop: stop
        """
    )
    watch = tw.Watch(load_settings(path=tmp_path / "turnwatch.yaml"), clock=clock)
    ran: list[str] = []
    tools = ("get_job_status", "send_email", "read_file", "search")
    gateway = tw.ToolGateway(
        impls={tool: lambda tool=tool: ran.append(tool) or f"of {tool}" for tool in tools}, watch=watch
    )
    for tool in tools:
        for _ in range(3):
            gateway.call(tool)
    assert [ran.count(tool) for tool in tools] == [3, 1, 1, 1]
    with pytest.raises(tw.ToolBudgetExceeded):
        gateway.call("search", {})


def test_no_wait_goes_past_what_a_slow_attempt_has_left_of_the_turns_time(watch, clock):
    waits: list[float] = []

    def search() -> None:
        clock.now += 50
        raise StatusError(429, Retry_After="7")

    gateway = tw.ToolGateway({"search": search}, watch=watch, limits=tw.Limits(max_seconds=55), sleep=waits.append)
    with pytest.raises(StatusError):
        gateway.call("search")
    assert waits == []


def test_asking_for_the_scratchpad_opens_no_turn(watch):
    gateway = tw.ToolGateway({}, watch=watch, agent="a")
    assert gateway.scratchpad() == ""
    gateway.close()
    assert watch.total("agent_turns_total") == 0
