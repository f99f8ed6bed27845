"""Named tuples that compiled code reads by their address."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from bellweight.models.kernels.records import Record, in_memory


class Inner(NamedTuple):
    """A tuple within a tuple."""

    table: Any
    shift: int


class Outer(NamedTuple):
    """All that a field can be."""

    count: int
    scale: float
    marks: Any
    inner: Inner
    nothing: Any
    cube: Any


@numba.njit
def read(record: Any, out: Any) -> Any:
    """Use every field, and write into one of its arrays."""
    out[0], out[1], out[2] = record.count, record.scale, record.inner.shift
    out[3] = record.inner.table[1, 2]
    out[4] = record.cube[1, 0, 1]
    out[5] = record.marks[1]
    for i in range(record.inner.table.shape[0]):
        for j in range(record.inner.table.shape[1]):
            record.inner.table[i, j] += 1.0
    return record.nothing is None


def given() -> Outer:
    table = np.arange(6.0).reshape(2, 3)
    cube = np.arange(8, dtype=np.int64).reshape(2, 2, 2)
    return Outer(-3, 0.25, np.array([False, True]), Inner(table, 2**62), None, cube)


def test_compiled_code_reads_what_the_tuple_holds_and_writes_into_its_arrays() -> None:
    values, out = given(), np.zeros(6)
    assert read(in_memory(values), out)
    assert out.tolist() == [-3.0, 0.25, 2.0**62, 5.0, 5.0, 1.0]
    np.testing.assert_array_equal(values.inner.table, np.arange(1.0, 7.0).reshape(2, 3))


def test_arrays_that_cannot_be_written_are_copied() -> None:
    values, out = given(), np.zeros(6)
    values.inner.table.flags.writeable = False
    read(in_memory(values), out)
    assert out[3] == 5.0
    np.testing.assert_array_equal(values.inner.table, np.arange(6.0).reshape(2, 3))


def test_a_record_holds_its_arrays() -> None:
    record, out = Record(given()), np.zeros(6)  # nobody else holds them
    np.ones(100_000)
    read(record, out)
    assert out[3] == 5.0


def test_records_of_one_shape_have_one_type() -> None:
    first, second = Record(given()), Record(given())
    assert first._numba_type_ is second._numba_type_
    other = Record(given()._replace(nothing=np.zeros(1)))
    assert other._numba_type_ != first._numba_type_


def test_what_is_no_tuple_stays_as_it_is() -> None:
    array = np.zeros(2)
    assert in_memory(array) is array
    assert in_memory(3) == 3
    with pytest.raises(AssertionError, match="a field is a str"):
        Record(given()._replace(count="three"))
