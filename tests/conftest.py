"""Settings shared by all tests, and a few small models."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import bellweight as bw

_COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
# The same examples in every run; `HYPOTHESIS_PROFILE=search pytest` looks for new ones.
settings.register_profile("fixed", derandomize=True, max_examples=40, **_COMMON)
settings.register_profile(
    "search",
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "2000")),
    print_blob=True,
    **_COMMON,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

# What a terminal or a build server tells programs about how to print; tests that are about this
# set it themselves.
_OF_THE_TERMINAL = (
    "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "GITHUB_ACTIONS", "LINES", "NO_COLOR",
    "PY_COLORS", "TERM", "TERMINAL_WIDTH", "TTY_COMPATIBLE", "TTY_INTERACTIVE",
)  # fmt: skip


def pytest_configure() -> None:
    """Start from the same surroundings everywhere, before a module reads them on import."""
    for name in _OF_THE_TERMINAL:
        os.environ.pop(name, None)


LONGEST = (
    "test_kernels", "test_readme", "test_report_browser", "test_surroundings", "test_fuzz",
    "test_row_blocks", "test_order_problems", "test_examples", "test_certificate",
    "test_certificate_forgery", "test_contraction", "test_event_exact", "test_event_model",
    "test_step_model", "test_cli", "test_table1", "test_parallel", "test_table_passes",
    "test_reproduce_all", "test_new", "test_packaging", "test_rich_bases", "test_pricing",
    "test_notebooks",
)  # fmt: skip
"""Files that take ten seconds of CPU or more, the longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files: what begins late must not keep everybody waiting."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


_crashed: list[str] = []


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    """Remember workers that died: tests that they never began are not missed by anybody else."""
    if error:
        _crashed.append(str(node.gateway.id))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what tests want to be seen also where they pass."""
    reports = [report for group in terminalreporter.stats.values() for report in group]
    for report in reports:
        for name, text in getattr(report, "user_properties", ()):
            if name == "told" and report.when == "call":
                terminalreporter.write_line(text)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run whose workers died, whatever was counted."""
    if _crashed and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C works as in the foreground of a shell, here and in processes that are started here.

    In the background SIGINT is ignored, and children inherit that; a signal that has a handler
    here has its default there.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def two_states() -> bw.TabularModel:
    """Two states, two actions: stay for the state's price, or move to the other one for 1."""
    return bw.TabularModel.from_arrays(
        cost=[[0.0, 1.0], [3.0, 1.0]],
        transition=[np.eye(2), np.eye(2)[::-1]],
        discount=0.5,
        initial=[0.25, 0.75],
        action_labels=["stay", "move"],
        state_labels=["cheap", "dear"],
    )


@pytest.fixture
def small_queue() -> bw.TabularModel:
    """The paper's queue with 31 states."""
    return bw.problems.single_queue(capacity=30, discount=0.95)


@pytest.fixture
def cycling_of_three() -> bw.TabularModel:
    """Five states, certain transitions: PIA with a cubic basis goes round three policies."""
    successor = np.array([[0, 2], [4, 1], [2, 4], [1, 2], [4, 3]])
    return bw.TabularModel.from_arrays(
        cost=[[22.0, 19.0], [3.0, 0.0], [12.0, 15.0], [10.0, 28.0], [26.0, 27.0]],
        transition=[np.eye(5)[successor[:, action]] for action in (0, 1)],
        discount=0.9,
        initial=np.eye(5)[0],
    )


@pytest.fixture(scope="session")
def queue() -> bw.TabularModel:
    """The paper's queue, made small."""
    return bw.problems.single_queue(capacity=200)


@pytest.fixture(scope="session")
def result(queue: bw.TabularModel) -> bw.Result:
    """What DIA finds on the small queue."""
    return bw.solve(queue, bw.Polynomial(2), bw.DIA())
