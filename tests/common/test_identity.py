"""Digests: the same for what does the same, in every process, and another for anything else."""

from __future__ import annotations

import functools
import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from scipy import sparse, stats

import bellweight as bw
from bellweight.common import identity

SCALE = 2.0


def scaled(x: Any) -> Any:
    return SCALE * x


def calling(x: Any) -> Any:
    return scaled(x) + 1.0


def even(n: int) -> bool:
    return n == 0 or odd(n - 1)


def odd(n: int) -> bool:
    return n != 0 and even(n - 1)


def enclosing(inside: Any) -> Callable[[Any], Any]:
    def inner(x: Any) -> Any:
        return x, inside

    return inner


def with_default(given: Any) -> Callable[..., Any]:
    def inner(x: Any, scale: Any = given) -> Any:
        return x, scale

    return inner


def with_keyword(given: Any) -> Callable[..., Any]:
    def inner(x: Any, *, scale: Any = given) -> Any:
        return x, scale

    return inner


def made(text: str, **names: Any) -> Callable[..., Any]:
    """Return a function without a source file."""
    exec(text, names)
    return names["made"]


class Caller:
    """An object that is called like a function."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, x: Any) -> Any:
        return self.scale * x

    def plus(self, x: Any) -> Any:
        return self.scale + x


class OtherCaller(Caller):
    def __call__(self, x: Any) -> Any:
        return self.scale / x


@dataclass(frozen=True)
class Settings:
    """Plain settings in a closure."""

    scale: float


@dataclass
class Remembering:
    """A user's settings: one that is not compared, and one that is no field."""

    scale: float = field(default=1.0, compare=False)

    def with_more(self, more: float) -> Remembering:
        self.more = more
        return self

    @functools.cached_property
    def remembered(self) -> float:
        return 2.0 * self.scale


class Slotted:
    """An object without a dictionary."""

    __slots__ = ("scale",)

    def __init__(self, scale: float) -> None:
        self.scale = scale


def with_attribute(given: Any) -> Callable[..., Any]:
    def inner(x: Any) -> Any:
        return x, inner.scale  # type: ignore[attr-defined]

    inner.scale = given  # type: ignore[attr-defined]
    return inner


class Scaled(np.ndarray[Any, Any]):
    """An array with a number of its own."""

    scale: float


def scaled_array(scale: float) -> Any:
    array = np.ones(3).view(Scaled)
    array.scale = scale
    return array


def with_inner_global(SCALE: float) -> Callable[[], Any]:
    def inner() -> Any:
        def innermost() -> Any:
            global SCALE  # noqa: PLW0602
            return SCALE

        return SCALE, innermost()

    return inner


DATA = """
from dataclasses import dataclass

@dataclass(frozen=True)
class made:
    x: float = 1.0

    def __call__(self):
        return self.x + {}
"""


def long_array(change: float) -> Any:
    array = np.zeros(5_000)
    array[2_500] = change
    return array


