"""What the documentation does beyond MkDocs: formulas as MathML, and the examples of the gallery.

Formulas become MathML when the site is built, so a reader needs no script and no network. The
gallery shows each example's own words, the picture it drew and what it printed (`make docs` runs
them first); nothing of that is stored beside the text.
"""

from __future__ import annotations

import ast
import html
import os
import re
import textwrap
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent
PICTURES = Path(os.environ.get("GALLERY", ROOT / "build" / "gallery"))

_EXAMPLE = re.compile(r"<!-- example: (\w+) -->")
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
_SCRIPT = re.compile(r'<mi mathvariant="script">([A-Z])</mi>')


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the examples' pictures to the site."""
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

![{title}](gallery/{name}.png){{ .picture }}

??? example "{name}.py"

    ```py
    --8<-- "examples/{name}.py"
    ```

??? quote "What it prints"

    ```text
{textwrap.indent(printed.rstrip(), "    ")}
    ```
"""


def _mathml(found: re.Match[str]) -> str:
    is_display = found[2] == "["
    formula = convert(html.unescape(found[3]).strip(), display="block" if is_display else "inline")
    # Browsers ignore this mathvariant but draw the letters that Unicode has for it.
    formula = _SCRIPT.sub(lambda m: f"<mi>&#x{0x1D49C + ord(m[1]) - ord('A'):X};</mi>", formula)
    if "\\" in formula:
        raise PluginError(f"a command in this formula is not known: {found[3].strip()}")
    return f'<div class="formula">{formula}</div>' if is_display else formula
