"""The documentation builds without a word of complaint and opens without a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, with blank pictures: drawing them takes longer than building it."""
    pictures, place = tmp_path_factory.mktemp("gallery"), tmp_path_factory.mktemp("site")
    for script in (ROOT / "examples").glob("*.py"):
        Image.new("RGB", (400, 300)).save(pictures / f"{script.stem}.png")
        (pictures / f"{script.stem}.txt").write_text("what it printed\n", encoding="utf-8")
    tutorial = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    for name in re.findall(r"gallery/(tutorial-\w+\.png)", tutorial):
        Image.new("RGB", (400, 300)).save(pictures / name)
    built = subprocess.run(
        [sys.executable, "-W", "error", "-m", "mkdocs", "build", "-q", "--strict", "-d", place],
        cwd=ROOT,
        env={**os.environ, "GALLERY": str(pictures), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=240,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert built.stdout + built.stderr == ""
    return place


def pages(site: Path) -> dict[str, str]:
    found = [path for path in site.rglob("*.html") if path.name != "404.html"]
    return {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in found}


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for name, text in pages(site).items():
        for tag in re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", text):
            assert not re.search(r"(?:src|href)=\"?(?:https?:)?//", tag), f"{name}: {tag}"


def test_formulas_are_mathml(site: Path) -> None:
    text = pages(site)["explanation/mathematics.html"]
    assert text.count("<math") > 50
    assert 'display="block"' in text
    for name, page in pages(site).items():
        assert "arithmatex" not in page, name


def test_every_page_is_there_with_its_examples(site: Path) -> None:
    names = set(pages(site))
    assert {"index.html", "tutorial.html", "warnings.html", "changelog.html"} <= names
    gallery = pages(site)["gallery.html"]
    for script in (ROOT / "examples").glob("*.py"):
        assert f"gallery/{script.stem}.png" in gallery
        assert (site / "gallery" / f"{script.stem}.png").exists()
    assert "Unreleased" in pages(site)["changelog.html"]


def test_the_reference_shows_functions_and_not_modules_of_the_same_name(site: Path) -> None:
    for name, text in pages(site).items():
        assert "doc-symbol-module" not in text, name


def test_search_finds_what_people_ask_for(site: Path) -> None:
    text = (site / "search" / "search_index.js").read_text(encoding="utf-8").lower()
    for word in ("maximise", "reward", "gym", "average cost", "kink", "static priorit"):
        assert word in text, word


def test_every_page_has_a_version_and_a_way_on(site: Path) -> None:
    from bellweight import __version__

    for name, text in pages(site).items():
        assert f"Bellweight {__version__}" in text, name
        assert "md-footer__link--next" in text or "md-footer__link--prev" in text, name


def test_the_notebooks_are_shown_with_their_outputs(site: Path) -> None:
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        text = pages(site)[f"notebooks/{path.stem}.html"]
        assert "What the cell draws" in text
        assert (site / "notebooks" / path.name).exists()
    assert "none below 117.15" in pages(site)["notebooks/queue.html"]
    # Several panels are readable on a phone, because they scroll there.
    assert 'class="picture broad"' in pages(site)["notebooks/queue.html"]
    assert 'class="picture broad"' not in pages(site)["notebooks/network.html"]
