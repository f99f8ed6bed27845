"""The parts that every report is made of: sections with text, tables and charts, in one page."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from html import escape
from typing import Any

import numpy as np

from bellweight.common import files
from bellweight.display import Table, to_html
from bellweight.display.charts import Chart, HeatMap, Picture, palette_of
from bellweight.display.interactive import figure, folded, numbers, scripts
from bellweight.display.markup import prose
from bellweight.display.page import page
from bellweight.policies import Uniform

_MOST_LETTERS = 300
_MOST_ROWS = 20  # longer tables are folded away
_MOST_SHOWN = 300


@dataclass(frozen=True)
class Folded:
    """A table for those who ask: it opens when its title is chosen."""

    table: Table


@dataclass(frozen=True)
class Section:
    """A heading, a sentence that says what is to be seen, and tables and charts below it."""

    key: str
    title: str
    lead: str
    parts: tuple[Table | Folded | Picture, ...] = ()


@dataclass(frozen=True)
class Card:
    """One number that matters, with a few words."""

    value: str
    words: str


def assemble(
    title: str,
    lead: Sequence[str],
    sections: Sequence[Section],
    *,
    badge: tuple[str, str] | None = None,
    warnings: Sequence[str] = (),
    cards: Sequence[Card] = (),
) -> str:
    """Return a whole page; all text is escaped here, warnings stand first."""
    pictures = [
        part
        for section in sections
        for part in section.parts
        if isinstance(part, Chart | HeatMap) and part.is_worth_drawing
    ]
    palette = palette_of(pictures)
    place = {id(picture): number for number, picture in enumerate(pictures)}
    body = [_head(title, lead, badge), _warnings(warnings), _cards(cards), _contents(sections)]
    for section in sections:
        alone = sum(isinstance(part, Chart | HeatMap) for part in section.parts) == 1
        parts = [
            figure(part, place.get(id(part), -1), palette, headed=not alone)
            if isinstance(part, Chart | HeatMap)
            else _table(part)
            for part in section.parts
        ]
        lead_text = f"<p>{prose(section.lead)}</p>\n" if section.lead else ""
        body.append(
            f'<section aria-labelledby="{section.key}">\n'
            f'<h2 id="{section.key}">{escape(section.title)}</h2>\n{lead_text}{"".join(parts)}'
            "</section>\n"
        )
    body.append('<p class="spoken" id="spoken" aria-live="polite"></p>\n')
    return page(title, "".join(body) + numbers(pictures, palette), scripts())


def method_text(method: object) -> str:
    """Return in a sentence what a method does."""
    if isinstance(method, files.Unstored):
        return method.text
    name = type(method).__name__
    text = (type(method).__doc__ or name).splitlines()[0].replace("`", "")
    if text.startswith(f"{name}("):
        return f"{name}."  # a class without words of its own
    return f"{name}: {text[:1].lower()}{text[1:].removesuffix('.')}."


def settings_facts(thing: Any) -> list[tuple[str, str]]:
    """Return the fields of a settings object as texts; those that are None say nothing."""
    if isinstance(thing, files.Unstored):
        return [("settings", cut(thing.text))]
    if not is_dataclass(thing):
        return [("settings", cut(repr(thing)))]
    given = [(field.name, getattr(thing, field.name)) for field in fields(thing)]
    return [(name.replace("_", " "), _said(value)) for name, value in given if value is not None]


def _said(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Uniform):
        return "acting at random"
    return value if isinstance(value, str) else cut(repr(value))


def origin() -> list[tuple[str, str]]:
    """Return by which software a page was made."""
    from bellweight import __version__

    return [
        ("Bellweight", __version__),
        ("NumPy", np.__version__),
        ("Python", platform.python_version()),
    ]


def cut(text: str, most: int = _MOST_LETTERS) -> str:
    """Return a text cut to at most this many letters, after a comma where one is near."""
    if len(text) <= most:
        return text
    kept = text[: most - 2]
    before = kept.rpartition(", ")[0]
    return f"{before}, …" if 2 * len(before) > most else f"{kept}…"


def percent(part: float, whole: float) -> str:
    """Return a share in per cent; a dash for a share of zero."""
    return f"{100.0 * part / abs(whole):.3g} %" if whole else "-"


def _table(part: Table | Folded) -> str:
    if isinstance(part, Folded):
        return folded(part.table.title, replace(part.table, title=""))
    table, n = part, len(part.rows)
    if n > _MOST_SHOWN:
        note = f"The first {_MOST_SHOWN} of {n:,} rows."
        table = replace(table, rows=table.rows[:_MOST_SHOWN], notes=(*table.notes, note))
    words = f"{table.title} ({n:,})" if table.title else f"Show all {n:,}"
    return folded(words, table) if n > _MOST_ROWS else to_html(table)


def _head(title: str, lead: Sequence[str], badge: tuple[str, str] | None) -> str:
    mark = ""
    if badge is not None:
        mark = f'<p><span class="badge {badge[1]}">{escape(badge[0])}</span></p>\n'
    paragraphs = "".join(f'<p class="lead">{prose(text)}</p>\n' for text in lead)
    button = '<button type="button" class="theme" id="theme">Light or dark</button>\n'
    return f"<header>\n{button}<h1>{escape(title)}</h1>\n{mark}{paragraphs}</header>\n"


def _warnings(warnings: Sequence[str]) -> str:
    if not warnings:
        return ""
    items = "".join(f"<li>{prose(text)}</li>" for text in warnings)
    return (
        '<section class="warnings" aria-labelledby="warnings">'
        f'<h2 id="warnings">Before you trust this</h2><ul>{items}</ul></section>\n'
    )


def _cards(cards: Sequence[Card]) -> str:
    if not cards:
        return ""
    inside = "".join(
        f'<div class="card"><b>{escape(card.value)}</b><span>{prose(card.words)}</span></div>'
        for card in cards
    )
    return f'<div class="cards">{inside}</div>\n'


def _contents(sections: Sequence[Section]) -> str:
    links = "".join(f'<li><a href="#{s.key}">{escape(s.title)}</a></li>' for s in sections)
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>\n'
