"""What may stand in a certificate: the type of every field, and nothing that is not finite.

One list serves all three uses: what `certify` makes, what `Certificate.load` reads and what
`verify` is given. The checksum tells a certificate that was changed after it was made; it proves
nothing else, for whoever changes a certificate can compute it again.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

from bellweight.common.files import path_of
from bellweight.common.status import FileError

FORMAT = 3
HEADER = "bellweight_certificate"
KINDS = ("exact", "estimated", "unproven")
CHECKSUM = "checksum"
_DEEPEST = 100  # levels of a record; a basis that is made of others has many
_LARGEST = 2**63  # whole numbers beyond this are no seed, index or count
_HUGE = 1e100  # sums of products of smaller numbers do not overflow


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number of usable size; truth values are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < (_LARGEST if isinstance(value, int) else _HUGE)


def is_count(value: Any, least: int = 0) -> bool:
    """Return whether a value is a whole number of at least `least`, and not absurdly large."""
    return isinstance(value, int) and is_number(value) and value >= least


def is_numbers(value: Any) -> bool:
    """Return whether a value is a list of finite numbers."""
    if not isinstance(value, list):
        return False
    if set(map(type, value)) == {float}:  # long ones are, and are looked at all at once
        return all(map(math.isfinite, value)) and min(value) > -_HUGE and max(value) < _HUGE
    return all(map(is_number, value))


def _is_words(value: Any) -> bool:
    return isinstance(value, str)


def _is_evidence(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(key, str) and is_number(size) for key, size in value.items()
    )


def _or_none(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


_NUMBER = (is_number, "a finite number below 1e100")
_MAYBE = (_or_none(is_number), "None or a finite number below 1e100")
_WORDS = (_is_words, "text")
_KIND = (lambda value: isinstance(value, str) and value in KINDS, " or ".join(KINDS))
_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "bound": _MAYBE,
    "greedy_bound": _MAYBE,
    "weighted_residual": _MAYBE,
    "residual_sup": _MAYBE,
    "mismatch": _MAYBE,
    "disagreement": _MAYBE,
    "kind": _KIND,
    "reason": _WORDS,
    "value": _NUMBER,
    "value_kind": _KIND,
    "cost": _NUMBER,
    "violation": _MAYBE,
    "repair": _NUMBER,
    "confidence": (_or_none(lambda v: is_number(v) and 0.0 < v < 1.0), "None or between 0 and 1"),
    "evidence": (_is_evidence, "finite numbers by name"),
    "model_name": _WORDS,
    "model_digest": _WORDS,
    "tolerance": _NUMBER,
    "seed": (is_count, "a whole number of zero or more"),
    "episodes": (_or_none(lambda value: is_count(value, 2)), "None or a number of at least 2"),
    "horizon": (_or_none(lambda value: is_count(value, 1)), "None or a number of at least 1"),
    "record": (lambda value: isinstance(value, dict), "entries by name"),
    CHECKSUM: _WORDS,
}


def read_fields(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the unchecked content of a certificate's file; other files are refused."""
    try:
        document = json.loads(path_of(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise FileError(f"cannot read {path}: {problem.strerror or problem}") from None
    except (ValueError, RecursionError, MemoryError):
        document = None
    version = document.pop(HEADER, None) if isinstance(document, dict) else None
    if isinstance(version, bool) or version != FORMAT:
        raise FileError(f"{path} is not a certificate that this version reads: make it again")
    assert isinstance(document, dict)
    return document


def fault(fields: Mapping[str, Any]) -> str:
    """Return what is wrong with the fields of a certificate, or no text."""
    for name, (fits, expected) in _FIELDS.items():
        if name not in fields:
            return f"{name} is missing"
        if not fits(fields[name]):
            return f"{name} is {_shown(fields[name])}, expected {expected}"
    stray = set(fields) - set(_FIELDS)
    if stray:
        return f"{min(map(str, stray))} is no field of a certificate"
    return _record_fault(fields["record"], "record", _DEEPEST)


def _record_fault(value: Any, where: str, depth: int) -> str:
    """Return where a record holds something else than words, finite numbers, lists and names."""
    if value is None or isinstance(value, str | bool):
        return ""
    if isinstance(value, int | float):
        return (
            ""
            if is_number(value)
            else f"{where} is {_shown(value)}, expected a finite number below 1e100"
        )
    if depth == 0:
        return f"{where} is nested too deeply"
    if isinstance(value, list):
        if is_numbers(value):
            return ""
        found = (_record_fault(v, f"{where}[{k}]", depth - 1) for k, v in enumerate(value))
    elif isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            return f"{where} has names that are no text"
        found = (_record_fault(v, f"{where}.{k}", depth - 1) for k, v in value.items())
    else:
        return f"{where} is {_shown(value)}, expected numbers, words, lists or names"
    return next(filter(None, found), "")


def _shown(value: Any) -> str:
    """Return a value as short text; a huge number is not written out."""
    if isinstance(value, int) and abs(value) >= _LARGEST:
        return "a whole number beyond 64 bits"
    if isinstance(value, list | dict | tuple):
        return f"a {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def checksum(fields: Mapping[str, Any]) -> str:
    """Return the fingerprint of all fields but the checksum itself; they have no fault."""
    content = {name: value for name, value in fields.items() if name != CHECKSUM}
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