MAKERS: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "closure": (enclosing, 1, 2),
    "int and float": (enclosing, 1, 1.0),
    "number and text": (enclosing, 1, "1"),
    "true and one": (enclosing, True, 1),
    "text": (enclosing, "a", "b"),
    "bytes": (enclosing, b"a", b"b"),
    "zero of another sign": (enclosing, 0.0, -0.0),
    "tuple": (enclosing, (1, (2, 3)), (1, 2, 3)),
    "neighbours": (enclosing, ("ab", "c"), ("a", "bc")),
    "dict": (lambda n: enclosing({"a": n}), 1, 2),
    "set": (lambda n: enclosing({"a", "b", n}), "c", "d"),
    "long array": (lambda n: enclosing(long_array(n)), 1, 2),
    "shape": (lambda s: enclosing(np.zeros(s)), (2, 3), (3, 2)),
    "type of array": (lambda t: enclosing(np.zeros(3, dtype=t)), np.int64, np.float64),
    "array of objects": (lambda n: enclosing(np.array([None, n], dtype=object)), 1, 2),
    "kind of array": (lambda kind: enclosing(np.ones(3).view(kind)), np.ndarray, Scaled),
    "attribute of an array": (lambda n: enclosing(scaled_array(n)), 1.0, 2.0),
    "order of fields": (lambda f: enclosing(np.ones(1, [(n, float) for n in f])), "ab", "ba"),
    "sparse array": (lambda n: enclosing(sparse.csr_array([[0.0, n]])), 1.0, 2.0),
    "sparse matrix": (
        lambda kind: enclosing(kind([[0.0, 1.0]])),
        sparse.csr_array,
        sparse.csr_matrix,
    ),
    "name that is a global, too": (with_inner_global, 1.0, 2.0),
    "default": (with_default, 1, 2),
    "keyword default": (with_keyword, 1, 2),
    "called function": (enclosing, scaled, calling),
    "partial": (lambda n: functools.partial(scaled, n), 1, 2),
    "partial keyword": (lambda n: functools.partial(scaled, x=n), 1, 2),
    "bound method": (lambda n: Caller(n).plus, 1.0, 2.0),
    "another method": (lambda n: getattr(Caller(1.0), n), "plus", "__call__"),
    "callable object": (Caller, 1.0, 2.0),
    "another class": (lambda c: c(1.0), Caller, OtherCaller),
    "dataclass": (lambda n: enclosing(Settings(n)), 1.0, 2.0),
    "field that is not compared": (lambda n: enclosing(Remembering(n)), 1.0, 2.0),
    "what is no field": (lambda n: enclosing(Remembering().with_more(n)), 1.0, 2.0),
    "attribute of a function": (with_attribute, 1, 2),
    "mask of an array": (lambda n: enclosing(np.ma.MaskedArray([1.0, 2.0], [0, n])), 0, 1),
    "slots": (lambda n: enclosing(Slotted(n)), 1.0, 2.0),
    "compiled": (lambda n: numba.njit(enclosing(n)), 1, 2),
    "remembered": (lambda n: functools.lru_cache(enclosing(n)), 1, 2),
    "function of a package": (enclosing, np.maximum, np.minimum),
    "module": (enclosing, np, json),
    "frozen law": (lambda n: enclosing(stats.poisson(n)), 1.0, 2.0),
    "vectorised": (lambda n: np.vectorize(enclosing(n)), 1, 2),
    "constant without source": (lambda n: made(f"def made(x): return x + {n}"), 1, 2),
    "inner code without source": (lambda n: made(f"def made(x): return lambda: {n}"), 1, 2),
    "global without source": (lambda n: made("def made(x): return x + k", k=n), 1, 2),
    "name without source": (lambda n: made(f"def made(x): return x.{n}"), "real", "imag"),
    "method of data without source": (
        lambda n: made(DATA.format(n), __name__=__name__)(),
        1,
        2,
    ),
    "lambdas in one line": (lambda n: (lambda x: x + 1, lambda x: x + 2)[n], 0, 1),
}


@pytest.mark.parametrize("name", MAKERS)
def test_what_does_the_same_has_one_digest_and_everything_else_another(name: str) -> None:
    make, first, second = MAKERS[name]
    assert identity.digest(make(first)) == identity.digest(make(first))
    assert identity.digest(make(first)) != identity.digest(make(second))
    assert identity.digest(make(first)).startswith("v2:")


def test_globals_and_functions_that_are_called_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = identity.digest(calling)
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 3.0)
    changed = identity.digest(calling)
    monkeypatch.setattr(sys.modules[__name__], "scaled", even)
    assert len({before, changed, identity.digest(calling)}) == 3


def test_functions_that_call_each_other_have_an_end() -> None:
    assert identity.digest(even) == identity.digest(even)
    assert identity.digest(even) != identity.digest(odd)
    circle: list[Any] = [1]
    circle.append(circle)
    assert identity.digest(enclosing(circle)) == identity.digest(enclosing(circle))


def test_two_equal_parts_may_be_one() -> None:
    one, other = [1, 2], [1, 2]
    assert identity.digest((one, one)) == identity.digest((one, other))
    law, twin = bw.Law.uniform(0, 3), bw.Law.uniform(0, 3)
    assert identity.digest([law, law]) == identity.digest([law, twin])


def test_what_has_no_state_is_equal_to_nothing_in_another_session() -> None:
    lock, other = threading.Lock(), threading.Lock()
    assert identity.digest(enclosing(lock)) == identity.digest(enclosing(lock))
    assert identity.digest(enclosing(lock)) != identity.digest(enclosing(other))
    found = identity.digest(enclosing(lock))
    assert found.startswith("session:")
    assert "lock" in identity.doubt("v2:0", found)
    assert "only the session" in identity.doubt(found, "v2:0")
    assert identity.doubt("v2:1", "v2:0") == ""


def test_what_an_object_remembers_of_itself_is_no_part_of_it() -> None:
    used = Remembering(3.0)
    before = identity.digest(used)
    assert used.remembered == 6.0
    assert identity.digest(used) == before == identity.digest(Remembering(3.0))
    assert identity.same(used, Remembering(3.0))
    assert not identity.same(used, Remembering(4.0))
    assert not identity.same(used, Remembering(3.0).with_more(1.0))


