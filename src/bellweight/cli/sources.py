"""From words on the command line to models: problems, files, functions of Python files."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellweight.cli.laws import law_of, law_words
from bellweight.cli.parse import usage
from bellweight.cli.suggest import meant
from bellweight.common.status import BellweightError, FileError, ModelError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from bellweight.models import Model

_FACTORY = "model"
_MODEL_FILES = (".npz", ".csv", ".tra", ".drn")

ENTRY_POINTS = "bellweight.problems"
"""The group of entry points by which other packages add problems."""

_WORDS = {"none": None, "true": True, "false": False}


def options(words: list[str]) -> dict[str, Any]:
    """Return the problem parameters of `key=value` words."""
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier():
            raise usage(f"--option {word!r}, expected KEY=VALUE such as capacity=999")
        if key in found:
            raise usage(f"--option {key} is given twice")
        found[key] = _value(value)
    return found


def model(source: str, parameters: dict[str, Any]) -> Model:
    """Return the model that a problem name, a model file or `file.py:factory` stands for."""
    from bellweight import problems
    from bellweight.interchange.by_ending import READERS, ending_of, read_model

    if source in problems.ABOUT:
        return _shipped(getattr(problems, source), parameters)
    if source in third_party():
        return _third_party(source, parameters)
    if ending_of(source) in READERS:
        return read_model(source, **parameters)
    check_source(source)
    if parameters:
        raise usage(
            "--option goes with a problem or a file of another package; here there are none"
        )
    file = source_file(source)
    if file is not None and file.suffix == ".py":
        return _from_factory(file, source[len(str(file)) + 1 :] or _FACTORY)
    return _from_file(source)


def source_file(source: str) -> Path | None:
    """Return the file that a model comes from; None for a shipped problem."""
    path = source.rpartition(":")[0]
    if path.endswith(".py"):
        return Path(path)
    return Path(source) if source.lower().endswith((*_MODEL_FILES, ".py")) else None


def check_source(source: str) -> None:
    """Complain about words that can be no model: neither a problem nor a file."""
    file = source_file(source)
    if file is not None:
        check_there(str(file))
    elif source not in _problem_names():
        near = meant(source, _problem_names())
        told = near if near.startswith("did") else f"{near}, a model file or a Python file"
        raise usage(f"{source!r} is no model: {told}")


def check_there(name: str) -> None:
    """Complain about a file that is to be read and does not exist."""
    if not Path(name).exists():
        raise FileError(f"{name} does not exist: check the path")


def check_problem(name: str) -> None:
    """Complain about words that name no problem."""
    if name not in _problem_names():
        raise usage(f"there is no problem {name!r}: {meant(name, _problem_names())}")


def complete_source(incomplete: str) -> list[str]:
    """Return the problems that begin with what was typed, for the shell."""
    return [name for name in _problem_names() if name.startswith(incomplete)]


def _problem_names() -> list[str]:
    """Return the names of all problems; nothing heavy is loaded for it."""
    from bellweight import problems

    return [*problems.ABOUT, *third_party()]


def third_party() -> dict[str, EntryPoint]:
    """Return the problems that other installed packages add, by name."""
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}


def problem_list() -> list[tuple[str, str]]:
    """Return all problems, each with what it is; of the shipped ones nothing is loaded."""
    from bellweight import problems

    return [*problems.ABOUT.items(), *((name, _about(name)) for name in third_party())]


def problem_parameters(name: str) -> list[str]:
    """Return the parameters of a problem with their defaults, as `--option` takes them."""
    from bellweight import problems

    if name in problems.ABOUT:
        known = _parameters(getattr(problems, name))
    else:
        try:
            known = _defaults(_loaded(name))
        except ModelError:  # the list says why it cannot be loaded
            known = {}
    return [f"{key}={_text(value)}" for key, value in known.items()]


def _about(name: str) -> str:
    """Return what a problem of another package is, or why it cannot be loaded."""
    entry = third_party()[name]
    package = f"from {entry.dist.name}" if entry.dist is not None else "installed"
    try:
        make = _loaded(name)
    except ModelError as problem:
        return f"{package}: {problem}"
    return f"{(inspect.getdoc(make) or 'no description').splitlines()[0]} ({package})"


def _value(text: str) -> Any:
    """Return a number, a list of numbers or of lists, a law, a word such as none, or the text."""
    law = law_of(text)
    if law is not None:
        return law
    if ";" in text:
        return [_entries(part) for part in text.split(";") if part]
    if "," in text:
        return _entries(text)
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _entries(text: str) -> list[Any]:
    return [_value(part) for part in text.split(",") if part]


def _shipped(make: Callable[..., Model], parameters: dict[str, Any]) -> Model:
    known = _parameters(make)
    for key in parameters:
        if key not in known:
            raise usage(f"there is no --option {key}: {meant(key, known)}")
    return make(**parameters)


def _loaded(name: str) -> Callable[..., Model]:
    """Return the function that another package offers as a problem."""
    entry = third_party()[name]
    try:
        make = entry.load()
    except Exception as problem:
        raise ModelError(
            f"the problem {name} ({entry.value}) cannot be loaded: {type(problem).__name__}: "
            f"{problem}"
        ) from problem
    if not callable(make):
        raise ModelError(f"the problem {name} ({entry.value}) is no function that makes a model")
    found: Callable[..., Model] = make
    return found


def _third_party(name: str, parameters: dict[str, Any]) -> Model:
    from bellweight.backends import backend_of

    return backend_of(_shipped(_loaded(name), parameters)).model


def _parameters(make: Callable[..., Model]) -> dict[str, Any]:
    """Return the parameters of a problem with their defaults.

    A network's are those of `QueueNetwork`, its data, and of `QueueNetwork.model`.
    """
    from bellweight.problems import QueueNetwork, queue_network

    if make is queue_network:
        data = {field.name: field.default for field in fields(QueueNetwork)}
        return {**data, **_defaults(QueueNetwork.model)}
    return _defaults(make)


def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.name != "self"}


def _text(value: Any) -> str:
    """Return a parameter's value as it is written on the command line."""
    law = law_words(value)
    if law is not None:
        return law
    if isinstance(value, tuple | list):
        nested = any(isinstance(item, tuple | list) for item in value)
        return (";" if nested else ",").join(map(_text, value))
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _from_file(source: str) -> Model:
    from bellweight.backends import KINDS
    from bellweight.common import files

    found: Model = files.load(source, *(kind for kind in KINDS if issubclass(kind, files.Saved)))
    return found


