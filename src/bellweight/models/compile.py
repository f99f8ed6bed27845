"""Turn a user's plain functions into a compiled module that starts warm the next time.

Numba keeps compiled code on disk only for functions in files. So the user's functions, with the
constants they refer to, and the loops of `kernels` are written to one file in a cache
folder, named by the hash of its text; the next process finds file and compiled code there. The
numbers of a model (`parameters`, tables, bounds) are no part of the text: other numbers compile
nothing.

A function may leave out the arguments it does not depend on: `cost(state)`, `probability(action,
event)`, `move(state, event)`.

Numba is imported where it is used, so that nobody waits for it without a model to compile.
"""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from bellweight.common.code_cache import cache_folder, keep
from bellweight.models import kernels
from bellweight.models.function_checks import arguments_of
from bellweight.models.function_text import Held, Writer, literal, said, unwritable
from bellweight.models.parameters import Layout

_STREAMS = (
    "from bellweight.common.compiled import "
    "bounded, draw, episode_key, inlined, inner, pick, unmanaged"
)
# Called from plain Python, compiled functions return 64 bits as an int: turned back at once.
_SLOW_STREAMS = """from bellweight.common import compiled as numbers
def plain(function): return function
bounded = inlined = inner = unmanaged = plain
def episode_key(base, episode): return np.uint64(numbers.episode_key(base, episode))
draw, pick = numbers.draw, numbers.pick"""


@dataclass(frozen=True)
class Source:
    """The text of one compiled model; hashable, and all that another process needs.

    `held` are objects that the text names and does not contain: they are not compiled.
    """

    text: str
    compiled: bool = True
    held: Held = ()

    @property
    def key(self) -> str:
        """A name for the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:24]

    @property
    def path(self) -> Path:
        """Where the text is kept."""
        return cache_folder() / f"model_{self.key}.py"

    @property
    def is_cached(self) -> bool:
        """Whether exactly this text has been compiled before."""
        try:
            return self.path.read_bytes() == self.text.encode()
        except OSError:
            return False

    @property
    def as_python(self) -> Source:
        """The same text as plain Python, whose functions can be called to explain a fault."""
        text = self.text.replace(_STREAMS, _SLOW_STREAMS, 1)
        return Source(text, compiled=False, held=self.held)

    def load(self) -> ModuleType:
        """Return the module, compiled now or found compiled."""
        if self not in _loaded:
            with _loading:
                if self not in _loaded:
                    _loaded[self] = _from_file(self) if self.compiled else _from_text(self)
        return _loaded[self]


_loaded: dict[Source, ModuleType] = {}
_loading = threading.Lock()  # threads that begin together would compile the same code each


@dataclass(frozen=True)
class Called:
    """A user's function, the arguments the loops call it with, and the text of the call.

    `otherwise` is the body that stands for a function not given.
    """

    function: Callable[..., Any] | None
    arguments: tuple[str, ...]
    otherwise: str = "pass"
    body: str = "return {call}"


@dataclass(frozen=True)
class Written:
    """The text of functions: as the user wrote them, and as the loops call them."""

    parts: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    held: Held = ()

    def adding(self, functions: Mapping[str, Called], layout: Layout | None = None) -> Written:
        """Return this text with more functions, one for each role; their sources are read now.

        `layout` says where named parameters stand.
        """
        writer = Writer(self.parts, layout or {}, self.held)
        calls = list(self.calls)
        for role, called in functions.items():
            body = called.otherwise
            if called.function is not None:
                named = arguments_of(called.function, said(role), called.arguments)
                name = writer.function(called.function, role)
                body = called.body.format(call=f"{name}({', '.join(named)})")
            calls.append(f"@bounded\ndef user_{role}({', '.join(called.arguments)}):\n    {body}\n")
        return Written(tuple(writer.parts), tuple(calls), tuple(writer.held))


def model_source(
    kind: str, written: Written, constants: Mapping[str, Any], *, compiled: bool
) -> Source:
    """Return the source of a model of a kind; `constants` are names that the loops use."""
    import numba

    if compiled and written.held:
        name, value = written.held[0]
        raise unwritable(value, name)
    header = [
        "import math",
        "import numpy as np",
        "inf, nan = np.inf, np.nan",
        _STREAMS if compiled else _SLOW_STREAMS,
        *(f"{name} = {literal(value, name)}" for name, value in constants.items()),
    ]
    header.append(f"# numba {numba.__version__}, library {kernels.library_digest()}")
    text = "\n".join([*header, "", *written.parts, *written.calls, "", kernels.joined(kind)])
    return Source(f"{text}\n", compiled, written.held)


_OPTIONAL = {
    "rule": Called(None, ("state", "parameters"), "return -1"),
    "functions": Called(None, ("state", "features")),
}


def with_optional(written: Written, given: Mapping[str, Called]) -> Written:
    """Return the text of a model with a policy's rule and a basis's own functions, if any."""
    return written.adding({**_OPTIONAL, **given})


def _from_file(source: Source) -> ModuleType:
    """Return the module; the file is there for Numba, what runs is the text itself."""
    path = source.path
    if not source.is_cached:
        keep(path, source.text)
    module = ModuleType(f"bellweight_model_{source.key}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # compiled code on disk refers to it
    exec(compile(source.text, str(path), "exec"), module.__dict__)
    return module


def _from_text(source: Source) -> ModuleType:
    module = ModuleType(f"bellweight_model_{source.key}")
    exec(compile(source.text, "<event model>", "exec"), module.__dict__)
    module.__dict__.update(source.held)
    return module
