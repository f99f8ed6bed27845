"""What is published: a wheel and a source distribution that install and work on their own."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import yaml

import bellweight as bw

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
NEEDED = ["bellweight/py.typed", "bellweight/display/assets/page.css", "bellweight_command.py"]
SOLVE = """
import bellweight as bw
queue = bw.problems.single_queue(capacity=30)
result = bw.solve(queue, bw.Polynomial(2), bw.DIA())
bw.report(result, "queue.html")
print(bw.__file__, result.status.name)
"""


def out(*command: object, cwd: Path) -> str:
    """Run a command away from the repository and return what it printed."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    clean = {name: value for name, value in os.environ.items() if name not in hidden}
    ended = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=clean,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, f"{command}:\n{ended.stdout}{ended.stderr}"
    return ended.stdout


def sources() -> set[str]:
    """The files that a wheel must hold: those of the package under src."""
    unwanted = {"__pycache__", "bellweight.egg-info"}
    return {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*")
        if path.is_file() and not unwanted & set(path.relative_to(SOURCE).parts)
    }


def check_metadata(text: str) -> None:
    found = email.message_from_string(text)
    assert found["Name"] == "bellweight"
    assert found["Version"] == bw.__version__
    assert found["License-Expression"] == "MIT"
    assert found["Requires-Python"] == ">=3.11"
    assert "discounted, infinite-horizon" in found["Summary"]
    assert len(found["Summary"]) <= 512
    assert found["Description-Content-Type"] == "text/markdown"
    assert "**Scope:** discounted costs, infinite horizon" in found.get_payload()


def wheel_in(folder: Path) -> Path:
    """The wheel that was built."""
    return folder / f"bellweight-{bw.__version__}-py3-none-any.whl"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel, the source distribution and the copy they were built from."""
    folder = tmp_path_factory.mktemp("built")
    # The copy is what git knows, so that nothing untracked gets in and nothing is written here.
    copy = folder / "copy"
    out("git", "clone", "-q", ROOT, copy, cwd=folder)
    for line in out("git", "ls-files", "-mo", "--exclude-standard", cwd=ROOT).splitlines():
        if (ROOT / line).is_file():
            (copy / line).parent.mkdir(parents=True, exist_ok=True)
            (copy / line).write_bytes((ROOT / line).read_bytes())
    for line in out("git", "ls-files", "-d", cwd=ROOT).splitlines():
        (copy / line).unlink(missing_ok=True)
    out(sys.executable, "-m", "build", "--outdir", folder, copy, cwd=folder)
    return folder


def test_wheel_and_source_distribution_hold_what_they_must(built: Path, tmp_path: Path) -> None:
    copy = built / "copy"
    stem = f"bellweight-{bw.__version__}"
    archive = built / f"{stem}.tar.gz"

    with zipfile.ZipFile(wheel_in(built)) as opened:
        held = {name for name in opened.namelist() if f"{stem}.dist-info/" not in name}
        check_metadata(opened.read(f"{stem}.dist-info/METADATA").decode())
        texts = [opened.read(name) for name in opened.namelist()]
    assert held == sources()
    assert held >= set(NEEDED)
    assert not any(str(ROOT).encode() in text or str(copy).encode() in text for text in texts)

    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    unpacked = {
        path.relative_to(tmp_path / stem).as_posix()
        for path in (tmp_path / stem).rglob("*")
        if path.is_file()
    }
    assert {f"src/{name}" for name in sources()} <= unpacked
    assert {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff"} <= unpacked
    assert not [name for name in unpacked if re.search(r"(^|/)(tests|__pycache__|site|\.)", name)]
    check_metadata((tmp_path / stem / "PKG-INFO").read_text(encoding="utf-8"))


# With the dependencies of this environment; that the declared ones are enough takes a minute more.
@pytest.mark.timeout(900)
@pytest.mark.parametrize("alone", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_wheel_installs_and_works(alone: bool, built: Path, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    out(sys.executable, "-m", "venv", "--without-pip", place / "env", cwd=tmp_path)
    python = place / "env" / "bin" / "python"
    options = ["-c", ROOT / "constraints.txt"] if alone else ["--no-deps"]
    pip = [sys.executable, "-m", "pip", "--python", python]
    out(*pip, "install", "-q", *options, wheel_in(built), cwd=place)
    if not alone:
        own = Path(
            out(python, "-c", "import site; print(site.getsitepackages()[0])", cwd=place).strip()
        )
        lent = Path(np.__file__).parent.parent
        (own / "lent.pth").write_text(f"{lent}\n", encoding="utf-8")
    command = python.with_name("bellweight")
    assert out(command, "--version", cwd=place).strip() == f"bellweight {bw.__version__}"
    file, status = out(python, "-W", "error", "-c", SOLVE, cwd=place).split()
    assert Path(file).is_relative_to(place)
    assert status == "CONVERGED"
    assert (place / "queue.html").stat().st_size > 100_000
    arguments = ["solve", "single_queue", "--option", "capacity=30", "--basis", "poly:2"]
    assert "CONVERGED" in out(command, *arguments, cwd=place)


def test_the_version_is_stated_once() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in project
    assert not re.search(r"^version = \"", project, flags=re.MULTILINE)
    assert re.fullmatch(r"\d+\.\d+\.\d+", bw.__version__)


def test_the_citation_is_valid_and_has_the_version() -> None:
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert found["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(found)  # what CFF 1.2.0 requires
    assert str(found["version"]) == bw.__version__
    assert found["type"] == "software"
    assert found["license"] == "MIT"
    allowed = {"cff-version", "message", "title", "type", "abstract", "authors", "version",
               "license", "keywords", "references"}  # fmt: skip
    assert set(found) <= allowed
    for reference in found["references"]:
        assert {"type", "title", "authors"} <= set(reference)
    assert not {"doi", "url", "repository"} & set(found), "none is known yet"


def test_pinned_versions_cover_what_is_installed() -> None:
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line
    }
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    wanted = re.findall(r'^    "([a-z0-9-]+)(?:\[\w+\])?>=', project, flags=re.MULTILINE)
    assert wanted
    assert set(wanted) <= pinned
