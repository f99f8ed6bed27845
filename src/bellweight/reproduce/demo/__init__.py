"""The demonstration: a queue that can be checked, then a network that nobody can list.

`run` does the work, `Demo` holds what was found and shows it: as two tables with a few sentences,
as a JSON document, and as a web page.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellweight.common import files
from bellweight.reproduce.artefact import Tell, ignore
from bellweight.reproduce.demo import network_part, queue_part
from bellweight.reproduce.demo.network_part import NetworkPart
from bellweight.reproduce.demo.queue_part import QueuePart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEXT = (
    "bellweight solve single_queue --method pia --option initial=reverse",
    "bellweight reproduce table1 --exact",
    "bellweight new event my_model.py",
)
"""Commands to try after the demonstration."""

NEXT_WORDS = "Next: start from a full queue, compare with the paper, or begin your own model:"


@dataclass(frozen=True)
class Demo:
    """Both parts, and the seconds that they took together."""

    queue: QueuePart
    network: NetworkPart
    seconds: float

    @property
    def parts(self) -> tuple[QueuePart, NetworkPart]:
        """The parts in the order of the story."""
        return self.queue, self.network

    def document(self) -> dict[str, Any]:
        """Return what was found, for programs."""
        return {
            "queue": self.queue.document(),
            "network": self.network.document(),
            "seconds": self.seconds,
        }

    def write_page(self, path: Path) -> None:
        """Write the page that tells the same."""
        from bellweight.reproduce.demo.page import demo_page

        files.write_text(files.check_target(path), demo_page(self))

    def figure(self, columns: int = 2) -> Figure:
        """Return costs and bounds of both parts side by side, or with one column for phones."""
        from bellweight.display.drawing import draw
        from bellweight.reproduce.demo.page import cost_charts

        return draw(cost_charts(self), columns=columns)


def run(tell: Tell = ignore) -> Demo:
    """Solve the queue and the network."""
    began = time.perf_counter()
    queue = queue_part.run(lambda words, share: tell(words, 0.2 * share))
    network = network_part.run(lambda words, share: tell(words, 0.2 + 0.8 * share))
    return Demo(queue, network, time.perf_counter() - began)
