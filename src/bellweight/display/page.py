"""One web page that opens offline: style and scripts inside, and nothing else can run.

A content security policy lists the hashes of the page's own scripts and forbids every request, so
that even a text that slipped through unescaped would neither execute nor reach the network.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from importlib.resources import files

_FRAME = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<main id="main">
{body}</main>
{scripts}
</body>
</html>
"""


def page(title: str, body: str, scripts: Sequence[str] = ()) -> str:
    """Return a whole page around a body of HTML, already escaped; `scripts` run after it."""
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in scripts) or "'none'"
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob: 'self'; base-uri 'none'; form-action 'none'"
    )
    return _FRAME.format(
        policy=escape(policy),
        title=escape(title),
        style=asset("page.css"),
        body=body,
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def asset(name: str) -> str:
    """Return the text of a file that comes with this package."""
    return (files("bellweight.display") / "assets" / name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
