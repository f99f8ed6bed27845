"""A line on stderr that says what a long run is doing.

It appears after two seconds, on a terminal only unless asked for, and never touches stdout. Where
stderr is not a terminal, asking for it gives a plain line every few seconds. That a model is being
compiled is always said at once, unless progress is switched off.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

from bellweight.cli.output import one_line

if TYPE_CHECKING:
    from rich.text import Text

_SILENT_SECONDS = 2.0
_LINE_SECONDS = 2.0
_REFRESH_SECONDS = 0.2
_MOST_SECONDS = 180.0  # longer times are told in minutes


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < _MOST_SECONDS else f"{seconds / 60.0:.0f} min"


class Progress:
    """Shows the last thing it was told, with the elapsed and the expected time.

    `wanted` is True, False, or None for: on a terminal only.
    """

    def __init__(self, text: str, wanted: bool | None = None) -> None:
        from rich.console import Console
        from rich.status import Status

        self._console = Console(stderr=True, highlight=False)
        # With FORCE_COLOR Rich takes a file or a pipe for a terminal.
        terminal = self._console.is_terminal and self._console.file.isatty()
        self._wanted = terminal if wanted is None else wanted
        self._refused = wanted is False
        self._listening = ExitStack()
        self._live = Status("", console=self._console) if terminal and self._wanted else None
        self._text = text
        self._share = 0.0
        self._began = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def tell(self, text: str, share: float = 0.0) -> None:
        """Say what is being done, and how much of the work is finished."""
        self._text, self._share = one_line(text), share

    def __enter__(self) -> Self:
        from bellweight.models.announce import announcing

        say = None if self._refused else self._announce
        self._listening.enter_context(announcing(say))
        if self._wanted:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listening.close()
        self._over.set()
        if self._wanted:
            self._thread.join()

    def line(self) -> str:
        """Return the line as it stands now."""
        elapsed = time.monotonic() - self._began
        left = ""
        if 0.0 < self._share < 1.0:
            left = f", about {_span(elapsed * (1.0 / self._share - 1.0))} left"
        return f"{self._text}  {_span(elapsed)}{left}"

    def _announce(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)

    def _show(self) -> None:
        if self._over.wait(_SILENT_SECONDS):
            return
        if self._live is None:
            self._print_lines()
            return
        self._live.update(self._shown())
        with self._live:
            while not self._over.wait(_REFRESH_SECONDS):
                self._live.update(self._shown())

    def _shown(self) -> Text:
        from rich.text import Text

        return Text(self.line(), overflow="ellipsis", no_wrap=True)

    def _print_lines(self) -> None:
        while True:
            print(self.line(), file=sys.stderr, flush=True)
            if self._over.wait(_LINE_SECONDS):
                return
