"""Compiling a user's functions: what works, what is refused and how, and what is kept on disk."""

from __future__ import annotations

import importlib.util
import inspect
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import event_models as em
import numba
import numpy
import numpy as np
import pytest

import bellweight as bw
from bellweight.cli.progress import Progress
from bellweight.common.code_cache import cache_folder
from bellweight.models import kernels
from bellweight.models.compile import Source

RATES = [0.25, 0.5]  # a list
PRICES = np.array([0.0, 1.0, 4.0, 9.0, 16.0, 25.0])
CAP = np.array([np.inf, np.nan, -np.inf])
NOTHING = None
shape = {"not": "a constant"}


def any_price(state: Any) -> float:
    return PRICES[state[0]]


def chance(event: Any) -> float:
    return RATES[event]


def step(state: Any, event: Any) -> None:
    if event == 1:
        state[0] += 1
    elif state[0] > 0:
        state[0] -= 1


def build(**options: Any) -> bw.EventModel:
    """A queue with at most five jobs, as plain Python unless said otherwise."""
    given: dict[str, Any] = {
        "dimension": 1, "actions": ["go"], "events": ["down", "up"], "cost": any_price,
        "probability": chance, "move": step, "discount": 0.9, "upper": 5, "compiled": False,
    }  # fmt: skip
    return bw.EventModel(**{**given, **options})


def costs(cost: Callable[..., float]) -> list[float]:
    """What a cost function gives in states 0, ..., 5, through the written-out text."""
    found: list[float] = build(cost=cost).to_tabular().cost.tolist()
    return found


def module_with(folder: Path, name: str, text: str) -> Any:
    """Import a file with this text."""
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_constants_of_every_kind() -> None:
    local = np.float32(0.5)
    flag, table = True, np.array([[1, 2], [3, 4]], dtype=np.int8)

    def cost(state: Any) -> float:
        bonus = 0.0 if NOTHING is None else 1.0
        if flag and CAP[0] > 1e300 and CAP[2] < -1e300 and CAP[1] != CAP[1]:
            bonus += local + table[1, 0] + RATES[1]
        return state[0] + bonus

    assert costs(cost) == [x + 4.0 for x in range(6)]


def test_helpers_modules_and_aliases() -> None:
    weight = 3.0

    def inner(x: float) -> float:
        return weight * numpy.sqrt(x)

    @numba.njit
    def doubled(x: float) -> float:
        return 2.0 * x

    def cost(state: Any) -> float:
        return doubled(inner(float(state[0]))) + math.floor(0.5) + np.abs(-1.0)

    assert costs(cost) == pytest.approx([6.0 * x**0.5 + 1.0 for x in range(6)])


def test_names_inside_comprehensions_annotations_and_attributes() -> None:
    def cost(state: Any) -> float:
        """A docstring."""
        total: float = 0.0
        for price in [PRICES[i] for i in range(state.shape[0] + 1)]:
            total += price
        return total + max(0, state[0])

    assert costs(cost) == [1.0 + x for x in range(6)]


def test_one_name_with_two_meanings(tmp_path: Path) -> None:
    chances = "RATE = 0.25\ndef probability(state, event):\n    return RATE + 0.0 * state[0]\n"
    first = module_with(tmp_path, "first", chances)
    second = module_with(tmp_path, "second", "RATE = 7.0\ndef cost(state):\n    return RATE\n")
    tabular = build(probability=first.probability, cost=second.cost).to_tabular()
    assert tabular.cost.tolist() == [7.0] * 6
    assert tabular.transition.toarray()[2].tolist() == [0.0, 0.25, 0.5, 0.25, 0.0, 0.0]


def test_functions_of_a_factory_keep_their_own_constants() -> None:
    def factory(weight: float) -> Callable[..., float]:
        def cost(state: Any) -> float:
            return weight * state[0]

        return cost

    models = [build(cost=factory(weight)) for weight in (1.0, 2.0)]
    assert models[0].source.key != models[1].source.key
    assert models[0].digest != models[1].digest
    assert [model.to_tabular().cost[1] for model in models] == [1.0, 2.0]
    assert build(cost=factory(1.0)).source == models[0].source


