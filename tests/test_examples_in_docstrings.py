"""Every example in a docstring of the public face runs and prints what it shows."""

from __future__ import annotations

import doctest
import inspect
import sys

import numpy as np
import pytest

import bellweight as bw

# Made by other calls, or shown at length in a how-to page.
WITHOUT = {
    "BellweightError", "Certificate", "Enriched", "Evaluation", "EventModel", "LinearModel",
    "LocalRows", "Resampled", "Rollout", "Status", "StepModel", "report", "sample_states",
}  # fmt: skip
NAMES = [name for name in bw.__all__ if not inspect.ismodule(getattr(bw, name))]


def examples(name: str) -> doctest.DocTest | None:
    thing = getattr(bw, name)
    place = sys.modules[thing.__module__]
    found = doctest.DocTestFinder(recurse=False).find(thing, name, module=place)
    return next((test for test in found if test.examples), None)


def test_names_have_examples() -> None:
    assert {name for name in NAMES if examples(name) is None} <= WITHOUT


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT])
def test_an_example_prints_what_it_shows(name: str) -> None:
    test = examples(name)
    assert test is not None
    test.globs = {"bw": bw, "np": np}
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=told.append)
    assert not runner.failures, "".join(told)
