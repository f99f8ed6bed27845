"""Misspelt words: what was meant, and what there is."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def meant(word: str, known: Iterable[str]) -> str:
    """Return `did you mean ...?` if a known word is near, otherwise `expected ...`."""
    words = list(known)
    near = get_close_matches(word.lower(), words, n=1, cutoff=0.55)
    if near:
        return f"did you mean {near[0]}?"
    if not words:
        return "there are none"
    *others, last = words
    return f"expected {', '.join(others)} or {last}" if others else f"expected {last}"
