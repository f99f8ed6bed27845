"""The benchmarks run in their quick mode, and a comparison notices what was lost."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[1] / "benchmarks" / "run.py"


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(RUN), *words]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("bench")
    figures, page = folder / "figures.json", folder / "page.md"
    words = ("distinct_states", "--quick", "--json", str(figures), "--page", str(page))
    found = bench(*words)
    assert "distinct_states.peer" in found.stdout, found.stderr
    return figures, page


def test_a_quick_run_writes_figures_and_a_page(figures: tuple[Path, Path]) -> None:
    report = json.loads(figures[0].read_text(encoding="utf-8"))
    names = [line["name"] for line in report["lines"]]
    assert names == ["distinct_states", "distinct_states.peer"]
    assert all(not line["wrong"] for line in report["lines"])
    assert report["machine"]["processor"]
    page = figures[1].read_text(encoding="utf-8")
    assert "## Drawing constraint states" in page
    assert "| time, against sorting with NumPy |" in page
    assert "states and CPU seconds: 3,000:" in page


def test_every_figure_has_a_title() -> None:
    for path in RUN.parent.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        figures = set(re.findall(rf'Line\(\s*"({path.stem}[^"]*)"', text))
        titles = set(re.findall(r'^    "([^" ]+)": "', text, flags=re.MULTILINE))
        assert figures <= titles, path.name
        assert ("def run(" in text) == ("\nTITLE = " in text), path.name


def test_every_benchmark_loads() -> None:
    names = [
        path.stem
        for path in RUN.parent.glob("*.py")
        if "def run(" in path.read_text(encoding="utf-8")
    ]
    assert len(names) > 10
    code = f"import sys; sys.path.insert(0, {str(RUN.parent)!r}); import {', '.join(names)}"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert found.returncode == 0, found.stderr.decode()


def test_noise_far_below_a_limit_is_no_loss() -> None:
    sys.path.insert(0, str(RUN.parent))
    from measure import Line, losses

    before = [Line("a", 0.01, target=1.0, limit=True), Line("b", 2.0, target=1.0, limit=True)]
    for ours, expected in (((0.2, 2.3), 0), ((0.3, 2.3), 1), ((0.2, 2.5), 1)):
        after = [Line(n, x, target=1.0, limit=True) for n, x in zip("ab", ours, strict=True)]
        found = losses([x.record() for x in after], [x.record() for x in before], 0.2)
        assert len(found) == expected
    skipped = [Line(n, skipped="busy machine") for n in "ab"]
    assert losses([x.record() for x in skipped], [x.record() for x in before], 0.2) == []
    assert len(losses([], [x.record() for x in before], 0.2)) == 2


def test_a_comparison_fails_on_a_loss_and_only_then(
    figures: tuple[Path, Path], tmp_path: Path
) -> None:
    report = json.loads(figures[0].read_text(encoding="utf-8"))
    base = tmp_path / "base.json"
    for factor, expected in ((1e-3, 0), (1e3, 1)):
        lines = [
            {**line, "ratio": line["ratio"] * factor} for line in report["lines"] if line["ratio"]
        ]
        base.write_text(json.dumps({"lines": lines}), encoding="utf-8")
        found = bench("distinct_states", "--quick", "--base", str(base))
        assert found.returncode == expected, found.stdout + found.stderr
        assert ("LOST distinct_states.peer: ratio" in found.stdout) == bool(expected)
