"""What the documentation does beyond MkDocs: formulas, examples, notebooks, the version.

Formulas become MathML when the site is built, so a reader needs no script and no network. The
gallery shows each example's own words, the picture it drew and what it printed (`make docs` runs
them first); nothing of that is stored beside the text. Notebooks become pages with the outputs
that they store. `python mkdocs_hooks.py PAGE.md` runs the Python blocks of a page for its pictures.
"""

from __future__ import annotations

import ast
import base64
import html
import json
import os
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent
NOTEBOOKS = ROOT / "notebooks"
PICTURES = Path(os.environ.get("GALLERY", ROOT / "build" / "gallery"))

_MOST_OF_ONE_PANEL = 1_100  # dots of the width
_EXAMPLE = re.compile(r"<!-- example: (\w+) -->")
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
_SCRIPT = re.compile(r'<mi mathvariant="script">([A-Z])</mi>')


def on_config(config: Any, **_: Any) -> Any:
    """Show the version at the foot of every page."""
    text = (ROOT / "src" / "bellweight" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"', text, flags=re.MULTILINE)
    if found is None:
        raise PluginError("src/bellweight/__init__.py has no __version__")
    config.copyright = f"Bellweight {found[1]}"
    return config


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the examples' pictures to the site, and a page for each notebook."""
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        for file in _notebook(notebook, config):
            files.append(file)
    for picture in sorted(PICTURES.glob("*.png")):
        files.append(File.generated(config, f"gallery/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put an example in the place of its mark: words, picture, script and output."""
    return _EXAMPLE.sub(lambda found: _example(found[1]), markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Turn every formula into MathML."""
    return _FORMULA.sub(_mathml, content)


def _example(name: str) -> str:
    if not (PICTURES / f"{name}.png").exists():
        raise PluginError(f"the picture of {name}.py is missing: build with `make docs`")
    script = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    printed = (PICTURES / f"{name}.txt").read_text(encoding="utf-8")
    title, _, words = (ast.get_docstring(ast.parse(script)) or "").partition("\n\n")
    return f"""## {title.rstrip(".")}

{words}

{_picture(title, f"gallery/{name}.png", (PICTURES / f"{name}.png").read_bytes())}

??? example "{name}.py"

    ```py
    --8<-- "examples/{name}.py"
    ```

??? quote "What it prints"

    ```text
{textwrap.indent(printed.rstrip(), "    ")}
    ```
"""


def _picture(words: str, address: str, png: bytes) -> str:
    """Return the Markdown of a picture; a broad one has several panels beside each other."""
    broad = " .broad" * (int.from_bytes(png[16:20], "big") > _MOST_OF_ONE_PANEL)
    return f"![{words}]({address}){{ .picture{broad} }}"


def _notebook(path: Path, config: Any) -> list[File]:
    """Return the page of a notebook, its pictures, and the notebook itself."""
    place = f"notebooks/{path.stem}"
    found = [File.generated(config, f"{place}.ipynb", abs_src_path=str(path))]
    parts = []
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        code = "\n".join(line for line in source.splitlines() if not line.startswith("%"))
        parts.append(f"```py\n{code}\n```")
        for output in cell["outputs"]:
            if output["output_type"] == "stream":
                parts.append(f"```text\n{''.join(output['text']).rstrip()}\n```")
                continue
            picture = base64.b64decode(output["data"]["image/png"])
            name = f"{path.stem}-{number}.png"
            found.append(File.generated(config, f"notebooks/{name}", content=picture))
            parts.append(_picture("What the cell draws", name, picture))
    parts.append(f"[The notebook]({path.name}) runs in Jupyter.")
    page = "\n\n".join(parts)
    return [File.generated(config, f"{place}.md", content=page), *found]


def _mathml(found: re.Match[str]) -> str:
    is_display = found[2] == "["
    formula = convert(html.unescape(found[3]).strip(), display="block" if is_display else "inline")
    # Browsers ignore this mathvariant but draw the letters that Unicode has for it.
    formula = _SCRIPT.sub(lambda m: f"<mi>&#x{0x1D49C + ord(m[1]) - ord('A'):X};</mi>", formula)
    if "\\" in formula:
        raise PluginError(f"a command in this formula is not known: {found[3].strip()}")
    return f'<div class="formula">{formula}</div>' if is_display else formula


def run_blocks(page: Path) -> None:
    """Run the Python blocks of a page as one script, in the current folder."""
    blocks = re.findall(
        r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    exec(compile("\n".join(blocks), str(page), "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    run_blocks(Path(sys.argv[1]))