def test_other_numbers_are_another_model_and_the_same_module() -> None:
    models = [build(**change) for change in (
        {}, {"upper": 4}, {"initial": (1,)}, {"probability": [[0.25, 0.5]]},
        {"probability": [[0.25, 0.75]]}, {"move": [[-1], [1]]}, {"move": [[-1], [2]]},
        {"actions": 2}, {"initial": bw.models.Geometric(0.5)},
        {"initial": bw.models.Geometric(0.6)},
    )]  # fmt: skip
    # A function of the event alone is the same table as the one given in figures.
    assert len({model.digest for model in models}) == 9
    # Only the number of actions and whether moves are jumps are part of the text.
    assert len({model.source.key for model in models}) == 3
    assert build().source.key == build(cost_growth=1.0, name="other", discount=0.5).source.key
    assert build().digest != build(discount=0.5).digest


def test_compiled_functions_with_helpers_and_an_index_that_runs_out() -> None:
    limits = np.array([0.0, 1.0, 4.0, 9.0])

    def square(x: Any) -> float:
        return limits[x] + sum([0.0 * rate for rate in RATES])

    def cost(state: Any) -> float:
        return square(state[0])

    model = build(cost=cost, upper=None, compiled=True)
    found, _, _ = model.expand(np.arange(4)[:, None], np.zeros(4, dtype=np.int64))
    assert found.tolist() == [0.0, 1.0, 4.0, 9.0]
    # Beyond the table there is an error, not whatever lies in memory there.
    with pytest.raises(bw.errors.ModelError, match=r"in state \[4\].*IndexError.*out of bounds"):
        model.expand(np.arange(6)[:, None], np.zeros(6, dtype=np.int64))


def cannot_compile(state: Any) -> float:
    total = 0.0 * state[0]
    return total + sum(x for x in (1.0, 2.0))


def test_a_function_that_cannot_be_compiled_is_named_with_file_and_line() -> None:
    line = cannot_compile.__code__.co_firstlineno
    with pytest.raises(bw.errors.ModelError, match="cannot be compiled") as caught:
        build(cost=cannot_compile, compiled=True)
    text = str(caught.value)
    assert "cost function 'cannot_compile'" in text
    assert any(f"(test_event_compile.py, line {line + k})" in text for k in range(3))
    assert "compiled=False" in text
    assert text.isprintable()  # no colours of the compiler
    # The slow path takes it.
    assert costs(cannot_compile) == [3.0] * 6


def test_a_rule_that_cannot_be_compiled_is_named_too() -> None:
    def rule(state: Any) -> int:
        return int(sum(0 for _ in state))

    with pytest.raises(
        bw.errors.ModelError, match=r"rule function 'rule' cannot be compiled \(test_eve"
    ):
        bw.evaluate(em.network(), bw.Rule(rule), 10)


@pytest.mark.parametrize("role", ["cost", "probability", "admissible"])
def test_a_function_without_an_answer_in_every_case(role: str) -> None:
    def forgetful(state: Any) -> Any:
        if state[0] < 3:
            return 0.25
        return None

    with pytest.raises(
        bw.errors.ModelError, match=rf"{role} function 'forgetful' .*returns .*a number"
    ):
        build(**{role: forgetful}, compiled=True)


def in_a_cell(text: str) -> Any:
    """Run text as a shell does that keeps no source."""
    names: dict[str, Any] = {}
    exec(text, names)
    return names["cost"]


def with_module(state: Any) -> float:
    return float(os.getpid() + state[0])


def with_dictionary(state: Any) -> float:
    return float(shape["not"] == state[0])


def with_nothing(state: Any) -> float:
    return no_such_name * state[0]  # type: ignore[name-defined,no-any-return] # noqa: F821


def with_itself(state: Any) -> float:
    return with_itself(state)


