"""Both ways to the canonical form give the same bytes, and odd objects find a place in it."""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import functools
import io
import json
import math
import pathlib
import threading
import types
import uuid
from fractions import Fraction

import numpy as np
import orjson
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwatch.core.canonical import canonical_bytes
from turnwatch.core.canonical_writer import write_canonical
from turnwatch.core.events import MISSING
from turnwatch.core.volatile_keys import DEFAULT_RULES

json_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
json_values = st.recursive(
    json_scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=25
)
any_values = st.recursive(
    json_scalars
    | st.floats()
    | st.integers()
    | st.binary()
    | st.decimals()
    | st.datetimes(timezones=st.timezones() | st.none())
    | st.uuids()
    | st.text(st.characters(exclude_categories=())),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.tuples(st.integers()) | st.none(), inner)
        | st.sets(st.text() | st.integers() | st.booleans() | st.none())
    ),
    max_leaves=25,
)


@pytest.mark.untraced
@given(json_values)
def test_orjson_and_the_writer_give_the_same_bytes(value):
    assert canonical_bytes([value]) == write_canonical([value], DEFAULT_RULES)


@pytest.mark.untraced
@given(any_values)
def test_any_value_gives_json_that_does_not_depend_on_the_way(value):
    written = canonical_bytes({"value": value})

    assert orjson.loads(written).keys() == {"value"}
    assert written == write_canonical({"value": value}, DEFAULT_RULES)


@pytest.mark.untraced
@given(json_values)
def test_json_text_is_what_it_says(value):
    assert canonical_bytes(json.dumps([value], indent=2)) == canonical_bytes([value])


@pytest.mark.untraced
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_written_by_value(number):
    digits = decimal.Decimal(int(number)) if number.is_integer() else decimal.Decimal(repr(number))
    assert canonical_bytes(digits) == canonical_bytes(number)
    if number.is_integer():
        assert canonical_bytes(int(number)) == canonical_bytes(number)


def test_plain_arguments_are_sorted_json():
    assert (
        canonical_bytes({"b": [1, 2.5, None, True], "a": {"é": "ü"}})
        == '{"a":{"é":"ü"},"b":[1,2.5,null,true]}'.encode()
    )


def test_missing_arguments_have_no_bytes():
    assert canonical_bytes(MISSING) == b""
    assert canonical_bytes("") == b'""'
    assert canonical_bytes(None) == b"null"
    assert canonical_bytes({}) == b"{}"


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Name(str):
    def __str__(self):
        return "something else"


@dataclasses.dataclass
class Point:
    x: float
    y: float
    cached: int = dataclasses.field(default=0, init=False)


class Filter(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    status: str = "open"
    limit: int = pydantic.Field(default=10, alias="max")
    _secret: int = pydantic.PrivateAttr(default=1)


class Ids(pydantic.RootModel[list[int]]):
    pass


Pair = collections.namedtuple("Pair", "left right")


class Slotted:
    __slots__ = ("kept", "never_set")
    __attrs_attrs__ = (types.SimpleNamespace(name="kept"), types.SimpleNamespace(name="never_set"))

    def __init__(self):
        self.kept = 1


class Row(collections.abc.Mapping):
    def __getitem__(self, key):
        return {"a": 1}[key]

    def __iter__(self):
        return iter(["a"])

    def __len__(self):
        return 1


class Money:
    def __init__(self, amount):
        self.amount = amount

    def __repr__(self):
        return f"Money({self.amount})"


@pytest.mark.parametrize(
    ("value", "same_as"),
    [
        (1e2, 100),
        (-0.0, 0),
        (1e300, int(1e300)),
        (decimal.Decimal("1.0"), 1),
        (decimal.Decimal("0.10"), 0.1),
        (decimal.Decimal("1E+2"), 100),
        (decimal.Decimal("-0"), 0),
        (decimal.Decimal(2**200), 2**200),
        (decimal.Decimal("NaN"), math.nan),
        (decimal.Decimal("-Infinity"), -math.inf),
        (Fraction(4, 2), 2),
        ((1, 2), [1, 2]),
        (collections.deque([1, 2]), [1, 2]),
        (Pair(1, 2), [1, 2]),
        ({"k": 1}.values(), [1]),
        (collections.OrderedDict(b=1, a=2), {"a": 2, "b": 1}),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
        (types.SimpleNamespace(a=1), {"a": 1}),
        (collections.UserDict(a=1), {"a": 1}),
        (collections.UserList([1]), [1]),
        (Row(), {"a": 1}),
        (frozenset({1, 2}), {2, 1}),
        ({"k": 1}.keys(), {"k"}),
        (bytearray(b"x"), b"x"),
        (memoryview(b"x"), b"x"),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Name("plain"), "plain"),
        ({Name("plain"): 1}, {"plain": 1}),
        ({Colour.RED: 1}, {Colour.RED: 1.0}),
        (Point(1.0, 2.5), {"x": 1, "y": 2.5, "cached": 0}),
        (Filter(max=3, more=1), {"status": "open", "limit": 3, "more": 1}),
        (Ids([1, 2]), [1, 2]),
        (Slotted(), {"kept": 1}),
        (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.UTC), "2026-01-02T03:00:00+00:00"),
        (pathlib.PurePosixPath("a/b"), "a/b"),
        (np.int64(5), 5),
        (np.float64(5.0), 5),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array(5), 5),
        ("\ud83d\ude00", "😀"),
        ({"\ud83d\ude00": 1}, {"😀": 1}),
        (Money(5), Money(5)),
    ],
)
def test_same_arguments(value, same_as):
    assert canonical_bytes([value]) == canonical_bytes([same_as])
    assert canonical_bytes(value) == canonical_bytes(same_as)


