"""Which plain value stands in for an object that is not JSON.

One level at a time: what comes back may hold further objects, and the caller asks again for those.
A data object (dataclass, pydantic, attrs, msgspec) is the mapping of its fields and an enumeration's member
is its value, because that is what a framework reports of the same call. An object that only describes itself
is its type's name, never its address: the same call must hash alike in two processes.
"""

from __future__ import annotations

import base64
import collections
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import hashlib
import io
import pathlib
import sys
import types
import uuid
from typing import Any, Final

MAX_REPR: Final = 4096
MAX_ARRAY_ITEMS: Final = 100_000
# 10 ** 5000 is still made in microseconds; Decimal("1e999999") as an int would take seconds and megabytes.
MAX_DECIMAL_EXPONENT: Final = 5000


class Tagged:
    """A value that JSON has no form for: its kind, and what tells two of that kind apart."""

    __slots__ = ("content", "kind")

    def __init__(self, kind: str, content: object) -> None:
        self.kind = kind
        self.content = content


class Unordered:
    """A set: equal whatever the order of its members, and different from a list of them."""

    __slots__ = ("members",)

    def __init__(self, members: list[object]) -> None:
        self.members = members


def stand_in(obj: object) -> object:
    """What stands in for ``obj``: a None, bool, int, float, str, list, dict, Tagged or Unordered.

    Looks at the real type, never at ``__class__``, and consumes nothing: a generator is its type's name.
    Never raises an Exception; an object that fights back is its type's name.
    """
    cls = type(obj)
    try:
        found = _of_known_type(obj, cls)
        if found is None:
            found = _of_data_object(obj, cls)
        if found is None:
            found = _of_numpy(obj)
        if found is None:
            found = _of_container(obj, cls)
        if found is None:
            found = _of_callable(obj, cls)
        if found is None:
            found = _of_repr(obj, cls)
    except Exception:
        return type_tag(cls)
    return found.value if type(found) is _Is else found


class _Is:
    """Wraps a stand-in that may be None or falsy, so that None can mean "not mine"."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


def type_name(cls: type) -> str:
    """Module and qualified name of a type, whatever its metaclass says."""
    qualname = type.__dict__["__qualname__"].__get__(cls)
    module = type.__getattribute__(cls, "__dict__").get("__module__")
    return f"{module}.{qualname}" if type(module) is str else str(qualname)


def type_tag(cls: type) -> Tagged:
    """Stands in for an object of which nothing but its type is stable."""
    try:
        return Tagged("type", type_name(cls))
    except Exception:
        return Tagged("type", "")


def _of_known_type(obj: Any, cls: type) -> object | None:
    """Subclasses of the built-in types and the value types of the standard library."""
    if issubclass(cls, enum.Enum):
        return _Is(object.__getattribute__(obj, "_value_"))
    if issubclass(cls, str):
        return str.__str__(obj)
    if issubclass(cls, int):
        return int.__int__(obj)
    if issubclass(cls, float):
        return float.__float__(obj)
    if issubclass(cls, dict):
        return dict(dict.items(obj))
    if issubclass(cls, list):
        return list(list.__iter__(obj))
    if issubclass(cls, tuple):
        return list(tuple.__iter__(obj))
    if issubclass(cls, set):
        return Unordered(list(set.__iter__(obj)))
    if issubclass(cls, frozenset):
        return Unordered(list(frozenset.__iter__(obj)))
    if issubclass(cls, bytes | bytearray | memoryview):
        return Tagged("bytes", base64.b64encode(bytes(obj)).decode("ascii"))
    if issubclass(cls, decimal.Decimal):
        return _of_decimal(obj)
    return _of_value_type(obj, cls)


def _of_value_type(obj: Any, cls: type) -> object | None:
    if issubclass(cls, datetime.datetime):
        # Two zones' names for one instant are one argument, as they are equal in Python.
        if obj.tzinfo is not None and obj.utcoffset() is not None:
            obj = obj.astimezone(datetime.UTC)
        return datetime.datetime.isoformat(obj)
    if issubclass(cls, datetime.date):
        return datetime.date.isoformat(obj)
    if issubclass(cls, datetime.time):
        return datetime.time.isoformat(obj)
    if issubclass(cls, datetime.timedelta):
        return Tagged("timedelta", [obj.days, obj.seconds, obj.microseconds])
    if issubclass(cls, uuid.UUID):
        return uuid.UUID.__str__(obj)
    if issubclass(cls, pathlib.PurePath):
        return str(obj)
    if issubclass(cls, fractions.Fraction):
        return int(obj) if obj.denominator == 1 else Tagged("fraction", [obj.numerator, obj.denominator])
    if issubclass(cls, complex):
        return Tagged("complex", [obj.real, obj.imag])
    return None


def _of_decimal(obj: decimal.Decimal) -> object:
    """The int or float with the same decimal digits, where there is one.

    Decimal("1.0") is 1 and Decimal("0.1") is 0.1: JSON text has one notation for both.
    """
    sign, digits, exponent = decimal.Decimal.as_tuple(obj)
    if isinstance(exponent, str):
        return float("nan") if exponent in "nN" else float("-inf" if sign else "inf")
    text = "".join(map(str, digits)).lstrip("0")
    stripped = text.rstrip("0")
    exponent += len(text) - len(stripped)
    if not stripped:
        return 0
    if 0 <= exponent <= MAX_DECIMAL_EXPONENT and len(stripped) <= MAX_DECIMAL_EXPONENT:
        value = int_of_digits(stripped) * 10**exponent
        return -value if sign else value
    canonical = f"{'-' if sign else ''}{stripped}e{exponent}"
    if exponent < 0 and len(stripped) <= 17:
        as_float = float(canonical)
        if as_float and decimal.Decimal(repr(as_float)) == obj:
            return as_float
    return Tagged("decimal", canonical)


def int_of_digits(digits: str) -> int:
    """``int(digits)`` without the interpreter's limit on the number of digits."""
    value = 0
    for start in range(0, len(digits), 4000):
        chunk = digits[start : start + 4000]
        value = value * 10 ** len(chunk) + int(chunk)
    return value