IMPORTING = """
def whole(x):
    import inner_helper
    return inner_helper.rate * x

def part(x):
    from inner_helper import rate
    return rate * x

def nested(x):
    return [y for y in (lambda: part_of(x))()] if x else 0

def part_of(x):
    def inside():
        from math import pi
        from inner_helper import rate
        return rate * pi
    return inside()
"""


def test_what_a_function_imports_when_it_runs_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner_helper.py").write_text("rate = 1.0\n", encoding="utf-8")
    (tmp_path / "importing.py").write_text(IMPORTING, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    module, helper = (importlib.import_module(name) for name in ("importing", "inner_helper"))
    try:
        found = {name: identity.digest(getattr(module, name)) for name in ("part", "nested")}
        assert all(digest.startswith("v2:") for digest in found.values())
        told = identity.digest(module.whole)
        assert told.startswith("session:")
        assert "inner_helper" in identity.doubt("v2:0", told)
        helper.rate = 2.0
        for name, before in found.items():
            assert identity.digest(getattr(module, name)) != before, name
        monkeypatch.delitem(sys.modules, "inner_helper")
        (tmp_path / "inner_helper.py").unlink()
        assert identity.digest(module.part) not in found.values()
    finally:
        for name in ("importing", "inner_helper"):
            sys.modules.pop(name, None)


def test_drawing_from_a_stream_does_not_change_who_draws() -> None:
    rng = np.random.default_rng(1)
    draw = enclosing(rng)
    before = identity.digest(draw)
    rng.random()
    assert identity.digest(draw) == before


MODULE = """
{head}
from helper import shift
import helper
RATE = {rate}

@dataclass
class Box:
    size: int = {size}

def noise(x{annotation}, scale={scale}):{docstring}
    {comment}
    names = {{"a", "b", "c"}}
    return x * scale + RATE + shift(x) + helper.more(x) + Box().size + len(names)

if __name__ == "__main__":
    from bellweight.common import identity
    print(identity.digest(noise))
"""
PLAIN = {
    "head": "from dataclasses import dataclass", "rate": 1, "size": 1, "annotation": "",
    "scale": 1.0, "docstring": "", "comment": "pass",
}  # fmt: skip
HELPER = "LIMIT = 1\ndef shift(x):\n    return x + {0}\ndef more(x):\n    return LIMIT + {1}\n"


def write(folder: Path, helper: str, **parts: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "helper.py").write_text(helper, encoding="utf-8")
    script = folder / "script.py"
    script.write_text(MODULE.format(**{**PLAIN, **parts}), encoding="utf-8")
    return script


def digest_elsewhere(script: Path) -> str:
    """Return the digest that another process finds, with another seed of hashes."""
    environment = {**os.environ, "PYTHONHASHSEED": str(len(str(script)))}
    ended = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, encoding="utf-8", check=True
    )
    return ended.stdout.strip()