def test_the_same_instant_is_the_same_in_every_zone():
    utc = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
    there = utc.astimezone(datetime.timezone(datetime.timedelta(hours=5, minutes=30)))

    assert canonical_bytes(there) == canonical_bytes(utc)
    assert canonical_bytes(utc) != canonical_bytes(utc.replace(tzinfo=None))


different_values = [
    MISSING, None, "", {}, [], 0, False, 1, True, "1", 1.5, "1.5", 2**53, 2**53 + 1, 2**64, 2**64 + 1, 10**5000,
    math.nan, math.inf, -math.inf, "nan", "null", "NaN", b"", b"1", {1: 2}, {"1": 2}, {True: 2}, {None: 2}, {"null": 2},
    {(1,): 2}, {"[1]": 2}, {"\0": 2}, {"\x001": 2}, {1}, frozenset({"1"}), [1], [[1]], [1, 1], {"a": None},
    {"\0": ["set", [1]]}, {"\0": ["float", "nan"]}, "\ud800", "\udfff", "�", decimal.Decimal("1e999999"),
    decimal.Decimal("1e999998"), decimal.Decimal("0.1000000000000000055511151231257827"), Fraction(1, 3), 1j, range(3),
    range(4), slice(3), datetime.timedelta(1), datetime.time(1), object, object(), Point, len, Money(5), Money(6),
    np.datetime64("2026-01-01", "ns"), np.timedelta64(1, "s"), functools.partial(len, [1]), functools.partial(len, [2]),
    " {", "{", "[1", '{"a": 1} x', "a text", "a text ",
]  # fmt: skip


def test_different_arguments():
    written = collections.defaultdict(list)
    for value in different_values:
        written[canonical_bytes(value)].append(value)

    assert [same for same in written.values() if len(same) > 1] == []


def test_arrays_too_large_to_list_still_differ():
    large = np.zeros(200_000)
    other = large.copy()
    other[-1] = 1

    assert canonical_bytes(large) == canonical_bytes(large.copy())
    assert canonical_bytes(large) != canonical_bytes(other)
    assert canonical_bytes(large) != canonical_bytes(large.astype(np.float32))
    assert len(canonical_bytes(large)) < 200


def a_function():
    return None


class Plain:
    def __init__(self, state=None):
        self.state = state

    def method(self):
        return None


@pytest.mark.parametrize(
    "make",
    [
        object,
        Plain,
        lambda: Plain().method,
        lambda: lambda: 1,
        lambda: functools.partial(a_function, Plain()),
        threading.Lock,
        lambda: (number for number in [1]),
        lambda: iter([1]),
        io.StringIO,
        lambda: [Plain(), {"inner": Plain()}],
        lambda: type("Made", (), {}),
        lambda: a_function,
        lambda: json,
        lambda: {Plain()},
        lambda: {Plain(): 1},
    ],
)
def test_an_object_without_a_stable_repr_is_its_type_never_its_address(make):
    first, second = make(), make()

    assert canonical_bytes(first) == canonical_bytes(second)
    assert f"{id(first):x}".encode() not in canonical_bytes(first)


def test_files_are_told_apart_by_name(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("x")
    with (tmp_path / "a").open() as a, (tmp_path / "a").open() as again, (tmp_path / "b").open() as b:
        assert canonical_bytes(a) == canonical_bytes(again)
        assert canonical_bytes(a) != canonical_bytes(b)


def test_nothing_is_consumed():
    generator = (number for number in range(3))
    handle = io.BytesIO(b"abc")

    canonical_bytes({"rows": generator, "file": handle})

    assert list(generator) == [0, 1, 2]
    assert handle.read() == b"abc"


def test_circular_arguments_are_the_same_however_often_they_are_built():
    def build():
        inner = []
        outer = {"inner": inner, "again": {"more": inner}}
        inner.append(outer)
        return outer

    assert canonical_bytes(build()) == canonical_bytes(build())
    alone = {}
    alone["self"] = alone
    assert canonical_bytes(alone) == b'{"self":{"\\u0000":["circular",1]}}'


@pytest.mark.untraced
@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}, lambda inner: (inner, 1)])
def test_depth_is_no_limit(wrap):
    def build(depth, leaf):
        value = leaf
        for _ in range(depth):
            value = wrap(value)
        return value

    assert canonical_bytes(build(10_000, 1)) == canonical_bytes(build(10_000, 1.0))
    assert canonical_bytes(build(10_000, 1)) != canonical_bytes(build(10_000, 2))
    assert canonical_bytes(build(10_000, 1)) != canonical_bytes(build(10_001, 1))


