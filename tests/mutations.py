"""Changing one place of nested data."""

from __future__ import annotations

from typing import Any


def put(record: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The record with another value in one place."""
    if not path:
        return value
    copied = dict(record) if isinstance(record, dict) else list(record)
    copied[path[0]] = put(record[path[0]], path[1:], value)
    return copied
