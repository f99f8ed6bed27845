"""Reading the record of a certificate: every entry has the type and length that it should have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellweight.certificates.fields import is_count, is_number, is_numbers
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import FileError


@dataclass(frozen=True, eq=False)
class Record:
    """Entries by name, and where in the certificate they stand."""

    entries: dict[str, Any]
    where: str = "record"

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def part(self, name: str) -> Record:
        """Return entries that stand under a name."""
        found = self._entry(name, lambda value: isinstance(value, dict), "entries by name")
        return Record(found, f"{self.where}.{name}")

    def parts(self, name: str, length: int | None = None) -> list[Record]:
        """Return a list of entries by name."""
        found = self._entry(name, lambda value: isinstance(value, list), "a list")
        self._check_length(name, found, length)
        if not all(isinstance(part, dict) for part in found):
            raise FileError(f"{self.where}.{name} is not a list of entries by name")
        return [Record(part, f"{self.where}.{name}[{k}]") for k, part in enumerate(found)]

    def text(self, name: str) -> str:
        """Return a text."""
        found: str = self._entry(name, lambda value: isinstance(value, str), "text")
        return found

    def number(self, name: str, least: float = -np.inf) -> float:
        """Return a finite number of at least `least`."""
        expected = "a finite number" + (f" of at least {least:g}" if np.isfinite(least) else "")
        return float(self._entry(name, lambda v: is_number(v) and v >= least, expected))

    def texts(self, name: str, length: int) -> list[str]:
        """Return a list of texts."""
        found: list[str] = self._entry(name, lambda value: isinstance(value, list), "a list")
        self._check_length(name, found, length)
        if not all(isinstance(word, str) for word in found):
            raise FileError(f"{self.where}.{name} is not a list of texts")
        return found

    def numbers(self, name: str, length: int | None = None) -> FloatArray:
        """Return a list of finite numbers as an array."""
        found = self._entry(name, is_numbers, "a list of finite numbers")
        self._check_length(name, found, length)
        return np.array(found, dtype=np.float64)

    def whole(self, name: str, length: int | None, below: int) -> IntArray:
        """Return a list of whole numbers, none negative, all below a limit."""
        found = self._entry(name, lambda value: isinstance(value, list), "a list")
        self._check_length(name, found, length)
        if not all(is_count(value) and value < below for value in found):
            raise FileError(
                f"{self.where}.{name} is not a list of whole numbers from 0 to {below - 1}"
            )
        return np.array(found, dtype=np.int64)

    def table(self, name: str, height: int | None, width: int) -> FloatArray:
        """Return a list of rows of finite numbers as a matrix."""
        found = self._entry(name, lambda value: isinstance(value, list), "a list of rows")
        self._check_length(name, found, height)
        if not all(is_numbers(row) and len(row) == width for row in found):
            raise FileError(f"{self.where}.{name} is not a list of rows of {width} finite numbers")
        return np.array(found, dtype=np.float64).reshape(len(found), width)

    def coefficients(self, length: int | None = None) -> FloatArray:
        """Return the coefficients; names and moments of as many functions must stand beside them.

        The statement of a certificate uses neither these nor the method, so they are only read.
        """
        coef = self.numbers("coef", length)
        self.texts("names", len(coef))
        self.numbers("moments", len(coef))
        self.text("method")
        return coef

    def unknown(self) -> FileError:
        """Return the error for a kind that the verifier does not know, or that says why not."""
        if self.entries.get("kind") == "unknown":
            return FileError(f"{self.where} is not described: {self.text('reason')}")
        return FileError(f"{self.where}.kind is not one that this version knows")

    def _entry(self, name: str, fits: Callable[[Any], bool], expected: str) -> Any:
        if name not in self.entries:
            raise FileError(f"{self.where}.{name} is missing")
        if not fits(self.entries[name]):
            raise FileError(f"{self.where}.{name} is not what it should be: expected {expected}")
        return self.entries[name]

    def _check_length(self, name: str, found: list[Any], length: int | None) -> None:
        if length is not None and len(found) != length:
            raise FileError(f"{self.where}.{name} has {len(found)} entries, expected {length}")