def with_stranger(state: Any, colour: Any) -> float:
    return state[0] * colour  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (lambda state: 1.0, "cost is <function <lambda>.*plain function written with def"),
        (len, "cost is <built-in function len>, expected a plain function"),
        (numba.njit(any_price), "cost is .*expected a plain function written with def"),
        (in_a_cell("def cost(state):\n    return 1.0"), "source of cost function 'cost' cannot be"),
        (with_module, "cost function uses the module 'os', expected only numpy and math"),
        (with_dictionary, "uses 'shape' of type dict, expected numbers"),
        (with_nothing, "cost function 'with_nothing' uses 'no_such_name', which is not defined"),
        (with_itself, "cost function 'with_itself' calls itself"),
        (with_stranger, "'with_stranger' takes 'colour', expected only .*state, action"),
        (3.0, "cost is 3.0, expected a plain function"),
    ],
    ids=[
        "lambda", "built-in", "compiled", "no source", "module", "dictionary", "undefined",
        "recursion", "argument", "number",
    ],
)  # fmt: skip
def test_functions_that_are_refused(cost: Any, message: str) -> None:
    for compiled in (False, True):
        with pytest.raises(bw.errors.ModelError, match=message):
            build(cost=cost, compiled=compiled)


def test_a_notebook_cell_keeps_its_source() -> None:
    # What IPython does: the text of the cell is known to linecache under the cell's name.
    import linecache

    text = "def cost(state):\n    return 2.0 * state[0]\n"
    linecache.cache["<cell 1>"] = (len(text), None, text.splitlines(keepends=True), "<cell 1>")
    names: dict[str, Any] = {}
    exec(compile(text, "<cell 1>", "exec"), names)
    assert costs(names["cost"])[3] == 6.0


SCRIPT = """
import json, time
import bellweight as bw

RATE = 0.3

def cost(state):
    return 1.0 * state[0]

def probability(event):
    return RATE

def move(state, event):
    if event == 0:
        state[0] += 1
    elif state[0] > 0:
        state[0] -= 1

began = time.process_time()
model = bw.EventModel(
    dimension=1, actions=["go"], events=["up", "down"], cost=cost, probability=probability,
    move=move, discount=0.9,
)
found = bw.evaluate(model, bw.Uniform(), 100, horizon=20, seed=1, jobs=1)
print(json.dumps([time.process_time() - began, found.mean, model.source.key]))
"""


