"""Problems to try things on: those of the paper and of the literature, with open parameters.

Each is a factory that returns a model; rules and fast paths of a problem are in its own file.
A file is loaded when its problem is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bellweight.common import lazy

if TYPE_CHECKING:
    from bellweight.problems.ageing import ageing_stock
    from bellweight.problems.computers import computer_network, computer_ring, computer_star
    from bellweight.problems.inventory import continuous_inventory
    from bellweight.problems.lost_sales import lost_sales
    from bellweight.problems.maintenance import machine_maintenance
    from bellweight.problems.perishable import perishable_inventory
    from bellweight.problems.queue_network import QueueNetwork, queue_network
    from bellweight.problems.scheduling import scheduling
    from bellweight.problems.single_queue import single_queue

__all__ = [
    "QueueNetwork",
    "ageing_stock",
    "computer_network",
    "computer_ring",
    "computer_star",
    "continuous_inventory",
    "lost_sales",
    "machine_maintenance",
    "perishable_inventory",
    "queue_network",
    "scheduling",
    "single_queue",
]

_HOMES = {
    "bellweight.problems.ageing": "ageing_stock",
    "bellweight.problems.computers": "computer_network computer_ring computer_star",
    "bellweight.problems.inventory": "continuous_inventory",
    "bellweight.problems.lost_sales": "lost_sales",
    "bellweight.problems.maintenance": "machine_maintenance",
    "bellweight.problems.perishable": "perishable_inventory",
    "bellweight.problems.queue_network": "QueueNetwork queue_network",
    "bellweight.problems.scheduling": "scheduling",
    "bellweight.problems.single_queue": "single_queue",
}

ABOUT = {
    "single_queue": "The paper's single queue: pick the service rate.",
    "queue_network": "The paper's eight queues with shared servers, or others.",
    "scheduling": "The paper's clinic: book patients of several priorities.",
    "ageing_stock": "Perishable goods in whole units, lost sales, a lead time.",
    "continuous_inventory": "A warehouse whose stock is a real number.",
    "lost_sales": "Unmet demand is lost, and orders arrive late.",
    "perishable_inventory": "Perishable goods in real units, backlog, a lead time.",
    "computer_network": "Computers fail and infect others; one reboot per step.",
    "computer_ring": "The same, each computer linked to the next.",
    "computer_star": "The same, all computers linked to one in the middle.",
    "machine_maintenance": "Machines wear out; a crew renews two of them per step.",
}
"""What each problem is, in the order in which they are listed; nothing is loaded for it."""

if not TYPE_CHECKING:  # type checkers read the imports above
    __getattr__ = lazy.names(__name__, _HOMES, __all__)


def __dir__() -> list[str]:
    return list(__all__)
