"""What the README and the documentation show runs as it stands and prints what they say.

The Python blocks of a page are one script, in order. The commands of its console blocks run after
it in the same folder. A text block holds lines of what was printed; numbers may differ a little,
and seconds may differ freely.
"""

from __future__ import annotations

import inspect
import re
import runpy
import shlex
from pathlib import Path

import pytest

import bellweight as bw
from bellweight.cli.main import run

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^( *)```(\w*).*?\n(.*?)^\1```$", flags=re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*\.?\d*(?:e[+-]?\d+)?(?![\w.]*\w)(?P<seconds> s\b)?")
_SHOWN = ("python", "console", "text")
_INCLUDED = "--8<--"


def blocks(page: Path, language: str) -> list[str]:
    """The text of all blocks of a page in a language."""
    found = _FENCE.findall(page.read_text(encoding="utf-8"))
    return [text for _, word, text in found if word == language]


def commands(page: Path) -> list[list[str]]:
    """The words of all `$ bellweight ...` lines of a page, without the first."""
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    return [shlex.split(line.removeprefix("$ "))[1:] for line in lines if line.startswith("$ ")]


RUN = [page for page in PAGES if blocks(page, "python") or commands(page)]


def numbers(line: str) -> list[float | None]:
    """The numbers of a line; None where they need not agree: seconds and rounding errors."""
    found = [
        (m["seconds"], float(m[0].split()[0].replace(",", ""))) for m in _NUMBER.finditer(line)
    ]
    return [None if seconds or 0.0 < abs(value) < 1e-6 else value for seconds, value in found]


def words(line: str) -> list[str]:
    """The words of a line, with a mark in the place of numbers."""
    return _NUMBER.sub("#", line).split()


def agree(shown: str, printed: str) -> bool:
    """Whether a printed line is the one shown, up to small differences in its numbers."""
    if words(shown) != words(printed):
        return False
    pairs = zip(numbers(shown), numbers(printed), strict=True)
    return all(a is None or b is None or abs(a - b) <= 0.02 * abs(a) + 1e-9 for a, b in pairs)


def test_the_readme_has_a_python_example() -> None:
    assert any("bw.solve(" in block for block in blocks(PAGES[0], "python"))


@pytest.mark.parametrize("page", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES])
def test_no_block_escapes_the_tests(page: Path) -> None:
    for _, word, text in _FENCE.findall(page.read_text(encoding="utf-8")):
        if word == "py" or _INCLUDED in text:
            continue  # the text of a file that has tests of its own
        assert word in _SHOWN, f"a block of {page.name} is {word!r}, expected one of {_SHOWN}"
        if word == "console":
            lines = text.splitlines()
            assert all(line.startswith("$ bellweight ") for line in lines), text


LONG = {
    "explanation/certificates.md",
    "how-to/cluster.md",
    "how-to/event-model.md",
    "how-to/inventory.md",
    "reproduction/index.md",
}
"""Pages that take most of a minute, and whose subjects have tests of their own."""


def is_long(page: Path) -> bool:
    return page.is_relative_to(ROOT / "docs") and (
        page.relative_to(ROOT / "docs").as_posix() in LONG
    )


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=page.relative_to(ROOT).as_posix(),
            marks=[pytest.mark.slow] if is_long(page) else [],
        )
        for page in RUN
    ],
)
def test_a_page_runs_and_prints_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page.py").write_text("\n".join(blocks(page, "python")), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runpy.run_path("page.py", run_name="page")
    for command in commands(page):
        assert run(command) == 0, f"bellweight {shlex.join(command)}: {capsys.readouterr().err}"
    printed = capsys.readouterr().out.splitlines()
    for shown in (line for block in blocks(page, "text") for line in block.splitlines()):
        if shown.strip() and _INCLUDED not in shown:
            assert any(agree(shown, line) for line in printed), f"{page.name} shows: {shown}"


def test_shown_lines_are_compared_with_care() -> None:
    assert agree("iterations  3 in 0.21 s", "iterations  3 in 7.5 s")
    assert agree("cost 118.936 (exact)", "cost   118.94 (exact)")
    assert not agree("cost 118.936", "cost 129.0")
    assert not agree("cost 118.936", "loss 118.936")
    assert not agree("iterations  3 in 0.21 s", "iterations  4 in 0.21 s")


def test_every_public_name_is_in_the_reference() -> None:
    pages = (ROOT / "docs" / "reference").glob("*.md")
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    named = re.findall(r"^::: bellweight\.([\w.]+)$", text, flags=re.MULTILINE)
    assert len(set(named)) == len(named)
    modules = {name for name in bw.__all__ if inspect.ismodule(getattr(bw, name))}
    # A function may stand in a module of its own name.
    shown = {re.sub(r"^(?:\w+\.)*?(\w+)\.\1$", r"\1", name) for name in named}
    assert shown >= set(bw.__all__) - modules
    for module in modules:
        assert any(name.startswith(f"{module}.") for name in named)


def test_every_example_is_in_the_gallery() -> None:
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    shown = re.findall(r"<!-- example: (\w+) -->", text)
    assert sorted(shown) == sorted(path.stem for path in (ROOT / "examples").glob("*.py"))


def test_the_pages_link_to_what_exists() -> None:
    for page in PAGES[:1]:  # MkDocs checks the others
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            assert target.startswith("https://") or (page.parent / target).exists(), target