def test_a_second_process_finds_the_model_compiled(tmp_path: Path) -> None:
    script, cache = tmp_path / "script.py", tmp_path / "cache"
    script.write_text(SCRIPT, encoding="utf-8")
    environment = {**os.environ, "BELLWEIGHT_CACHE": str(cache)}
    environment.pop("NUMBA_CACHE_DIR", None)  # it would put the compiled code elsewhere

    def run() -> tuple[float, float, str]:
        ended = subprocess.run(
            [sys.executable, script],
            env=environment,
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        seconds, mean, key = json.loads(ended.stdout)
        return seconds, mean, key

    def kept() -> dict[str, int]:
        entries = [entry for entry in cache.rglob("*") if entry.is_file()]
        return {str(entry): entry.stat().st_mtime_ns for entry in entries}

    cold = run()
    before = kept()
    assert str(cache / f"model_{cold[2]}.py") in before
    assert sum(name.endswith(".nbc") for name in before) >= 4
    warm = run()
    assert kept() == before
    assert warm[1:] == cold[1:]
    assert warm[0] < cold[0] / 2.0


def test_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELLWEIGHT_CACHE", str(tmp_path / "named" / "deep"))
    assert cache_folder() == tmp_path / "named" / "deep"
    assert cache_folder().is_dir()
    monkeypatch.delenv("BELLWEIGHT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / "bellweight"
    # Where nothing can be written, compiled models go to the folder for temporary files.
    blocked = tmp_path / "file"
    blocked.write_text("not a folder", encoding="utf-8")
    monkeypatch.setenv("BELLWEIGHT_CACHE", str(blocked / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert cache_folder() == tmp_path / f"bellweight-{os.getuid()}"


COMPILING = "compiling the model, about 3 s, once ...\n"
ROWS = "compiling the model's rows, about 3 s, once ...\n"
EPISODES = "compiling the simulation of a policy, about 6 s, once ...\n"


@pytest.mark.slow  # the same in one process: test_solve_says_what_it_compiles
def test_the_command_line_announces_compiling_but_not_loading(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        """
import bellweight as bw

def cost(state):
    return 1.0 * state[0]

def make():
    return bw.EventModel(
        dimension=1, actions=2, events=2, cost=cost, probability=[[0.3, 0.2], [0.3, 0.4]],
        move=[[1], [-1]], discount=0.8, initial=bw.models.Geometric(0.5),
    )
""",
        encoding="utf-8",
    )
    words = ["solve", "mine.py:make", "--states", "9", "--episodes", "9", "--method", "random"]
    script = "import sys; from bellweight.cli import run; sys.exit(run(sys.argv[1:]))"
    for expected in (COMPILING + ROWS + EPISODES, ""):
        found = subprocess.run(
            [sys.executable, "-c", script, *words],
            cwd=tmp_path, env={**os.environ, "BELLWEIGHT_CACHE": str(tmp_path)}, check=True,
            capture_output=True, encoding="utf-8",
        )  # fmt: skip
        assert found.stderr == expected


@pytest.mark.slow
def test_solve_says_what_it_compiles_and_does_not_count_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BELLWEIGHT_CACHE", str(tmp_path))
    model = build(compiled=True, upper=4)
    rows = bw.SampledRows(np.arange(5)[:, None])
    assert capsys.readouterr().err == COMPILING
    began = time.perf_counter()
    result = bw.solve(model, bw.Polynomial(1), bw.Fixed(), rows=rows, judge=False)
    elapsed = time.perf_counter() - began
    assert capsys.readouterr().err == ROWS
    assert result.seconds < 0.5 * elapsed
    bw.solve(model, bw.Polynomial(1), bw.Fixed(), rows=rows)
    assert capsys.readouterr().err == EPISODES
    bw.solve(model, bw.Polynomial(1), bw.Fixed(), rows=rows)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("wanted", "heard"), [(None, COMPILING), (True, COMPILING), (False, "")])
def test_no_progress_means_no_announcement(
    wanted: bool | None, heard: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress("working", wanted):
        for shift in (1, 2):
            assert numba.njit(lambda x, shift=shift: x + shift)(1) == 1 + shift
    assert capsys.readouterr().err == heard


def test_functions_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build()

    def first(state: Any) -> int:
        return 0

    expected = model.loops_with(rule=first).source.text
    digest = build().digest
    read = inspect.getsource

    def rule_only(function: Any) -> str:
        assert function is first, "a function of the model is read again"
        return read(function)

    monkeypatch.setattr(inspect, "getsource", rule_only)
    assert model.loops_with(rule=first).source.text == expected
    assert model.digest == digest


def test_the_digest_does_not_depend_on_our_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"probability": [[0.25, 0.5]], "move": [[-1], [1]], "initial": bw.models.Geometric(0.5)}
    before = [build(), build(**data)]

    loops = kernels.joined("events")
    monkeypatch.setattr(kernels, "joined", lambda kind: loops + "# another version")
    for model, after in zip(before, [build(), build(**data)], strict=True):
        assert model.source.text != after.source.text
        assert model.digest == after.digest
    different = {"probability": [[0.25, 0.25]]}, {"move": [[1], [-1]]}, {"initial": (0,)}
    digests = {build(**{**data, **change}).digest for change in ({}, *different)}
    assert len(digests) == 4


def test_threads_that_begin_together_share_one_module() -> None:
    source = Source("import time\ntime.sleep(0.05)\n", compiled=False)
    with ThreadPoolExecutor(4) as pool:
        modules = list(pool.map(lambda _: source.load(), range(4)))
    assert all(module is modules[0] for module in modules)
