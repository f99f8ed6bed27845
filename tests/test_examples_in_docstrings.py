"""Docstrings of the public face: one convention, and examples that print what they show."""

from __future__ import annotations

import doctest
import inspect
import re
import sys

import numpy as np
import pytest

import bellweight as bw

NAMES = [name for name in bw.__all__ if not inspect.ismodule(getattr(bw, name))]
RULELESS = ("BellweightError", "Status")  # nobody calls them


def examples(name: str) -> doctest.DocTest | None:
    thing = getattr(bw, name)
    place = sys.modules[thing.__module__]
    found = doctest.DocTestFinder(recurse=False).find(thing, name, module=place)
    return next((test for test in found if test.examples), None)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in RULELESS])
def test_every_parameter_is_explained(name: str) -> None:
    thing = getattr(bw, name)
    said = inspect.getdoc(thing) or ""
    named = re.findall(r"^    (\w+): ", said, flags=re.MULTILINE)
    assert named == list(dict.fromkeys(named)), "explained twice"
    assert set(named) == set(inspect.signature(thing).parameters)
    assert ("\nReturns:\n" in said) == inspect.isfunction(thing)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_prints_what_it_shows(name: str) -> None:
    test = examples(name)
    assert test is not None
    test.globs = {"bw": bw, "np": np}
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=told.append)
    assert not runner.failures, "".join(told)