def _of_data_object(obj: Any, cls: Any) -> object | None:
    """Objects that are a record of named fields."""
    if issubclass(cls, type):
        return None
    attributes = [vars_of_class for base in cls.__mro__ for vars_of_class in (type.__getattribute__(base, "__dict__"),)]
    names: collections.abc.Iterable[str] | None = None
    for found in attributes:
        if "__pydantic_fields__" in found or "__fields_set__" in found:
            return _of_pydantic(obj, found.get("__pydantic_fields__"), cls)
        if "__dataclass_fields__" in found:
            names = [field.name for field in dataclasses.fields(cls)]
        elif "__attrs_attrs__" in found:
            names = [attribute.name for attribute in found["__attrs_attrs__"]]
        elif type(found.get("__struct_fields__")) is tuple:
            names = found["__struct_fields__"]
        else:
            continue
        break
    if names is None:
        return None
    record = {}
    for name in names:
        try:
            record[name] = object.__getattribute__(obj, name)
        except AttributeError:  # a slot that was never filled
            continue
    return record


def _of_pydantic(obj: Any, fields: Any, cls: Any) -> object:
    state = object.__getattribute__(obj, "__dict__")
    if getattr(cls, "__pydantic_root_model__", False):
        return _Is(state["root"])
    record = {name: state[name] for name in fields if name in state} if fields is not None else dict(state)
    try:
        extra = object.__getattribute__(obj, "__pydantic_extra__")
    except AttributeError:
        extra = None
    if extra:
        record.update(extra)
    return record


def _of_numpy(obj: Any) -> object | None:
    """NumPy scalars are Python's numbers and arrays are lists. NumPy is never imported for it."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    cls = type(obj)
    if issubclass(cls, numpy.generic):
        value = obj.item()
        if obj.dtype.kind in "mM" or type(value) is cls:
            return Tagged("numpy", [obj.dtype.str, str(obj)])
        return _Is(value)
    if issubclass(cls, numpy.ndarray):
        if obj.size <= MAX_ARRAY_ITEMS and obj.dtype.kind not in "mMg":
            return _Is(obj.tolist())
        digest = None if obj.dtype.hasobject else hashlib.sha256(numpy.ascontiguousarray(obj).tobytes()).hexdigest()
        return Tagged("array", [obj.dtype.str, list(obj.shape), digest])
    return None


def _of_container(obj: Any, cls: type) -> object | None:
    if issubclass(cls, collections.deque):
        return list(collections.deque.__iter__(obj))
    if issubclass(cls, collections.UserString):
        return str(obj.data)
    if issubclass(cls, range):
        return Tagged("range", [obj.start, obj.stop, obj.step])
    if issubclass(cls, slice):
        return Tagged("slice", [obj.start, obj.stop, obj.step])
    if issubclass(cls, types.MappingProxyType | collections.UserDict | collections.ChainMap):
        return dict(obj)
    if issubclass(cls, types.SimpleNamespace):
        return dict(object.__getattribute__(obj, "__dict__"))
    if issubclass(cls, collections.UserList):
        return list(obj.data)
    if issubclass(cls, type({}.values())):
        return list(obj)
    if issubclass(cls, type({}.keys()) | type({}.items())):
        return Unordered(list(obj))
    # len() first: a lazy mapping without a size may never end.
    if issubclass(cls, collections.abc.Mapping) and len(obj) <= MAX_ARRAY_ITEMS:
        return {key: obj[key] for key in obj}
    return None


def _of_callable(obj: Any, cls: type) -> object | None:
    if issubclass(cls, functools.partial):
        return Tagged("partial", [obj.func, list(obj.args), obj.keywords])
    if issubclass(cls, type):
        return Tagged("class", type_name(obj))
    if issubclass(cls, types.ModuleType):
        return Tagged("module", obj.__name__)
    if issubclass(cls, types.FunctionType | types.BuiltinFunctionType | types.MethodType | types.MethodDescriptorType):
        return Tagged("callable", f"{getattr(obj, '__module__', None)}.{obj.__qualname__}")
    if issubclass(cls, io.IOBase):
        name = getattr(obj, "name", None)
        return Tagged("file", [type_name(cls), name if type(name) is str else None])
    return None


def _of_repr(obj: Any, cls: type) -> object:
    """The repr where it reads as a value; Python puts angle brackets round those that only describe."""
    if getattr(cls, "__repr__", None) is object.__repr__:
        return type_tag(cls)
    text = str.__str__(repr(obj))
    address = id(obj)
    if text.startswith("<") or " at 0x" in text or f"{address:x}" in text.lower() or str(address) in text:
        return type_tag(cls)
    if len(text) > MAX_REPR:
        text = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return Tagged("repr", [type_name(cls), text])
