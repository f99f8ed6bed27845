"""Where words go: results to stdout, errors and progress to stderr, documents to files."""

from __future__ import annotations

import io
import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from bellweight.common.status import BellweightWarning, FileError

if TYPE_CHECKING:
    from rich.console import Console

STDOUT = Path("-")
"""The name of a JSON file that stands for stdout; what people read then goes to stderr."""


class Interrupted(Exception):
    """Ctrl-C, with what the user should know about it."""

    def __init__(self, message: str = "nothing was finished") -> None:
        super().__init__(message)


class _Pipe(io.FileIO):
    """A pipe whose reader may go away, as `head` does: the rest is dropped, the work goes on."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


def patient(stream: Any) -> Any:
    """Return stdout or stderr so that no letter and no reader that goes away ends the run.

    A terminal that lacks a letter shows a question mark in its place. A service may start us
    without the stream: None.
    """
    if stream is None or not hasattr(stream, "reconfigure"):
        return stream
    if stream.isatty():
        stream.reconfigure(errors="replace")
        return stream
    stream.flush()
    pipe = io.BufferedWriter(_Pipe(stream.fileno(), "w", closefd=False))
    return io.TextIOWrapper(
        pipe, stream.encoding, "replace", None, stream.line_buffering, stream.write_through
    )


def one_line(text: object) -> str:
    """Return a text without line breaks and without characters that could steer a terminal."""
    words = " ".join(str(text).split())
    return "".join(letter if letter.isprintable() else "?" for letter in words)


def complain(text: object) -> None:
    """Print an error as one line on stderr."""
    print(f"error: {one_line(text)}", file=sys.stderr, flush=True)


@contextmanager
def short_warnings() -> Iterator[None]:
    """Print our warnings as one line on stderr; other people's stay as they are."""
    usual = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, BellweightWarning):
            print(f"warning: {one_line(message)}", file=sys.stderr, flush=True)
        else:
            usual(message, category, filename, lineno, file, line)

    with warnings.catch_warnings():
        warnings.simplefilter("always", BellweightWarning)
        warnings.showwarning = show
        yield


def console(json_file: Path | None) -> Console:
    """Return where the readable output goes."""
    from rich.console import Console

    return Console(stderr=json_file == STDOUT, highlight=False)


def say(screen: Console, text: str) -> None:
    """Print plain text as it is: nothing in it is markup, and lines are not broken."""
    screen.file.write(text + "\n")
    screen.file.flush()


def write_document(path: Path | None, document: dict[str, Any]) -> None:
    """Write a JSON document to a file, whole or not at all, or to stdout; None: nowhere."""
    if path is None:
        return
    from bellweight import __version__
    from bellweight.common import files

    full = {"bellweight": __version__, **document}
    if path == STDOUT:
        sys.stdout.write(json.dumps(full, indent=2) + "\n")
        sys.stdout.flush()
    else:
        files.write_json(path, full)


def check_writable(*paths: Path | None) -> None:
    """Complain before the work begins about a file that could not be written after it."""
    for path in paths:
        if path is None or path == STDOUT:
            continue
        from bellweight.common.files import check_target  # not before it is needed

        check_target(path)


def check_kept(read: Path | None, *written: Path | None) -> None:
    """Refuse to write over a file that the command reads."""
    for path in written:
        if path is None or path == STDOUT or read is None:
            continue
        if path.exists() and read.exists() and path.samefile(read):
            raise FileError(f"cannot write {path}: the command reads it: choose another name")


def check_folder(path: Path | None) -> None:
    """Complain before the work begins about a folder that could not be made after it."""
    if path is not None and path.exists() and not path.is_dir():
        raise FileError(f"cannot write into {path}: it is a file, expected a folder")
