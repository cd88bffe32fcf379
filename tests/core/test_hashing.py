"""Which calls have the same input hash, in every process, and that nothing can make it raise."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnwatch as tw
from turnwatch.core.default import known_watch, set_default_watch
from turnwatch.core.events import MISSING
from turnwatch.core.hashing import HASH_KEY_VARIABLE, input_hash

GOLDEN = Path(__file__).with_name("golden_hashes.json")
HEX = set("0123456789abcdef")


@pytest.fixture(autouse=True)
def _no_key(monkeypatch):
    monkeypatch.delenv(HASH_KEY_VARIABLE, raising=False)


@pytest.fixture(autouse=True)
def _nothing_configured():
    kept = known_watch()
    set_default_watch(None)
    yield
    set_default_watch(kept)


def golden_cases():
    return json.loads(GOLDEN.read_text())["hashes"]


def test_the_public_name_gives_sixteen_hex_characters():
    found = tw.input_hash("search_orders", {"customer_id": "C-7841"})

    assert len(found) == 16
    assert set(found) <= HEX


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_golden_hashes_hold_in_every_process(seed):
    program = (
        "import json, sys\n"
        "from turnwatch.core.hashing import input_hash\n"
        "cases = json.load(open(sys.argv[1]))['hashes']\n"
        "print(json.dumps([input_hash(c['tool'], eval(c['args'], {}), key=c.get('key')) for c in cases]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(GOLDEN)],
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
    )

    assert json.loads(done.stdout) == [case["hash"] for case in golden_cases()]


def test_the_hash_is_the_documented_one():
    assert input_hash("t", {"b": 1, "a": 2}) == hashlib.sha256(b't\0{"a":2,"b":1}').hexdigest()[:16]
    assert input_hash("t", {}, key="k") == hmac.new(b"k", b"t\0{}", "sha256").hexdigest()[:16]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}),
        ({"n": 1}, {"n": 1.0}),
        ({"q": "caf\u00e9"}, {"q": "cafe\u0301"}),
        ({"caf\u00e9": 1}, {"cafe\u0301": 1}),
        ({"ids": (1, 2)}, {"ids": [1, 2]}),
        ('  {"a": 1,\n "b": [1.0]} ', {"b": [1], "a": 1}),
        ('{"a":1}', '{ "a" : 1 }'),
        ({"a": 1, "request_id": "x"}, {"a": 1, "request_id": "y"}),
    ],
)
def test_equal_calls(one, other):
    assert input_hash("t", one) == input_hash("t", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"n": 1}, {"n": True}),
        ({"n": 1}, {"n": "1"}),
        ({1: 2}, {"1": 2}),
        ({"n": float("nan")}, {"n": None}),
        ("", MISSING),
        ({}, MISSING),
        (None, MISSING),
        ({"b": b"x"}, {"b": "x"}),
        ({"n": 2**53}, {"n": 2**53 + 1}),
        ({"idempotency_key": 1}, {"idempotency_key": 2}),
    ],
)
def test_different_calls(one, other):
    assert input_hash("t", one) != input_hash("t", other)


def test_the_tool_counts():
    assert input_hash("read", {}) != input_hash("write", {})
    assert input_hash("caf\u00e9", {}) == input_hash("cafe\u0301", {})
    assert input_hash("a", "b") != input_hash("a\0", "b")
    assert input_hash("t") == input_hash("t", MISSING)


@given(st.dictionaries(st.text(min_size=1), st.integers() | st.text() | st.booleans(), min_size=2), st.randoms())
def test_the_order_of_keys_does_not_count(arguments, random):
    items = list(arguments.items())
    random.shuffle(items)

    assert input_hash("t", dict(items)) == input_hash("t", arguments)


def test_a_key_in_the_environment_is_seen_at_once(monkeypatch):
    plain = input_hash("t", {"pin": 1234})
    monkeypatch.setenv(HASH_KEY_VARIABLE, "secret")
    keyed = input_hash("t", {"pin": 1234})

    assert keyed != plain
    assert keyed == input_hash("t", {"pin": 1234}, key="secret") == input_hash("t", {"pin": 1234}, key=b"secret")
    assert input_hash("t", {"pin": 1234}, key=b"") == plain
    monkeypatch.setenv(HASH_KEY_VARIABLE, "other")
    assert input_hash("t", {"pin": 1234}) != keyed
    monkeypatch.delenv(HASH_KEY_VARIABLE)
    assert input_hash("t", {"pin": 1234}) == plain


def boom(*_args, **_kwargs):
    raise RuntimeError


class Hostile:
    __eq__ = __hash__ = __repr__ = __str__ = __iter__ = __len__ = __bool__ = __getattr__ = __getattribute__ = boom
    __format__ = __reduce__ = __reduce_ex__ = __sizeof__ = __dir__ = __index__ = __int__ = __float__ = boom


class Liar:
    @property
    def __class__(self):
        return dict

    def __repr__(self):
        return "Liar()"


class Recursive:
    def __repr__(self):
        return repr(self)


class EndlessRepr:
    def __repr__(self):
        return "x" * 10_000_000


class HashOnce:
    """A key that can be put into a dict and never be looked up again."""

    def __init__(self):
        self.used = False

    def __hash__(self):
        if self.used:
            raise RuntimeError
        self.used = True
        return 1


class HostileMeta(type):
    def __getattribute__(cls, name):
        raise RuntimeError


class OfHostileMeta(metaclass=HostileMeta):
    pass


class HostileDict(dict):
    items = keys = values = __iter__ = __getitem__ = __len__ = boom


class HostileList(list):
    __iter__ = __len__ = __getitem__ = boom


class HostileText(str):
    __eq__ = __hash__ = encode = isascii = __str__ = __getitem__ = boom


class HostileInt(int):
    __eq__ = __hash__ = __int__ = __index__ = __repr__ = boom


class EndlessMapping(dict):
    """Makes up a new inside at every look."""

    def __getitem__(self, key):
        return EndlessMapping()


class EndlessModel:
    __attrs_attrs__ = (type("Field", (), {"name": "inner"}),)

    @property
    def inner(self):
        return EndlessModel()


HOSTILE = {
    "hostile": Hostile,
    "liar": Liar,
    "recursive repr": Recursive,
    "endless repr": EndlessRepr,
    "hostile metaclass": OfHostileMeta,
    "hostile class": lambda: OfHostileMeta,
    "hostile dict": lambda: HostileDict(a=1),
    "hostile list": lambda: HostileList([1]),
    "hostile text": lambda: HostileText("x"),
    "hostile int": lambda: HostileInt(5),
    "endless mapping": lambda: EndlessMapping(a=1),
    "endless model": EndlessModel,
    "key hashed once": lambda: {HashOnce(): 1},
    "not implemented": lambda: NotImplemented,
    "ellipsis": lambda: ...,
    "metaclass": lambda: type,
    "function": lambda: boom,
    "module": lambda: sys,
    "lone surrogate": lambda: "\ud800",
    "open brace": lambda: "{",
    "cut JSON": lambda: '{"a": ',
    "deep text": lambda: "[" * 5000,
    "long int": lambda: 10**5000,
    "long negative int": lambda: -(10**5000),
    "long int as key": lambda: {10**5000: 1},
    "nan": lambda: float("nan"),
    "no UTF-8": lambda: b"\xff",
    "strided view": lambda: memoryview(b"abc")[::2],
    "iterator": lambda: iter([]),
    "generator": lambda: (number for number in ()),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_object_makes_it_raise(name):
    hostile = HOSTILE[name]()

    for arguments in (hostile, [hostile], {"a": hostile}, {"a": [1.0, hostile]}):
        found = input_hash("t", arguments)
        assert len(found) == 16
        assert set(found) <= HEX
        assert found == input_hash("t", arguments)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_tool_name_makes_it_raise(name):
    assert len(input_hash(HOSTILE[name](), {"a": 1})) == 16


@pytest.mark.parametrize("volatile_keys", [None, 5, [1, None], "id", [["a"]]])
def test_no_set_of_volatile_keys_makes_it_raise(volatile_keys):
    assert len(input_hash("t", {"a": 1}, volatile_keys=volatile_keys)) == 16


def test_an_interrupt_is_not_swallowed():
    class Interrupting:
        def __repr__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        input_hash("t", {"a": Interrupting()})


def test_little_stack_left_is_no_reason_to_raise():
    def deep(left):
        return deep(left - 1) if left else input_hash("t", {"a": [1.0, {2, 3}]})

    assert deep(sys.getrecursionlimit() - 100) == input_hash("t", {"a": [1.0, {2, 3}]})


def test_the_public_hash_is_the_one_under_which_a_call_is_counted():
    settings = tw.Settings(
        hash_key="secret",
        detect={"volatile_keys": ["stamp"]},
        tools={"overrides": {"poll": {"volatile_keys": ["attempt"]}}},
    )
    watch = tw.Watch(settings)
    plain = tw.input_hash("poll", {"job": 1})
    set_default_watch(watch)
    for args in ({"job": 1}, {"job": 1, "stamp": 5}, {"job": 1, "attempt": 2}, {"job": 1, "nonce": 3}):
        call = tw.ToolCall("poll", args)
        watch.open_turn().begin_call(call)

        assert tw.input_hash("poll", args) == call.input_hash == watch.hash("poll", args)

    assert tw.input_hash("poll", {"job": 1, "attempt": 2, "stamp": 5}) == tw.input_hash("poll", {"job": 1})
    assert tw.input_hash("poll", {"job": 1, "nonce": 3}) != tw.input_hash("poll", {"job": 1})
    assert tw.input_hash("poll", {"job": 1}) != plain
    assert tw.input_hash("poll", {"job": 1}, key=b"") == plain
    assert tw.input_hash(["no", "name"], {"job": 1})


def test_another_watch_does_not_take_the_key_of_the_process():
    plain = tw.Watch().hash("search", {"q": "x"})
    set_default_watch(tw.Watch(tw.Settings(hash_key="secret")))

    assert tw.Watch().hash("search", {"q": "x"}) == plain
