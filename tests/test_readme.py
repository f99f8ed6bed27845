"""Every Python block of the README and of the guides runs as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
GUIDES = sorted((ROOT / "docs").glob("*.md"))


def python_blocks(*pages: Path) -> list[str]:
    """The text of all ```python blocks of some pages."""
    texts = [page.read_text(encoding="utf-8") for page in pages]
    blocks = [
        re.findall(r"^```python\n(.*?)^```$", t, flags=re.DOTALL | re.MULTILINE) for t in texts
    ]
    return [block for page in blocks for block in page]


def test_the_readme_has_a_python_example() -> None:
    assert README.exists(), "README.md is missing"
    blocks = python_blocks(README)
    assert blocks, "README.md has no ```python block: its examples are run as tests"
    assert any("bw.solve(" in block for block in blocks)


@pytest.mark.parametrize("number", range(len(python_blocks(README, *GUIDES))))
def test_blocks_run_on_their_own(number: int, tmp_path: Path) -> None:
    script = tmp_path / f"block_{number + 1}.py"
    script.write_text(python_blocks(README, *GUIDES)[number], encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-W", "error", script.name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert run.returncode == 0, f"README block {number + 1} failed:\n{run.stderr}"
