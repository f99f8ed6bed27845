"""Compiled loops of an event model, in parts that are joined and compiled with the user's code.

Numba keeps compiled code only for functions in files, so every model has one file of its own: the
user's functions, what the model provides (`user_functions.py` has stand-ins for it), and of each
part the text below its line. A part may use what stands in the parts before it.

A fault is a code, to which FAULTS * (action + 1) is added where the action is known; a loop that
stops with one leaves the state in `fault_state`, which is up to date even when a user's function
raises.
"""

from __future__ import annotations

from pathlib import Path

PARTS = ("values", "tables", "actions", "episodes", "rows")

_MARK = "# ---- below this line: copied into every compiled model ----\n"


def joined() -> str:
    """Return the text of all parts, as it is written into the file of a model."""
    texts = (Path(__file__).with_name(f"{part}.py").read_text(encoding="utf-8") for part in PARTS)
    return "\n\n".join(text[text.index(_MARK) + len(_MARK) :] for text in texts)
