"""Runs the notebooks in `notebooks/` without Jupyter: a notebook is JSON with cells of Python.

`python -m tests.notebook_runs` runs them all and writes what they print and draw into them.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
_DPI = 120


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells that run, in order."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Run the cells in one namespace and return their outputs in the form that Jupyter stores."""
    names: dict[str, Any] = {"__name__": "__main__"}
    return [_run_cell("".join(cell["source"]), names) for cell in code_cells(notebook)]


def _run_cell(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    # Lines for Jupyter itself, such as %matplotlib inline, are no Python.
    lines = [line for line in source.splitlines() if not line.startswith("%")]
    tree = ast.parse("\n".join(lines))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stdout", "text": text})
    if isinstance(value, Figure):
        drawn = io.BytesIO()
        value.savefig(drawn, format="png", dpi=_DPI)
        picture = base64.b64encode(drawn.getvalue()).decode()
        data = {"image/png": picture, "text/plain": ["a figure"]}
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
    return outputs


def main() -> None:
    """Run all notebooks and store their outputs."""
    for path in NOTEBOOKS:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        for cell, outputs in zip(code_cells(notebook), run(notebook), strict=True):
            cell["outputs"] = outputs
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