def _from_factory(path: Path, name: str) -> Model:
    from bellweight.backends import backend_of

    with _importable(path.parent):
        factory = getattr(_module(path), name, None)
        if not callable(factory):
            raise ModelError(f"{path} has no function {name!r}: name one that returns a model")
        try:
            made = factory()
        except (Exception, SystemExit) as problem:
            raise ModelError(_cause(problem, path)) from problem
    if made is None:
        raise ModelError(f"{path}: {name}() returns nothing: end it with `return` and the model")
    try:
        return backend_of(made).model
    except ModelError as problem:
        raise ModelError(f"{path}:{name} returned no model: {problem}") from problem


def _module(path: Path) -> Any:
    """Run a user's file as a module."""
    from importlib.util import module_from_spec, spec_from_file_location

    # A name of its own: a user's queue.py must not replace the standard library's.
    spec = spec_from_file_location(f"bellweight_factory_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as problem:
        raise ModelError(_cause(problem, path)) from problem
    return module


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let a user's file import its neighbours, after everything that is installed."""
    place = str(folder.resolve())
    sys.path.append(place)
    try:
        yield
    finally:
        sys.path.remove(place)


def _cause(problem: BaseException, path: Path) -> str:
    """Return the user's file, the last line of it that was run, and what went wrong there."""
    line, trace = getattr(problem, "lineno", None), problem.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).resolve() == path.resolve():
            line = trace.tb_lineno
        trace = trace.tb_next
    place = str(path) if line is None else f"{path}, line {line}"
    if isinstance(problem, BellweightError):
        return f"{place}: {problem}"
    what = problem.msg if isinstance(problem, SyntaxError) else problem
    return f"{place}: {type(problem).__name__}: {what}"
