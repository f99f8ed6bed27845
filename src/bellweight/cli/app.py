"""The command line as a whole: the options that commands share, and what each begins with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bellweight.cli import exits, parse
from bellweight.cli.output import Interrupted, check_kept, check_writable
from bellweight.cli.progress import Progress

EPILOG = "Exit codes: " + "; ".join(f"{code} {text}" for code, text in exits.MEANINGS.items())


class _Group(TyperGroup):
    """The commands; Ctrl-C in any of them ends with our own message."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted from None


app = typer.Typer(
    cls=_Group,
    add_completion=False,
    epilog=EPILOG,
    help="Good policies for Markov decision processes too large to solve exactly.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A problem, a model file (.npz, .csv, .tra, .drn), or file.py:factory.",
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="KEY=VALUE",
        help="A parameter of a problem, such as capacity=999, or of a file of another package, "
        "such as discount=0.95; repeat for more. "
        "Lists are written 0,0.2,0.4, lists of lists 0,1;2.",
    ),
]
JsonFile = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write the result as JSON; - is stdout."),
]
SavedResult = Annotated[Path, typer.Argument(metavar="RESULT.npz", help="A saved result.")]
ModelOfResults = Annotated[
    str, typer.Option("--model", help="The model they were solved for, as in bellweight solve.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Workers; all cores by default.")]


@app.callback()
def common(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    progress: Annotated[
        bool | None,
        typer.Option(help="Show progress, or not; by default on a terminal after two seconds."),
    ] = None,
) -> None:
    """Take the options that every command has."""
    context.obj = progress
    if version:
        from bellweight import __version__

        print(f"bellweight {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit


@contextmanager
def prepared(
    context: typer.Context,
    source: str | None,
    options: list[str] | None,
    *,
    reads: Sequence[Path | None] = (),
    writes: Sequence[Path | None] = (),
) -> Iterator[tuple[Any, Progress]]:
    """Check the files before the work begins, then build the model and show progress.

    No file that the command reads, that of the model included, may be written over. The model is
    None where no source is named.
    """
    check_writable(*writes)
    for read in (*reads, None if source is None else parse.source_file(source)):
        check_kept(read, *writes)
    with Progress("preparing the model", context.obj) as progress:
        built = None if source is None else parse.model(source, parse.options(options or []))
        yield built, progress
