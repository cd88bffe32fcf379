"""Under which names a call's arguments arrive, so that f(1, 2) and f(a=1, b=2) are one call."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from turnwatch.core.canonical import canonical_bytes

_SIMPLE: Final = frozenset({str, int, float, bool, type(None), bytes})
_MISSING_DEFAULT: Final = inspect.Parameter.empty


class _Shape:
    """What a function's signature says about its arguments."""

    __slots__ = ("defaults", "keyword_rest", "positional", "rest", "skip_first", "taken")

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.positional: list[str] = []
        self.rest: str | None = None
        self.keyword_rest: str | None = None
        self.taken: set[str] = set()  # names that only a position can fill
        self.defaults: dict[str, object] = {}
        parameters = list(inspect.signature(fn).parameters.values())
        # A method reached through its class gets its object as an argument, which is not one of the call's.
        self.skip_first = bool(parameters) and parameters[0].name in ("self", "cls")
        for parameter in parameters[1:] if self.skip_first else parameters:
            if parameter.kind is parameter.VAR_POSITIONAL:
                self.rest = parameter.name
            elif parameter.kind is parameter.VAR_KEYWORD:
                self.keyword_rest = parameter.name
            elif parameter.kind is not parameter.KEYWORD_ONLY:
                self.positional.append(parameter.name)
            if parameter.kind is parameter.POSITIONAL_ONLY:
                self.taken.add(parameter.name)
            if parameter.default is not _MISSING_DEFAULT:
                self.defaults[parameter.name] = parameter.default


# A bound method is a new object at each access, so its shape is kept under the function behind it.
_function_shapes: weakref.WeakKeyDictionary[Any, _Shape | None] = weakref.WeakKeyDictionary()
_method_shapes: weakref.WeakKeyDictionary[Any, _Shape | None] = weakref.WeakKeyDictionary()


def bind_arguments(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of ``fn(*args, **kwargs)`` by name, as a framework would report them.

    An argument that spells out its default is left out, so that it equals the call that leaves it out. The
    object of a method is no argument. ``*args`` stand as a list under their name, ``**kwargs`` beside the
    others. A function without a signature, or a call that does not fit it, gives the keywords, and the
    positions as a list under "args".

    Never raises an Exception.
    """
    try:
        shape = _shape_of(fn)
        if shape is not None:
            bound = _bind(shape, args, kwargs)
            if bound is not None:
                return bound
    except Exception:
        pass
    unbound = dict(kwargs)
    if args:
        unbound["args" if "args" not in unbound else "*args"] = list(args)
    return unbound


def _shape_of(fn: Callable[..., Any]) -> _Shape | None:
    shapes, function = (_method_shapes, fn.__func__) if inspect.ismethod(fn) else (_function_shapes, fn)
    try:
        return shapes[function]
    except KeyError:
        shape = shapes[function] = _read_shape(fn)
        return shape
    except TypeError:  # neither hashable nor weakly referable
        return _read_shape(fn)


def _read_shape(fn: Callable[..., Any]) -> _Shape | None:
    try:
        return _Shape(fn)
    except Exception:  # no signature, or one that lies
        return None


def _bind(shape: _Shape, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    """None when the call does not fit the signature; the call itself will say so better."""
    positions = args[1:] if shape.skip_first else args
    bound: dict[str, Any] = dict(zip(shape.positional, positions, strict=False))
    beyond = positions[len(shape.positional) :]
    if beyond and shape.rest is None:
        return None
    clash = False
    for name, value in kwargs.items():
        if name in bound:
            if name not in shape.taken:
                return None
            clash = True
            continue
        bound[name] = value
    if clash and shape.keyword_rest is not None:  # f(a, /, **options) called as f(1, a=2)
        bound[shape.keyword_rest] = {name: value for name, value in kwargs.items() if name in shape.taken}
    for name, default in shape.defaults.items():
        if name in bound and _is_default(bound[name], default):
            del bound[name]
    if beyond and shape.rest is not None:
        bound[shape.rest] = list(beyond)
    return bound


def _is_default(value: object, default: object) -> bool:
    if value is default:
        return True
    if type(value) is not type(default):
        return False
    if type(value) in _SIMPLE:
        return value == default
    # Never ==: an array's or a query object's is not a bool.
    return canonical_bytes(value) == canonical_bytes(default)
