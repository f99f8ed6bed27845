"""Without the packages of others nothing breaks, and what needs one names its extra."""

from __future__ import annotations

import subprocess
import sys

HIDING = """
import sys
from importlib.abc import MetaPathFinder

class Hidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("gymnasium", "quantecon", "pandas", "polars", "pyarrow"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
import bellweight as bw
from bellweight import interchange as bi

queue = bw.problems.single_queue(capacity=6, initial="empty")
calls = {
    "gymnasium": [lambda: bi.to_gymnasium(queue)],
    "quantecon": [lambda: bi.to_quantecon(queue)],
    "pandas": [lambda: bi.to_frame(queue, "pandas")],
    "polars": [lambda: bi.to_frame(queue, "polars"), lambda: result.to_frame("polars")],
}
result = bw.solve(queue, bw.Polynomial(1), bw.Fixed(), judge=False)
for extra, tried in calls.items():
    for call in tried:
        try:
            call()
        except bw.BellweightError as problem:
            assert isinstance(problem, ImportError)
            assert f"pip install 'bellweight[{extra}]'" in str(problem), problem
        else:
            raise SystemExit(f"{extra} was found")
assert list(bi.to_frame(queue))[0] == "state"
assert result.to_frame()["iteration"] == [1]
again = bi.from_frame(bi.to_frame(queue), 0.98, 0)
assert again.n_pairs == queue.n_pairs
matrices, rewards = bi.to_toolbox(queue)
assert bi.from_toolbox(matrices, rewards, 0.98).n_states == 7

class Table:  # an environment needs no Gymnasium to be read
    P = {0: {0: [(1.0, 0, 1.0, True)]}}
    action_space = None
    def step(self, action): ...

assert bi.from_gymnasium(Table(), 0.9).n_states == 2
print("all well")
"""


def test_every_optional_package_missing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HIDING],
        capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "all well", done.stderr


def test_extras_are_those_of_the_package() -> None:
    import tomllib
    from pathlib import Path

    from bellweight.common.optional import EXTRAS

    project = tomllib.loads(
        (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    )
    offered = project["project"]["optional-dependencies"]
    for package, extra in EXTRAS.items():
        assert any(line.startswith(package) for line in offered[extra]), package
