"""One run of the command line: every error is one line, every ending has its exit code."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

import typer

from bellweight.cli import (
    commands,
    exits,
    first_look,
    parse,
    portfolio,
    reproducing,
    saved,
    sources,
)
from bellweight.cli.app import app
from bellweight.cli.output import Interrupted, complain, one_line, patient, short_warnings
from bellweight.cli.sampling import StatesFrom
from bellweight.cli.starting import Kind
from bellweight.common.status import BellweightError, SolverError

COMMANDS = (commands, saved, portfolio, reproducing)
"""Modules that add their commands to the app when they are imported."""

CHECKS = {
    "source": sources.check_source,
    "model": sources.check_source,
    "problem": sources.check_problem,
    "basis": parse.check_basis,
    "name": parse.check_reproduced,
    "result": sources.check_there,
    "results": sources.check_there,
    "files": sources.check_there,
    "certificate": sources.check_there,
    "method": parse.check_word(parse.MethodName, "--method"),
    "cycles": parse.check_word(parse.Cycles, "--cycles"),
    "states_from": parse.check_word(StatesFrom, "--states-from"),
    "kind": parse.check_word(Kind, "KIND"),
}
"""What can be seen wrong in a word before anything is loaded, by the name of its parameter."""

_USAGE_ERROR: type[Exception] = typer.BadParameter.__bases__[0]
_ANYWHERE = ("--debug", "--progress", "--no-progress")


def main() -> None:
    """Run the command line and leave with its exit code."""
    sys.stdout, sys.stderr = (patient(stream) for stream in (sys.stdout, sys.stderr))
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    command = typer.main.get_command(app)
    words = _front(arguments)
    try:
        if first_look.answered(command, words, CHECKS):
            return exits.DONE
        with short_warnings():
            code = command.main(words, prog_name=first_look.PROGRAM, standalone_mode=False)
    except KeyboardInterrupt:
        return _failed(Interrupted())
    except Exception as problem:
        if "--debug" in arguments:
            traceback.print_exc()
        return _failed(problem)
    return int(code or exits.DONE)


def _front(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the options that may stand anywhere put before the command."""
    words = list(arguments)
    end = words.index("--") if "--" in words else len(words)
    front = [word for word in words[:end] if word in _ANYWHERE]
    return [*front, *(word for word in words[:end] if word not in _ANYWHERE), *words[end:]]


def _failed(problem: Exception) -> int:
    """Say what went wrong in one line, and return the exit code."""
    if isinstance(problem, Interrupted):
        print(f"\ninterrupted: {one_line(problem)}", file=sys.stderr)
        return exits.INTERRUPTED
    if isinstance(problem, _USAGE_ERROR):
        complain(_usage(problem))
        return exits.WRONG_USAGE
    if isinstance(problem, BellweightError):
        complain(problem)
        return exits.SOLVER_ERROR if isinstance(problem, SolverError) else exits.BAD_INPUT
    if isinstance(problem, MemoryError):
        complain("not enough memory for this model and basis")
        return exits.BAD_INPUT
    complain(f"{type(problem).__name__}: {problem}; run again with --debug to see where")
    return exits.BAD_INPUT


def _usage(problem: Exception) -> str:
    text = problem.format_message() if hasattr(problem, "format_message") else str(problem)
    context = getattr(problem, "ctx", None)
    path = "bellweight" if context is None else context.command_path
    text = text.removeprefix("Invalid value: ").replace("Value error, ", "").rstrip(".")
    return f"{text} (see {path} --help)"
