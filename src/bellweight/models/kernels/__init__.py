"""Compiled loops of models given by functions, joined and compiled with the user's code.

Numba keeps compiled code only for functions in files, so every model has one file of its own: the
user's functions, what the model provides (`user_functions.py` has stand-ins for it), and the text
of the parts below, without their imports of each other. `events` says what happens in a step of an
event model, `steps` what happens in a step model and `factors` in a factored one. `vectors` is
`steps` for functions of many states at once, which are not compiled. A model has one of these, with
what goes with it: the shortcuts of event models (`side_by_side`, `quick_actions`), or what stands
for them (`one_by_one`). The other parts serve all. A part may use what stands in the parts before
it.

`closest`, `features`, `many_features`, `tables`, `noise_draws` and `layouts` need nothing of the
user's and are modules like any other, compiled once for all models. Models that run as plain Python
call them too, so none of their functions may be for compiled callers only (`inner`).

A loop that stops with a fault leaves the state in `where.state`, which is up to date even when a
user's function raises.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

OWN_PARTS = {
    "events": ("events", "side_by_side", "quick_actions"),
    "steps": ("steps", "one_by_one"),
    "factors": ("factors", "one_by_one"),
    "vectors": ("vectors", "one_by_one"),
}
"""For each kind of model the parts that say what happens in a step."""

_FOLDER = Path(__file__).parent
_COMMON = "bellweight.common.compiled"


def parts(kind: str) -> tuple[str, ...]:
    """Return the parts of a model of this kind, in order."""
    return ("values", *OWN_PARTS[kind], "actions", "lookahead", "episodes", "rows")


@cache
def joined(kind: str) -> str:
    """Return the text of all parts, as it is written into the file of a model."""
    return "\n\n".join(_body(part) for part in parts(kind))


@cache
def library_digest() -> str:
    """Return a name for the modules that compiled models call, which must not change under them."""
    names = ("closest", "features", "layouts", "many_features", "noise_draws", "records", "tables")
    texts = [(_FOLDER / f"{name}.py").read_bytes() for name in names]
    texts.append((_FOLDER.parents[1] / "common" / "compiled.py").read_bytes())
    return hashlib.sha256(b"".join(texts)).hexdigest()[:12]


def _body(part: str) -> str:
    """Return the text of a part without its docstring and the imports that its file provides."""
    text = (_FOLDER / f"{part}.py").read_text(encoding="utf-8")
    every = {name for kind in OWN_PARTS for name in parts(kind)}
    provided = {f"{__name__}.{name}" for name in (*every, "user_functions")}
    kept = []
    for node in ast.parse(text).body[1:]:
        given = isinstance(node, ast.ImportFrom) and node.module in {*provided, _COMMON}
        if not given and not isinstance(node, ast.Import):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            kept.append("\n".join(text.splitlines()[first - 1 : node.end_lineno]))
    return "\n\n\n".join(kept)
