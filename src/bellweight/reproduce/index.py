"""The page of a folder of reproductions: `index.html`, and the summaries that it shows.

Everything is read from the JSON documents and pictures in the folder.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from bellweight.common import files
from bellweight.common.status import FileError
from bellweight.display import Column, Table, to_csv, to_html, to_markdown
from bellweight.display.page import page
from bellweight.reproduce import CONTENTS, folder, times
from bellweight.reproduce.times import Time
from bellweight.reproduce.verdicts import Word, count

Documents = Mapping[str, Mapping[str, Any]]

TITLE = "The paper's tables and figures, computed again"
_TEXT_COLUMNS = ("what", "ours", "paper", "verdict", "reason")
_LEAD = (
    "Some decision problems (which queue to serve, which patient to book on which day) have too "
    "many situations to solve exactly. Approximate linear programming replaces the unknown value "
    "of every situation by a few numbers. How good the resulting decisions are depends on weights "
    "that say which situations matter. The paper chooses these weights from the solution itself; "
    "this page holds its tables and figures, computed again by Bellweight."
)
_WORDS = {
    Word.MATCHES: "our number agrees with the paper's within its interval, or a statement holds",
    Word.BETTER: "our cost is lower than the paper's, beyond both intervals",
    Word.DIFFERS: "it does not agree; the reason stands beside it",
    Word.NOT_REPRODUCED: "the paper does not say enough to compute it",
    Word.NOT_JUDGED: "a quick run simulates too little to say",
}
_BADGES = {
    Word.MATCHES: "good",
    Word.BETTER: "good",
    Word.DIFFERS: "warn",
    Word.NOT_REPRODUCED: "bad",
    Word.NOT_JUDGED: "warn",
}


def write_index(place: Path) -> Path:
    """Write index.html, results.md, verdicts.csv and timings.json for what is in a folder."""
    found = documents(place)
    timed = {name: _times(document) for name, document in found.items()}
    files.write_json(place / "timings.json", _timings(found))
    files.write_text(place / "verdicts.csv", to_csv(verdict_table(found)))
    files.write_text(place / "results.md", _markdown(found))
    body = "\n".join(
        (
            '<div class="sheet">',
            _top(found),
            *(_section(name, document, place) for name, document in found.items()),
            '<section id="times"><h2>Times</h2>',
            to_html(times.table(timed)),
            "</section></div>",
        )
    )
    return files.write_text(place / "index.html", page(TITLE, body))


def _markdown(found: Documents) -> str:
    """Return all tables as Markdown, for a documentation; pictures lie beside the text."""
    parts = [to_markdown(replace(summary_table(found), title=""))]
    for name, document in found.items():
        parts.append(f"### {_label(name)}: {CONTENTS[name].title}\n")
        parts.append(f"{CONTENTS[name].about}\n")
        if document.get("caption"):
            parts.append(f"![{document['caption']}]({name}.png)\n")
        parts += [to_markdown(_table(shown)) for shown in document["tables"]]
        parts.append(f"{_settings(document)}\n")
    return "\n".join(parts)


def documents(place: Path, ignoring: str = "") -> Documents:
    """Return the documents in a folder by name, in the order of the paper, but for one."""
    found = {name: folder.written(name, place) for name in CONTENTS if name != ignoring}
    for name, document in found.items():
        if document is not None and not {"tables", "compared", "times"} <= document.keys():
            raise FileError(
                f"{place / name}.json is damaged, or of another version of Bellweight: delete it, "
                "or name another folder"
            )
    return {name: document for name, document in found.items() if document is not None}


def counts(document: Mapping[str, Any]) -> dict[Word, int]:
    """Return how often each word was given in one artefact."""
    return count(entry["verdict"]["word"] for entry in document["compared"])


def summary_table(found: Documents) -> Table:
    """Return one row for each artefact: how many numbers were compared, and with what verdict."""
    rows: list[dict[str, Any]] = []
    for name, document in found.items():
        given = counts(document)
        rows.append(
            {
                "name": name,
                "about": CONTENTS[name].title,
                "compared": sum(given.values()),
                **{word.value: given[word] for word in Word},
            }
        )
    used = [word for word in Word if word is not Word.NOT_JUDGED or any(row[word] for row in rows)]
    total = {key: sum(row[key] for row in rows) for key in ("compared", *Word)}
    columns = (
        Column("name", "of the paper", right=False),
        Column("compared", "compared"),
        *(Column(word.value, word.value) for word in used),
        Column("about", "what it shows", right=False),
    )
    everything = {"name": "together", "about": "", **total}
    return Table("Verdicts", columns, (*rows, everything))


def verdict_table(found: Documents) -> Table:
    """Return every number and statement of the paper with ours, the verdict and the reason."""
    rows = tuple(
        {"name": name, **_verdict_row(entry)}
        for name, document in found.items()
        for entry in document["compared"]
    )
    keys = ("name", *_TEXT_COLUMNS)
    return Table("Verdicts", tuple(Column(key, key, right=False) for key in keys), rows)


def _verdict_row(entry: Mapping[str, Any]) -> dict[str, str]:
    verdict = entry["verdict"]
    return {
        "what": entry["what"],
        "ours": entry["ours"],
        "paper": entry["paper"],
        "verdict": verdict["word"],
        "reason": verdict["reason"],
    }


def _top(found: Documents) -> str:
    from bellweight import __version__

    words = "".join(
        f'<dt><span class="badge {_BADGES[word]}">{word}</span></dt><dd>{escape(text)}</dd>'
        for word, text in _WORDS.items()
    )
    seeds = sorted({str(document["settings"].get("seed")) for document in found.values()})
    return (
        f"<h1>{escape(TITLE)}</h1>\n"
        f'<p class="lead">{escape(_LEAD)}</p>\n'
        f"<p>Every number of the paper stands beside ours with one of these words:</p>"
        f'<dl class="words">{words}</dl>\n'
        f"{_linked_summary(found)}\n"
        f'<p class="note">Bellweight {escape(__version__)}, seed {escape(", ".join(seeds))}. '
        f"{_unfinished(found)}"
        '<a href="verdicts.csv">All verdicts as CSV</a>, <a href="timings.json">times as JSON</a>, '
        '<a href="#times">times on this machine</a>.</p>'
    )


def _linked_summary(found: Documents) -> str:
    """Return the summary as HTML; the name of each artefact leads to its section."""
    title = "Numbers and statements of the paper, by verdict"
    links = {name: f"#{name}" for name in found}
    table = to_html(replace(summary_table(found), title=title), links=links)
    return f'<div class="summary">{table}</div>'


def _unfinished(found: Documents) -> str:
    cut = [name for name, document in found.items() if not document["complete"]]
    missing = [name for name in CONTENTS if name not in found]
    parts = [("Unfinished", cut), ("Not computed yet", missing)]
    return "".join(
        f"{escape(text)}: {escape(', '.join(names))}. " for text, names in parts if names
    )


def _section(name: str, document: Mapping[str, Any], place: Path) -> str:
    unfinished = "" if document["complete"] else ' <span class="badge warn">unfinished</span>'
    heading = f"{_label(name)}: {CONTENTS[name].title}"
    return "\n".join(
        (
            f'<section id="{escape(name)}"><h2>{escape(heading)}{unfinished}</h2>',
            f"<p>{escape(CONTENTS[name].about)}</p>",
            f"<p>{_badges(document)}</p>",
            _picture(name, document, place),
            *(to_html(_table(shown)) for shown in document["tables"]),
            _details(document),
            f'<p class="note">Files: {_links(name, document)}. {escape(_settings(document))}</p>',
            "</section>",
        )
    )


def _label(name: str) -> str:
    """Return table1 as Table 1, and figure-queue as Figure."""
    return f"Table {name.removeprefix('table')}" if name.startswith("table") else "Figure"


def _badges(document: Mapping[str, Any]) -> str:
    return " ".join(
        f'<span class="badge {_BADGES[word]}">{number} {word}</span>'
        for word, number in counts(document).items()
        if number
    )


def _picture(name: str, document: Mapping[str, Any], place: Path) -> str:
    path = place / f"{name}.png"
    caption = document.get("caption")
    if not caption or not path.is_file():
        return ""
    content = base64.b64encode(path.read_bytes()).decode()
    alt = escape(str(caption))
    return (
        f'<figure><img alt="{alt}" src="data:image/png;base64,{content}">'
        f"<figcaption>{alt}</figcaption></figure>"
    )


def _table(shown: Mapping[str, Any]) -> Table:
    """Return a table as it was shown, from its document."""
    columns = tuple(
        Column(str(place), column["heading"], right=column["right"])
        for place, column in enumerate(shown["columns"])
    )
    rows = tuple({str(place): cell for place, cell in enumerate(row)} for row in shown["cells"])
    return Table(shown["title"], columns, rows, tuple(shown["notes"]))


def _details(document: Mapping[str, Any]) -> str:
    rows = tuple(_verdict_row(entry) for entry in document["compared"])
    if not rows:
        return ""
    columns = tuple(Column(key, key, right=False) for key in _TEXT_COLUMNS)
    return (
        "<details><summary>Everything that was compared, with its verdict and reason</summary>"
        f"{to_html(Table('Ours beside the paper', columns, rows))}</details>"
    )


def _links(name: str, document: Mapping[str, Any]) -> str:
    names = [f"{name}.json", *map(str, document.get("files", ()))]
    return ", ".join(f'<a href="{escape(file)}">{escape(file)}</a>' for file in names)


def _settings(document: Mapping[str, Any]) -> str:
    shown = {key: value for key, value in document["settings"].items() if key != "code"}
    listed = ", ".join(
        f"{key.replace('_', ' ')} {_value(value)}"
        for key, value in shown.items()
        if value is not None
    )
    return f"Settings: {listed}."


def _value(value: Any) -> str:
    if isinstance(value, list):
        return " and ".join(_value(entry) for entry in value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _times(document: Mapping[str, Any]) -> tuple[Time, ...]:
    return tuple(Time(**entry) for entry in document["times"])


def _timings(found: Documents) -> dict[str, Any]:
    """Return all times as JSON: no seed decides them, so they stand apart."""
    return {
        name: {"seconds": document.get("seconds"), "times": document["times"]}
        for name, document in found.items()
    }