def test_deep_json_text_and_deep_sets_do_not_crash():
    deep = frozenset()
    for _ in range(5_000):
        deep = frozenset([deep])

    assert canonical_bytes(deep)
    assert canonical_bytes("[" * 100_000 + "]" * 100_000)
    assert canonical_bytes('{"a":' * 100_000)


@pytest.mark.untraced
def test_a_small_graph_that_stands_for_a_huge_tree_is_cut():
    value = ["x"]
    for _ in range(60):
        value = [value, value]

    assert len(canonical_bytes(value)) < 20_000_000
    assert canonical_bytes({"a": value}) != canonical_bytes({"b": value})


def test_keys_that_normalization_makes_alike_stay_two():
    composed, decomposed = "\u00e9", "e\u0301"

    both = canonical_bytes({composed: 1, decomposed: 2})
    assert both == canonical_bytes({decomposed: 2, composed: 1})
    assert both != canonical_bytes({composed: 2, decomposed: 1})
    assert canonical_bytes({decomposed: 1}) == canonical_bytes({composed: 1})


def test_json_text_keeps_what_json_readers_lose():
    assert canonical_bytes('{"a": 9007199254740993}') != canonical_bytes('{"a": 9007199254740992}')
    assert canonical_bytes('{"a": 36893488147419103233}') == canonical_bytes({"a": 2**65 + 1})
    assert canonical_bytes('{"a": 36893488147419103233}') != canonical_bytes({"a": 2**65})
    assert canonical_bytes('{"a": 1e400}') == canonical_bytes({"a": 10**400})
    assert canonical_bytes('{"a": 1e400}') != canonical_bytes('{"a": Infinity}')
    assert canonical_bytes('{"a": ' + "9" * 5000 + "}") == canonical_bytes({"a": 10**5000 - 1})
    assert canonical_bytes('{"a": NaN}') == canonical_bytes({"a": math.nan})
    assert canonical_bytes('{"a": NaN}') != canonical_bytes('{"a": null}')
    assert canonical_bytes('{"a": "\\ud800"}') == canonical_bytes({"a": "\ud800"})
    assert canonical_bytes('{"a": 1, "a": 2}') == canonical_bytes({"a": 2})
    assert canonical_bytes('\n\t {"a":  [1.0] }\r\n') == canonical_bytes({"a": [1]})
    assert canonical_bytes('{"a": 1') == canonical_bytes(Name('{"a": 1'))


@pytest.mark.parametrize("key", ["timestamp", "Request-Id", "TRACE_ID", "requestId", "x-request-id", "_ts", "now"])
def test_volatile_keys_are_left_out_at_any_depth_in_any_spelling(key):
    assert canonical_bytes({"q": 1, key: 5}) == canonical_bytes({"q": 1})
    assert canonical_bytes([{"q": [{key: 5}]}]) == canonical_bytes([{"q": [{}]}])
    assert canonical_bytes(json.dumps({"q": {key: 5}})) == canonical_bytes({"q": {}})
    assert canonical_bytes({"q": {1}, key: 5}) == canonical_bytes({"q": {1}})


@pytest.mark.parametrize("key", ["id", "cursor", "page", "idempotency_key", "user_id", "offset"])
def test_keys_that_tell_calls_apart_stay(key):
    assert canonical_bytes({key: 1}) != canonical_bytes({key: 2})


def test_volatile_keys_can_be_chosen():
    assert canonical_bytes({"page": 1}, {"Page"}) == canonical_bytes({"page": 2}, ["page"]) == b"{}"
    assert canonical_bytes({"timestamp": 1}, ()) == b'{"timestamp":1}'


@pytest.mark.parametrize("text", ["1.0", "1.0,", "[2.0]", "x.0}", '"3.0",', "é 1.0,"])
def test_texts_that_look_like_whole_floats_stay_as_they_are(text):
    arguments = {"value": 1.0, "text": text, "points": [2.0, -3.0, -0.0, 2.5, 1e15, 1e16, {"at": 4.0, "in": text}]}

    assert canonical_bytes(arguments) == write_canonical(arguments, DEFAULT_RULES)
    assert json.loads(canonical_bytes(arguments))["text"] == text


def test_whole_floats_are_the_ints_they_equal():
    assert canonical_bytes({"x": 1.0, "y": [2.0, -0.0, 2.5]}) == b'{"x":1,"y":[2,0,2.5]}'
