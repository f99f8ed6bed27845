"""The same answers from other kernels: older and newer BLAS code, and code for no special CPU.

One process for each setting solves the list of `numerics_models.py`, but for the setting that this
machine has of its own. Rounding may differ; the status and the policy may not, nor bounds and costs
in their first six digits.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numerics_models
import pytest
from llvmlite import binding
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

pytestmark = pytest.mark.timeout(3000)

OWN = "own"
NUMPY = "NPY_DISABLE_CPU_FEATURES"
# NumPy's own code for this CPU, which one of the time of Nehalem does not run either.
NEWER = " ".join(name for name in __cpu_dispatch__ if __cpu_features__[name])
SETTINGS = {
    "generic": {"NUMBA_CPU_NAME": "generic"},  # compiles code of its own at first: it begins
    OWN: {},  # before those that may be the same
    "Nehalem": {"OPENBLAS_CORETYPE": "Nehalem", NUMPY: NEWER},
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "SkylakeX": {"OPENBLAS_CORETYPE": "SkylakeX"},
}
NEEDED = {"Nehalem": "sse4.2", "Haswell": "avx2", "SkylakeX": "avx512vl"}
SECONDS = 900  # for one process, on a busy machine; alone it takes a minute
DIGITS = 1e-6


@dataclass
class Run:
    """What one process said, and how it ended: None if it had to be stopped."""

    code: int | None
    words: str
    kernels: dict[str, Any] = field(default_factory=dict)
    begun: str = ""
    found: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def ending(self) -> str:
        """How the process ended, for a message."""
        how = f"not within {SECONDS} s" if self.code is None else f"with code {self.code}"
        return f"ended {how} in {self.begun!r}: {self.words[-500:]}"


def run(setting: str, *, every: bool) -> Run:
    """Solve the list, or the short one, in a process of its own."""
    environment = {
        name: value for name, value in os.environ.items()
        if name not in ("OPENBLAS_CORETYPE", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", NUMPY)
    }  # fmt: skip
    environment |= {**SETTINGS[setting], "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, numerics_models.__file__, *(["--all"] if every else [])]
    try:
        ended = subprocess.run(
            words, env=environment, check=False, capture_output=True, timeout=SECONDS
        )
        code, out, err = ended.returncode, ended.stdout, ended.stderr
    except subprocess.TimeoutExpired as late:
        code, out, err = None, late.stdout or b"", late.stderr or b""
    told = Run(code, err.decode())
    for line in out.decode().splitlines():
        part = json.loads(line)
        if "blas" in part:
            told.kernels = part
        elif "begun" in part:
            told.begun = part["begun"]
        else:
            told.found[part["name"]] = part
    return told


@pytest.fixture(scope="module", params=["short", pytest.param("whole", marks=pytest.mark.slow)])
def extent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def runs(extent: str) -> dict[str, Run]:
    def one(setting: str) -> Run:
        if setting in NEEDED and begun[OWN].result().kernels.get("blas") == [setting]:
            return begun[OWN].result()
        return run(setting, every=extent == "whole")

    begun: dict[str, Future[Run]] = {}
    with ThreadPoolExecutor(2) as pool:
        for setting in SETTINGS:
            begun[setting] = pool.submit(one, setting)
    return {setting: ending.result() for setting, ending in begun.items()}


def lacking(setting: str) -> str:
    """The feature that this CPU would need for a setting and does not have."""
    feature = NEEDED.get(setting, "")
    return "" if not feature or binding.get_host_cpu_features().get(feature) else feature


def alike(ours: float | None, theirs: float | None, size: float) -> bool:
    """Whether two numbers agree to six digits, of themselves or of the cost they stand beside."""
    if ours is None or theirs is None:
        return ours is theirs
    return math.isclose(ours, theirs, rel_tol=DIGITS, abs_tol=DIGITS * size)


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """What two answers to one problem do not have in common."""
    found = [
        f"{key} {ours.get(key)} and {theirs.get(key)}"
        for key in ("status", "policy")
        if ours.get(key) != theirs.get(key)
    ]
    size = abs(ours.get("cost") or 0.0)
    found += [
        f"{key} {ours.get(key)} and {theirs.get(key)}"
        for key in ("lower_bound", "objective", "cost")
        if not alike(ours.get(key), theirs.get(key), size)
    ]
    return found


def test_every_problem_is_solved_by_this_machine(runs: dict[str, Run], extent: str) -> None:
    own = runs[OWN]
    wrong = {name: part["status"] for name, part in own.found.items()
             if part["status"] != "CONVERGED"}  # fmt: skip
    assert wrong == {}
    assert own.code == 0, own.ending
    names = [problem.name for problem in numerics_models.problems(every=extent == "whole")]
    assert list(own.found) == names
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("setting", [name for name in SETTINGS if name != OWN])
def test_other_kernels_give_the_same_answers(
    setting: str, runs: dict[str, Run], record_property: Any
) -> None:
    other, own = runs[setting], runs[OWN]
    missing = lacking(setting)
    if missing:
        # Such code cannot run here. That it does not is checked; that it was not is told.
        assert other.code not in (0, None), f"{setting} runs without {missing}"
        record_property("told", f"kernels {setting}: not run, this CPU has no {missing}")
        return
    told = f"kernels {setting}: BLAS {other.kernels['blas']}, Numba for {other.kernels['numba']}"
    record_property("told", told)
    if setting in NEEDED and binding.get_host_cpu_features():
        assert other.kernels["blas"] == [setting]
    assert other.kernels != own.kernels or setting in own.kernels["blas"]
    common = [name for name in own.found if name in other.found]
    found = {name: differences(own.found[name], other.found[name]) for name in common}
    wrong = [f"{name}: {'; '.join(what)}" for name, what in found.items() if what]
    assert not wrong, f"{len(wrong)} of {len(found)} problems differ:\n" + "\n".join(wrong)
    assert other.code == 0, other.ending
    assert other.found.keys() == own.found.keys()
