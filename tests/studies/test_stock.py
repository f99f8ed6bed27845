"""The study of inventories and machines, small: what it prints, and that it fails on nonsense."""

from __future__ import annotations

from dataclasses import replace

import pytest

from studies.stock import QUICK, main, tutorial


def test_the_tutorial_part_stays_near_the_optimum() -> None:
    rows = {row["policy"]: row for row in tutorial(replace(QUICK, kinks=32)).rows}
    assert -1e-9 <= rows["ours"]["above"] < 0.5
    assert -1.0 < rows["proven bound"]["above"] < 0.0


@pytest.mark.slow
@pytest.mark.parametrize("part", ["perishable", "lost_sales", "ageing", "machines"])
def test_parts_run_small(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([part, "--quick"]) == 0
    assert "ours" in capsys.readouterr().out or part == "perishable"


def test_an_unknown_part_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["queues"])
    assert "no part 'queues': expected some of perishable" in capsys.readouterr().err
