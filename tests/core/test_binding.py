"""A call by position and the same call by name are one call."""

from __future__ import annotations

import functools
import inspect

import numpy as np
import pytest

from turnwatch.core.binding import bind_arguments
from turnwatch.core.hashing import input_hash


def two(a, b):
    pass


def with_default(a, b=5, *, c=None):
    pass


def with_rest(a, *rest, **options):
    pass


def positional_only(a, /, **options):
    pass


class Tools:
    def search(self, query, limit=10):
        pass

    @classmethod
    def of_class(cls, query):
        pass

    @staticmethod
    def static(query):
        pass

    def __call__(self, query):
        pass


@pytest.mark.parametrize(
    ("fn", "args", "kwargs", "bound"),
    [
        (two, (1, 2), {}, {"a": 1, "b": 2}),
        (two, (1,), {"b": 2}, {"a": 1, "b": 2}),
        (two, (), {"b": 2, "a": 1}, {"a": 1, "b": 2}),
        (with_default, (1,), {}, {"a": 1}),
        (with_default, (1, 5), {"c": None}, {"a": 1}),
        (with_default, (1, 5.0), {}, {"a": 1, "b": 5.0}),
        (with_default, (1, True), {}, {"a": 1, "b": True}),
        (with_rest, (1, 2, 3), {"z": 4}, {"a": 1, "rest": [2, 3], "z": 4}),
        (with_rest, (1,), {}, {"a": 1}),
        (positional_only, (1,), {"a": 2}, {"a": 1, "options": {"a": 2}}),
        (Tools().search, ("q",), {"limit": 10}, {"query": "q"}),
        (Tools.search, (Tools(), "q"), {}, {"query": "q"}),
        (Tools.of_class, ("q",), {}, {"query": "q"}),
        (Tools.static, ("q",), {}, {"query": "q"}),
        (Tools(), ("q",), {}, {"query": "q"}),
        (functools.partial(two, 1), (2,), {}, {"b": 2}),
        (dict, (), {"a": 1}, {"a": 1}),
        (max, (1, 2), {}, {"args": [1, 2]}),
        (two, (1, 2, 3), {}, {"args": [1, 2, 3]}),
        (two, (1,), {"a": 2}, {"args": [1], "a": 2}),
        (max, (1,), {"args": 2}, {"*args": [1], "args": 2}),
    ],
)
def test_arguments_are_bound_by_name(fn, args, kwargs, bound):
    assert bind_arguments(fn, args, kwargs) == bound


def test_all_ways_to_make_a_call_hash_alike():
    hashes = {
        input_hash("two", bind_arguments(two, (1, 2), {})),
        input_hash("two", bind_arguments(two, (1,), {"b": 2})),
        input_hash("two", bind_arguments(two, (), {"a": 1, "b": 2})),
        input_hash("two", {"a": 1, "b": 2}),
    }

    assert len(hashes) == 1


def test_a_method_is_bound_alike_through_object_and_class():
    for _ in range(2):
        assert bind_arguments(Tools().search, ("q", 3), {}) == {"query": "q", "limit": 3}
        assert bind_arguments(Tools.search, (Tools(), "q", 3), {}) == {"query": "q", "limit": 3}


def test_defaults_are_never_compared_with_the_equality_of_the_value():
    def of_array(values=np.zeros(2)):  # noqa: B008 the default is what is tested
        pass

    assert bind_arguments(of_array, (np.zeros(2),), {}) == {}
    assert list(bind_arguments(of_array, (np.ones(2),), {})) == ["values"]


def test_a_wrapped_function_is_bound_by_the_signature_it_shows():
    @functools.wraps(two)
    def wrapper(*args, **kwargs):
        pass

    assert bind_arguments(wrapper, (1, 2), {}) == {"a": 1, "b": 2}


class Lying:
    @property
    def __signature__(self):
        raise RuntimeError

    def __call__(self, query):
        pass

    __hash__ = None


def test_nothing_makes_it_raise():
    for fn in (Lying(), None, 5, inspect, type):
        assert bind_arguments(fn, (1,), {"b": 2}) == {"args": [1], "b": 2}
