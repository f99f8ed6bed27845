"""Laws of random numbers as options: what `bellweight problems` shows can be typed."""

from __future__ import annotations

import numpy as np
import pytest
from cli_runs import failure

import bellweight as bw
from bellweight.cli import sources
from bellweight.models.laws import Law


def test_every_default_that_is_listed_can_be_typed() -> None:
    """Shown, read, and shown again: the same words."""
    shown = [
        word for name, _ in sources.problem_list() for word in sources.problem_parameters(name)
    ]
    assert any(word.startswith("demand=normal:6,3.5,0,10") for word in shown)
    for word in shown:
        assert "(" not in word, f"{word} is Python, not an option"
        key, _, value = word.partition("=")
        assert sources._text(sources.options([word])[key]) == value


@pytest.mark.parametrize(
    ("words", "law"),
    [("poisson:5,20", Law.poisson(5.0, 20)), ("law:0=0.25,3=0.75", Law([0, 3], [0.25, 0.75]))],
)
def test_finite_laws(words: str, law: Law) -> None:
    found = sources.options([f"demand={words}"])["demand"]
    np.testing.assert_array_equal(found.values, law.values)
    np.testing.assert_array_equal(found.chances, law.chances)


def test_a_problem_takes_the_law(capsys: pytest.CaptureFixture[str]) -> None:
    model = sources.model("continuous_inventory", sources.options(["demand=normal:5,1,0,10"]))
    other = bw.problems.continuous_inventory(demand=bw.models.Normal(5, 1, 0, 10))
    assert model.digest == other.digest  # type: ignore[union-attr]
    for wrong in ("normal:5,x", "normal:5,-1", "poisson:5", "law:1", "law:1=0.5"):
        words = ["solve", "continuous_inventory", "--option", f"demand={wrong}"]
        assert "is no law, expected words such as" in failure(words, capsys)[1]
