"""What can be said from the words alone, before anything is loaded: help, version, misspellings.

Typer checks values with a library that takes longer to load than all else that `--help` needs. So
the words are parsed here without their values being converted, and what is wrong is said at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer

from bellweight.cli.parse import usage
from bellweight.cli.suggest import meant

PROGRAM = "bellweight"
_NUMBERS = {int: "a whole number", float: "a number"}
_HELP = ("-h", "--help")
_COMPLETION = ("--install-completion", "--show-completion")


def answered(group: Any, words: Sequence[str], checks: Mapping[str, Callable[[str], None]]) -> bool:
    """Print what was asked for if it is help or the version; complain about what is misspelt.

    `checks` say by the names of parameters whether a word can be right. Returns whether there is
    nothing left to do.
    """
    if os.environ.get(f"_{PROGRAM.upper()}_COMPLETE"):
        return False
    asked = list(words[: words.index("--")]) if "--" in words else list(words)
    context = typer.Context(group, info_name=PROGRAM, **group.context_settings)
    front = next((i for i, word in enumerate(asked) if not word.startswith("-")), len(asked))
    if any(word in _HELP for word in asked[:front]) or not asked:
        print(group.get_help(context))
        return True
    if "--version" in asked[:front]:
        from bellweight import __version__

        print(f"{PROGRAM} {__version__}")
        return True
    if any(word in _COMPLETION for word in asked):
        return False
    _parsed(group, context, asked[:front])
    if front == len(asked):
        print(group.get_help(context))
        return True
    name = asked[front]
    if name not in group.commands:
        raise _wrong(f"there is no command {name!r}: {meant(name, group.commands)}", context)
    command = group.commands[name]
    inner = typer.Context(command, info_name=name, parent=context)
    if any(word in _HELP for word in asked[front + 1 :]):
        print(command.get_help(inner))
        return True
    found = _parsed(command, inner, list(words[words.index(name) + 1 :]))
    for key, check in checks.items():
        given = found.get(key)
        for word in [given] if isinstance(given, str) else given or []:
            _checked(check, word, inner)
    for param in command.params:
        if isinstance(found.get(param.name), str):
            _check_number(param, found[param.name], inner)
    return False


def _check_number(param: Any, word: str, context: Any) -> None:
    """Complain about the value of an option that takes a number, if it is none or too small."""
    kind, name = param.type_descriptor.annotation, param.opts[-1]
    if kind not in _NUMBERS:
        return
    try:
        number = kind(word)
    except ValueError:
        raise _wrong(f"{name} is {word!r}, expected {_NUMBERS[kind]}", context) from None
    if param.min is not None and number < param.min:
        raise _wrong(f"{name} is {word}, expected at least {param.min:g}", context)


def _checked(check: Callable[[str], None], word: str, context: Any) -> None:
    try:
        check(word)
    except typer.BadParameter as problem:
        problem.ctx = context
        raise


def _parsed(command: Any, context: Any, words: list[str]) -> dict[str, Any]:
    """Return the words by parameter, or complain about an option that does not exist."""
    known = [name for param in command.params for name in (*param.opts, *param.secondary_opts)]
    options = [name for name in known if name.startswith("-")]
    try:
        found, rest, _ = command.make_parser(context).parse_args(args=list(words))
    except Exception as problem:
        name = getattr(problem, "option_name", None)
        if name is None or name in options:
            raise
        near = meant(name, options)
        why = f": {near}" if near.startswith("did") else ""
        raise _wrong(f"there is no option {name}{why}", context) from None
    if hasattr(command, "commands"):
        return {}
    if rest:
        raise _wrong(f"{rest[0]!r} is one word too many", context)
    for param in command.params:
        if param.required and found.get(param.name) in (None, (), []):
            name = param.opts[-1] if param.opts[-1].startswith("-") else param.metavar
            raise _wrong(f"{name} is missing", context)
    values: dict[str, Any] = found
    return values


def _wrong(text: str, context: Any) -> typer.BadParameter:
    problem = usage(text)
    problem.ctx = context
    return problem
