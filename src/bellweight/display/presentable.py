"""What every result can show of itself: a table, a data frame, a notebook cell, pictures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bellweight.common.optional import data_frame
from bellweight.common.status import ArgumentError
from bellweight.display.charts import Picture
from bellweight.display.markup import to_frame, to_html
from bellweight.display.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console, ConsoleOptions, Group


Pictures = Mapping[str, Callable[[], Sequence[Picture]]]
"""How to make each kind of picture; nothing is computed before it is asked for."""


class Presentable(ABC):
    """Anything with a table and pictures; how it prints and is drawn follows from these."""

    @abstractmethod
    def table(self) -> Table:
        """Return the numbers to show, as a table."""

    @abstractmethod
    def pictures(self) -> Pictures:
        """Return the pictures to show, by name."""

    def charts(self, *names: str) -> tuple[Picture, ...]:
        """Return the pictures of these names, or all, as data."""
        known = self.pictures()
        for name in names:
            if name not in known:
                raise ArgumentError(f"no picture is named {name!r}, expected {', '.join(known)}")
        return tuple(picture for name in names or known for picture in known[name]())

    def records(self) -> Table:
        """Return the numbers that `to_frame` exports; those of `table` by default."""
        return self.table()

    def to_frame(self, kind: str | None = None) -> Any:
        """Return the numbers as a frame of `"pandas"` or `"polars"`, or a dictionary, `"columns"`.

        None is pandas where it is installed, and the dictionary where it is not.
        """
        return data_frame(to_frame(self.records()), kind)

    def figure(self, *names: str) -> Figure:
        """Return the pictures of these names, or all, as one Matplotlib figure."""
        from bellweight.display.drawing import draw

        charts = self.charts(*names)
        if not charts:
            raise ArgumentError(
                f"there is nothing to draw for {', '.join(names) or 'this'}: the numbers are not "
                "known here"
            )
        return draw(charts)

    def _repr_html_(self) -> str:
        return to_html(self.table())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Group]:
        from bellweight.display.screen import face

        yield face(self.table(), options.max_width)
