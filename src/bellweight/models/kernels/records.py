"""Named tuples of arrays for compiled code, handed over as one address.

Numba passes a named tuple by value: a loop that takes a model's numbers, a policy and its scratch
arrays then has hundreds of arguments, and most of the time to compile it goes into passing them
on. A record is the same tuple in memory, each array as Numba describes it, and compiled code gets
its address. It reads fields as before: `data.table[action, event]`.

A record lives only for a call or a loop: it holds the arrays, and does not count references. Its
fields cannot be replaced, so compiled code may read a field once and keep it; what is in the arrays
may change.
"""

# mypy: disable-error-code="import-untyped,no-untyped-call,override"

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core import imputils
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate
from numba.extending import NativeValue, infer_getattr, register_model, unbox

from bellweight.models.kernels.layouts import writable


class RecordType(types.Type):
    """What compiled code knows of a record: the names and types of its fields."""

    def __init__(self, name: str, fields: tuple[tuple[str, types.Type], ...]) -> None:
        self.fields = dict(fields)
        super().__init__(name=f"{name}({', '.join(f'{field}: {kind}' for field, kind in fields)})")


class Record:
    """A named tuple in memory: `address` of its 64-bit words, and what must live as long."""

    __slots__ = ("_numba_type_", "address", "held", "signature")

    def __init__(self, values: Any) -> None:
        words: list[int] = []
        held, signature = [], []
        for value in values:
            letter, found, holder = _described(value)
            signature.append(letter)
            words += found
            held.append(holder)
        memory = np.array(words, dtype=np.uint64)
        self.held = (memory, held)
        self.signature = (type(values).__name__, values._fields, tuple(signature))
        self._numba_type_ = _type_of(self.signature)
        self.address = _address(memory)


def in_memory(value: Any) -> Any:
    """Return a named tuple as a record, and anything else as it is."""
    return Record(value) if hasattr(value, "_fields") else value


def _described(value: Any) -> tuple[Any, list[int], Any]:
    """Return what the type of a field depends on, its words as Numba has them, and their holder."""
    if isinstance(value, np.ndarray):
        array = writable(value)
        words = [0, 0, array.size, array.itemsize, _address(array), *array.shape, *array.strides]
        return (array.dtype.char, array.ndim), words, array
    if isinstance(value, float):
        return "float", [int(np.float64(value).view(np.uint64))], None
    if value is None:
        return "none", [0], None
    if isinstance(value, int | np.integer):
        return "int", [int(value) & _WORD], None
    assert hasattr(value, "_fields"), f"a field is a {type(value).__name__}"
    record = Record(value)
    return record.signature, [record.address], record


_WORD = 2**64 - 1


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


@cache
def _type_of(signature: Any) -> types.Type:
    """Return the type of a field or a record."""
    if isinstance(signature, str):
        return {"float": types.float64, "none": types.none, "int": types.int64}[signature]
    if len(signature) == 2:
        letter, ndim = signature
        return types.Array(from_dtype(np.dtype(letter)), ndim, "C")
    name, fields, kinds = signature
    return RecordType(name, tuple(zip(fields, map(_type_of, kinds), strict=True)))


register_model(RecordType)(models.OpaqueModel)


@infer_getattr
class _Fields(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, kind: RecordType, field: str) -> types.Type | None:
        return kind.fields.get(field)


@imputils.lower_getattr_generic(RecordType)
def _read_field(context: Any, builder: Any, kind: RecordType, address: Any, field: str) -> Any:
    place = 0
    for name, of in kind.fields.items():
        value_type = context.get_value_type(of)
        if name == field:
            words = builder.bitcast(address, ir.IntType(64).as_pointer())
            return _read(builder, value_type, words, place)[0]
        place += _size(value_type)
    raise AssertionError(field)


def _size(kind: Any) -> int:
    """Return the number of words of a type: numbers and pointers have one."""
    if isinstance(kind, ir.ArrayType):
        return int(kind.count) * _size(kind.element)
    return sum(map(_size, kind.elements)) if isinstance(kind, ir.BaseStructType) else 1


def _read(builder: Any, kind: Any, words: Any, place: int) -> tuple[Any, int]:
    """Return the value of a type that begins at a word, and the word after it.

    Words are read one by one and said not to change: the optimiser reads them outside of loops.
    """
    if isinstance(kind, ir.ArrayType | ir.BaseStructType):
        value = ir.Constant(kind, ir.Undefined)
        for part, of in enumerate(kind.elements):
            found, place = _read(builder, of, words, place)
            value = builder.insert_value(value, found, part)
        return value, place
    at = builder.gep(words, [ir.Constant(ir.IntType(64), place)], inbounds=True)
    read = builder.load(builder.bitcast(at, kind.as_pointer()))
    read.set_metadata("invariant.load", builder.module.add_metadata([]))
    return read, place + 1


@unbox(RecordType)
def _from_python(kind: RecordType, record: Any, c: Any) -> NativeValue:
    address = c.pyapi.object_getattr_string(record, "address")
    found = c.pyapi.long_as_voidptr(address)
    c.pyapi.decref(address)
    return NativeValue(found)
