"""How `--help` looks: plain text that fits the terminal, options under headings, examples."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand, TyperGroup

from bellweight.cli import exits
from bellweight.cli.output import Interrupted

_LIMITS = re.compile(r"(; |  \[)x[<>]=\d+(\]?)")


def examples(*lines: str) -> str:
    """Return what stands at the end of a command's help."""
    return "\n".join(["Examples:", *(f"  {line}" for line in lines)])


class Command(TyperCommand):
    """A command whose help has its options under headings and its examples as they are written."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces = super().collect_usage_pieces(ctx)
        return [piece.replace("{", "").replace("}", "") for piece in pieces]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            name, text = record
            argument = param.param_type_name == "argument"
            heading = "Arguments" if argument else getattr(param, "rich_help_panel", None)
            shown = (name.split()[0] if argument else _plain(name), _without_limits(text))
            sections.setdefault(heading or "Options", []).append(shown)
        sections["Options"] = sections.pop("Options")  # last
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        if self.epilog:
            formatter.write(f"\n{self.epilog}\n")


_ORDER = (
    "demo", "problems", "new", "solve", "auto", "evaluate", "compare", "report", "certify",
    "verify",
)  # fmt: skip


class Group(TyperGroup):
    """The commands, those for newcomers first; Ctrl-C in any of them ends with our own message."""

    def list_commands(self, ctx: Any) -> list[str]:
        names: list[str] = super().list_commands(ctx)
        later = [name for name in names if name not in _ORDER]
        return [*(name for name in _ORDER if name in names), *later]

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted from None

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), text) for code, text in exits.MEANINGS.items()])
        formatter.write(f"\n{self.epilog}\n")


_KINDS = {"<int range>": "N", "<int>": "N", "<float>": "NUMBER", "<str>": "TEXT", "<path>": "FILE"}


def _plain(name: str) -> str:
    """Return an option with a word for its value in place of a type."""
    for kind, word in _KINDS.items():
        name = name.replace(kind, word)
    return name


def _without_limits(text: str) -> str:
    """Leave out limits such as `[x>=1]`: an error names them when they are broken."""
    return _LIMITS.sub(lambda found: found[2] if found[1] == "; " else "", text)
