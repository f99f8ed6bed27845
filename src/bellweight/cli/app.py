"""The command line as a whole: the options that commands share, and what each begins with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from bellweight.cli import sources
from bellweight.cli.help import Command, Group, examples
from bellweight.cli.output import check_kept, check_writable
from bellweight.cli.progress import Progress

app = typer.Typer(
    cls=Group,
    epilog=examples(
        "bellweight demo                    see what it does, in a minute",
        "bellweight solve single_queue      solve a problem that comes with it",
        "bellweight new event my_model.py   begin with a model of your own",
    ),
    help="Good policies for Markov decision processes too large to solve exactly.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def command(*lines: str, short: str) -> Any:
    """Return the decorator of a command: examples for its help, and a line for the overview."""
    return app.command(cls=Command, epilog=examples(*lines), short_help=short)


BASIS = "Basis functions"
METHOD = "Weights"
SAMPLE = "States that cannot be listed (event, step and linear models)"
LIMITS = "When to stop"
FILES = "Files"
"""Headings of options in the help."""

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A problem (see bellweight problems), a model file (.npz, .csv, .tra, .drn), a Python "
        "file whose function model() returns one, or file.py:FUNCTION.",
        autocompletion=sources.complete_source,
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
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write the result as JSON; - is stdout.",
        rich_help_panel=FILES,
    ),
]
SavedResult = Annotated[Path, typer.Argument(metavar="RESULT.npz", help="A saved result.")]
ModelOfResults = Annotated[
    str,
    typer.Option(
        "--model", metavar="SOURCE", help="The model that was solved, as in bellweight solve."
    ),
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Seed of everything random.")]
Jobs = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Workers; all cores by default.")
]


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
    for read in (*reads, None if source is None else sources.source_file(source)):
        check_kept(read, *writes)
    with Progress("preparing the model", context.obj) as progress:
        built = None if source is None else sources.model(source, sources.options(options or []))
        yield built, progress