def digest_here(script: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the digest of the script's function, imported in this process."""
    monkeypatch.syspath_prepend(str(script.parent))
    for name in ("helper", "script"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return identity.digest(importlib.import_module("script").noise)


def test_another_process_finds_the_same_digest_and_sees_each_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = HELPER.format(1, 1)
    first = digest_elsewhere(write(tmp_path / "a", helper))
    # Another place, other line numbers, comments, annotations and docstrings change nothing.
    again = write(
        tmp_path / "another", "# a line more\n" + helper, annotation=": float",
        docstring='\n    "What it does."', comment="pass  # nothing",
        head="import os\nfrom dataclasses import dataclass\n",
    )  # fmt: skip
    assert first == digest_elsewhere(again) == digest_here(again, monkeypatch)
    changed = [
        write(tmp_path / "b", HELPER.format(2, 1)),
        write(tmp_path / "c", HELPER.format(1, 2)),
        write(tmp_path / "d", helper.replace("LIMIT = 1", "LIMIT = 2")),
        write(tmp_path / "e", helper, rate=2),
        write(tmp_path / "f", helper, size=2),
        write(tmp_path / "g", helper, scale=2.0),
    ]
    assert len({first, *(digest_here(script, monkeypatch) for script in changed)}) == 7


def test_a_source_that_changed_since_it_was_read_is_not_believed(tmp_path: Path) -> None:
    place = tmp_path / "late.py"
    place.write_text("def f(x):\n    return x + 1\n", encoding="utf-8")
    names: dict[str, Any] = {}
    exec(compile("def f(x):\n    return x + 2\n", str(place), "exec"), names)
    other: dict[str, Any] = {}
    exec(compile("def f(x):\n    return x + 1\n", str(place), "exec"), other)
    assert identity.digest(names["f"]) != identity.digest(other["f"])


# ---- linear models ---------------------------------------------------------------------------


def shop(noise: Callable[..., Any], initial: Any = None) -> bw.LinearModel:
    return bw.LinearModel(
        state_cost=[1.0], action_cost=[2.0], next_state=[[1.0]], next_action=[[1.0]],
        noise=bw.models.Sampled(noise, [-1.0]),
        initial=initial or bw.models.Independent([bw.Law.uniform(0, 3)]),
        discount=0.9, state_upper=9.0, state_lower=-9.0, action_upper=2.0, name="shop",
    )  # fmt: skip


def drawing(spread: int) -> Callable[..., Any]:
    def noise(states: Any, actions: Any, rng: np.random.Generator) -> Any:
        return rng.integers(-1 - spread, spread, size=(len(states), 1))

    return noise


def starting(most: int) -> bw.models.Sampled:
    def initial(n: int, rng: np.random.Generator) -> Any:
        return rng.integers(-most, most + 1, size=(n, 1))

    return bw.models.Sampled(initial, [0.0])


def test_a_linear_model_knows_its_functions(tmp_path: Path) -> None:
    model, twin, other = shop(drawing(1)), shop(drawing(1)), shop(drawing(2))
    assert model.digest == twin.digest != other.digest
    assert shop(drawing(1), starting(1)).digest != shop(drawing(1), starting(2)).digest
    settings = {
        "seed": 1, "judge": False, "simulation": bw.Simulation(episodes=50, horizon=10),
    }  # fmt: skip
    result = bw.solve(model, bw.Affine(), bw.Fixed(), **settings)
    result.save(tmp_path / "shop.npz")
    bw.Result.load(tmp_path / "shop.npz", model=twin)
    bw.solve(twin, bw.Affine(), bw.Fixed(), resume=tmp_path / "shop.npz", **settings)
    with pytest.raises(bw.errors.FileError, match="belongs to another model"):
        bw.Result.load(tmp_path / "shop.npz", model=other)
    with pytest.raises(bw.errors.ArgumentError, match="resume is the result of another model"):
        bw.solve(other, bw.Affine(), bw.Fixed(), resume=result, **settings)
    with pytest.raises(bw.errors.ArgumentError, match="the result belongs to another model"):
        bw.certify(other, result)
    certificate = bw.certify(model, result, episodes=50)
    assert bw.verify(twin, certificate).checks[0].passed
    assert not bw.verify(other, certificate).passed


def test_laws_that_run_into_each_other_are_told_apart() -> None:
    def start(*laws: tuple[list[float], list[float]]) -> str:
        return bw.LinearModel(
            state_cost=[1.0, 1.0], action_cost=[1.0], next_state=np.zeros((2, 2)),
            next_action=np.zeros((2, 1)), noise=bw.models.Independent([bw.Law.certain(0.0)] * 2),
            initial=bw.models.Independent([bw.Law(*law) for law in laws]), discount=0.9,
            state_upper=9.0, action_upper=1.0,
        ).digest  # fmt: skip

    first = start(([5.0, 1.0], [0.0, 1.0]), ([0.0], [1.0]))
    assert first != start(([5.0], [1.0]), ([0.0, 1.0], [0.0, 1.0]))


def test_an_earlier_version_is_named(tmp_path: Path) -> None:
    model = shop(drawing(1))
    result = bw.solve(
        model,
        bw.Affine(),
        bw.Fixed(),
        judge=False,
        simulation=bw.Simulation(episodes=50, horizon=10),
    )
    object.__setattr__(result, "model_digest", "0" * 64)
    result.save(tmp_path / "old.npz")
    with pytest.raises(
        bw.errors.FileError, match=r"by an earlier version of Bellweight.*solve again"
    ):
        bw.Result.load(tmp_path / "old.npz", model=model)


def test_a_model_that_only_this_session_knows_says_so(tmp_path: Path) -> None:
    lock = threading.Lock()

    def noise(states: Any, actions: Any, rng: np.random.Generator) -> Any:
        with lock:
            return rng.integers(-2, 1, size=(len(states), 1))

    model = shop(noise)
    settings = {"judge": False, "simulation": bw.Simulation(episodes=50, horizon=10)}
    result = bw.solve(model, bw.Affine(), bw.Fixed(), **settings)
    bw.certify(model, result, episodes=50)
    object.__setattr__(result, "model_digest", "session:" + "0" * 64)
    result.save(tmp_path / "session.npz")
    with pytest.raises(bw.errors.FileError, match=r"uses <unlocked _thread.lock.*plain functions"):
        bw.Result.load(tmp_path / "session.npz", model=model)
