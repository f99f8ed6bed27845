"""The picture of the eight-dimensional network: queues, routes, servers, drawn from the model.

What the paper says of the network in words (which queues have arrivals, which share a server, the
discount, the number of basis functions) is compared with the model. The paper prints no rates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bellweight.display import Column, Table
from bellweight.problems import QueueNetwork
from bellweight.report.document import plain
from bellweight.reproduce import paper, verdicts
from bellweight.reproduce.artefact import Artefact, Reproduction, Settings, Tell
from bellweight.reproduce.network.runs import BASIS
from bellweight.reproduce.tables import long_table, statement_table
from bellweight.reproduce.verdicts import Compared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PLACES = ((0, 0), (1, 0), (0, 1), (2, 0), (2, 1), (1, 1), (2, 2), (0, 2))
"""Column and row of each queue: one column for each server, and no two arrows cross."""


@dataclass(frozen=True)
class NetworkFigure(Reproduction):
    """The network, as the model has it."""

    network: QueueNetwork
    discount: float
    n_basis: int

    @property
    def caption(self) -> str:
        network = self.network
        return (
            f"The network of {network.n_queues} queues. Arrows show where a job goes after "
            "service; boxes show which queues share a server, which works on one of them at a "
            "time. Beside each queue stands the chance that a service is completed in a step."
        )

    def document(self) -> dict[str, Any]:
        """Return the data of the network."""
        return {
            "network": plain(self.network),
            "discount": self.discount,
            "n_basis": self.n_basis,
            "note": "Queues are numbered from 0 here, from 1 in the picture.",
        }

    def tables(self) -> tuple[Table, ...]:
        """Return the verdicts, and the queues one by one."""
        columns = (
            Column("queue", "queue"),
            Column("server", "server", right=False),
            Column("arrival", "arrivals per step", "{:.4f}".format),
            Column("service", "services per step", "{:.4f}".format),
            Column("next", "next", right=False),
        )
        notes = (
            "The paper prints no rates; these are the ones with which costs have the paper's size.",
        )
        return (
            statement_table(self.compared()),
            Table("The queues", columns, self.rows().rows, notes),
        )

    def rows(self) -> Table:
        """Return the queues one by one."""
        network = self.network
        rows = tuple(
            {
                "queue": i + 1,
                "server": " ".join(str(k + 1) for k in next(g for g in network.groups if i in g)),
                "arrival": network.arrivals[i],
                "service": network.services[i],
                "next": "out" if following is None else str(following + 1),
            }
            for i, following in enumerate(network.routes)
        )
        return long_table("Network", rows)

    def compared(self) -> tuple[Compared, ...]:
        """Return the verdicts on what the paper says of the network."""
        network = self.network
        groups = sorted(tuple(sorted(i + 1 for i in group)) for group in network.groups)
        entries = tuple(int(i) + 1 for i in np.flatnonzero(np.array(network.arrivals) > 0.0))
        return tuple(
            Compared(
                what=f"{what}: {_text(printed)}",
                ours=_text(ours),
                paper=_text(printed),
                verdict=verdicts.statement(ours == printed, "the model has another one"),
            )
            for what, ours, printed in (
                ("Queues that share a server", tuple(groups), paper.NETWORK_GROUPS),
                ("Queues with arrivals", entries, paper.NETWORK_ENTRIES),
                ("Discount", self.discount, paper.NETWORK_DISCOUNT),
                ("Basis functions", self.n_basis, paper.NETWORK_FUNCTIONS),
            )
        )

    def figure(self) -> Figure:
        from bellweight.display.network_figure import Node, Outside, network_figure

        network = self.network
        nodes = [
            Node(str(i + 1), *_PLACES[i], f"{network.services[i]:.3f}", _side(i) == "left")
            for i in range(network.n_queues)
        ]
        onward = dict(enumerate(network.routes))
        outside = [
            Outside(str(i + 1), _side(i), f"arrivals\n{rate:.3f} per step", enters=True)
            for i, rate in enumerate(network.arrivals)
            if rate > 0.0
        ]
        outside += [
            Outside(str(i + 1), _side(i), "done", enters=False)
            for i, following in onward.items()
            if following is None
        ]
        return network_figure(
            nodes,
            [(str(i + 1), str(k + 1)) for i, k in onward.items() if k is not None],
            outside,
            {
                f"server {place}": [str(i + 1) for i in group]
                for place, group in enumerate(network.groups, 1)
            },
            "beside a queue: the chance that its service is completed in a step",
        )


def steps(settings: Settings, _: Tell) -> Iterator[NetworkFigure]:
    """Read the network from the model that Table 2 uses."""
    network = QueueNetwork()
    model = network.model(compiled=False)
    n_basis = BASIS(np.ones((1, network.n_queues))).shape[1]
    yield NetworkFigure(network, model.discount, n_basis, settings=settings)


ARTEFACTS = (Artefact("figure-network", steps),)


def _side(queue: int) -> str:
    return "left" if _PLACES[queue][0] == 0 else "right"


def _text(value: Any) -> str:
    if not isinstance(value, tuple):
        return f"{value:g}"
    parts = [" ".join(map(str, part)) if isinstance(part, tuple) else str(part) for part in value]
    return ", ".join(parts)
