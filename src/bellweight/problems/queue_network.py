"""Queueing networks with shared servers; by default the eight-dimensional network of the paper.

Queues hold jobs; in each step at most one event happens: an arrival, or a service completion at a
queue that has a server. Jobs move along their route and leave at its end. Every server belongs to a
group of queues and is assigned to exactly one of them; serving an empty queue does nothing. The
cost of a step is the number of jobs in the system.

The baseline policies are rules of thumb that any method has to beat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import numpy as np

from bellweight.common import checks, tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import ModelError
from bellweight.models import EventModel, Geometric, Scopes
from bellweight.policies import Rule

_UNIT = 11.5


@dataclass(frozen=True)
class QueueNetwork:
    """The data of a network; queues are numbered from 0.

    `arrivals` and `services` are probabilities per step, one for each queue; `routes` gives each
    queue the next one, or None where jobs leave; `groups` lists the queues that share a server.
    """

    arrivals: Sequence[float] = (1 / _UNIT, 0, 0, 1 / _UNIT, 0, 0, 0, 0)
    services: Sequence[float] = tuple(m / _UNIT for m in (4, 2, 3, 3.1, 3, 2.2, 3, 2.5))
    routes: Sequence[int | None] = (1, 2, None, 4, 5, 6, 7, None)
    groups: Sequence[Sequence[int]] = ((0, 2, 7), (1, 5), (3, 4, 6))

    def __post_init__(self) -> None:
        for name in ("services", "arrivals", "routes"):
            _check_list(getattr(self, name), name, "one entry for each queue")
        n = len(self.services)
        checks.float_array(self.services, "services", (n,))
        checks.float_array(self.arrivals, "arrivals", (n,))
        if n == 0:
            raise ModelError("services is empty, expected at least one queue")
        for name, numbers in (("services", self.services), ("arrivals", self.arrivals)):
            for i, p in enumerate(numbers):
                if not 0.0 <= p <= 1.0:
                    raise ModelError(f"{name}[{i}] is {p}, expected a probability")
        if len(self.routes) != n:
            raise ModelError(f"routes has {len(self.routes)} entries, expected one per queue ({n})")
        for i, following in enumerate(self.routes):
            if following is not None and following not in range(n):
                raise ModelError(
                    f"routes[{i}] is {following}, expected a queue from 0 to {n - 1}, or None"
                )
        self._check_groups(n)
        busiest = sum(self.arrivals) + sum(max(self.services[i] for i in g) for g in self.groups)
        if busiest > 1.0 + tolerances.CHANCES:
            raise ModelError(
                f"arrivals and the fastest service of each group sum to {busiest:.6g}, expected at "
                "most 1, as one event happens at a time: divide all rates by a larger unit"
            )

    @property
    def n_queues(self) -> int:
        """Number of queues."""
        return len(self.services)

    @property
    def allocations(self) -> list[tuple[int, ...]]:
        """The actions: for each group, the queue that its server works on."""
        return list(product(*self.groups))

    def model(
        self,
        discount: float = 0.995,
        initial: Any = "geometric",
        decay: float = 0.9,
        upper: Any = None,
        compiled: bool = True,
    ) -> EventModel:
        """Return the network as an event model; `initial` is "geometric", "empty", or a state."""
        sources = np.flatnonzero(np.array(self.arrivals) > 0.0)

        def cost(state: Any) -> float:
            total = 0.0
            for i in range(len(state)):
                total += state[i]
            return total

        labels = [" ".join(str(i + 1) for i in queues) for queues in self.allocations]
        return EventModel(
            dimension=self.n_queues,
            actions=[f"serve {label}" for label in labels],
            events=[f"arrival {i + 1}" for i in sources]
            + [f"service {i + 1}" for i in range(self.n_queues)],
            cost=cost,
            probability=self._probabilities(sources),
            move=self._jumps(sources),
            discount=discount,
            initial=_initial(initial, self.n_queues, decay),
            upper=upper,
            cost_growth=float(sum(self.arrivals)),
            compiled=compiled,
            scopes=Scopes(
                cost=[(i,) for i in range(self.n_queues)],
                choices=[len(group) for group in self.groups],
            ),
            name=f"queue network ({self.n_queues} queues)",
        )

    def index_rule(self, fixed: Any = 0.0, length: Any = 0.0, pressure: Any = 0.0) -> Rule:
        """Serve, in each group, the queue of largest index, ties to the first; empty queues last.

        The index of queue i is fixed[i] + length[i] x_i + pressure[i] (x_i - x_next). All rules of
        this kind share their compiled code.
        """
        n = self.n_queues
        members, strides, onward = self._members(), self._strides(), self._onward()

        def index(state: Any, parameters: Any) -> int:
            action = 0
            for g in range(members.shape[0]):
                best, chosen = -np.inf, 0
                for k in range(members.shape[1]):
                    i = members[g, k]
                    if i >= 0:
                        ahead = state[onward[i]] if onward[i] >= 0 else 0
                        score = parameters[i] + parameters[n + i] * state[i]
                        score += parameters[2 * n + i] * (state[i] - ahead)
                        if state[i] == 0:
                            score -= 1e12
                        if score > best:
                            best = score
                            chosen = k
                action += chosen * strides[g]
            return action

        weights = [np.broadcast_to(part, (n,)) for part in (fixed, length, pressure)]
        return Rule(index, np.concatenate(weights).astype(np.float64))

    def static_priority(self, order: Sequence[int]) -> Rule:
        """Serve, in each group, the first queue in `order` that has jobs."""
        if sorted(order) != list(range(self.n_queues)):
            raise ModelError(f"order is {list(order)}, expected each queue from 0 once")
        return self.index_rule(fixed=-np.argsort(np.array(order)).astype(np.float64))

    def static_priorities(self) -> dict[tuple[int, ...], Rule]:
        """Return every static priority, by the order of the queues group by group."""
        orders = [sum(parts, ()) for parts in product(*(permutations(g) for g in self.groups))]
        return {order: self.static_priority(order) for order in orders}

    def last_buffer_first(self) -> Rule:
        """Serve the job closest to leaving; ties go to the last queue of the list."""
        left = self._stages_left()
        order = sorted(range(self.n_queues), key=lambda i: (left[i], -i))
        return self.static_priority(order)

    def longest_queue(self) -> Rule:
        """Serve, in each group, the longest queue."""
        return self.index_rule(length=1.0)

    def max_pressure(self) -> Rule:
        """Serve, in each group, the queue with the largest rate times backlog difference."""
        return self.index_rule(pressure=np.array(self.services))

    def _check_groups(self, n: int) -> None:
        _check_list(self.groups, "groups", "the queues of each server, as in [[0, 1], [2]]")
        for g, group in enumerate(self.groups):
            _check_list(group, f"groups[{g}]", "the queues that share a server, as in [0, 1]")
            if len(group) == 0:
                raise ModelError(
                    f"groups[{g}] is empty, expected at least one queue for its server"
                )
            for i in group:
                if i not in range(n):
                    raise ModelError(f"groups[{g}] names queue {i}, expected 0 to {n - 1}")
        served = [i for group in self.groups for i in group]
        if sorted(served) != list(range(n)):
            missing = sorted(set(range(n)) - set(served))
            problem = f"queue {missing[0]} has no server" if missing else "a queue has two servers"
            raise ModelError(f"{problem}: put each queue into exactly one group")

    def _probabilities(self, sources: IntArray) -> FloatArray:
        """Return the chance of each event under each action, (A, E)."""
        arrivals = np.array(self.arrivals, dtype=np.float64)[sources]
        table = np.zeros((len(self.allocations), len(sources) + self.n_queues))
        table[:, : len(sources)] = arrivals
        for action, queues in enumerate(self.allocations):
            for i in queues:
                table[action, len(sources) + i] = self.services[i]
        return table

    def _jumps(self, sources: IntArray) -> IntArray:
        """Return what each event adds to the queues, (E, d)."""
        arrivals = np.eye(self.n_queues, dtype=np.int64)[sources]
        services = -np.eye(self.n_queues, dtype=np.int64)
        for i, following in enumerate(self.routes):
            if following is not None:
                services[i, following] += 1
        return np.concatenate([arrivals, services])

    def _onward(self) -> IntArray:
        return np.array([-1 if i is None else i for i in self.routes], dtype=np.int64)

    def _members(self) -> IntArray:
        width = max(len(group) for group in self.groups)
        rows = [list(group) + [-1] * (width - len(group)) for group in self.groups]
        return np.array(rows, dtype=np.int64)

    def _strides(self) -> IntArray:
        """Return what a step in each group's choice adds to the action index."""
        sizes = [len(group) for group in self.groups]
        return np.array([int(np.prod(sizes[g + 1 :])) for g in range(len(sizes))], dtype=np.int64)

    def _stages_left(self) -> list[int]:
        left = []
        for i in range(self.n_queues):
            seen, following = [i], self.routes[i]
            while following is not None:
                if following in seen:
                    raise ModelError(f"the route from queue {i} never leaves: end it with None")
                seen.append(following)
                following = self.routes[following]
            left.append(len(seen))
        return left


def queue_network(
    arrivals: Sequence[float] | None = None,
    services: Sequence[float] | None = None,
    routes: Sequence[int | None] | None = None,
    groups: Sequence[Sequence[int]] | None = None,
    **options: Any,
) -> EventModel:
    """Return a network as an event model: the paper's unless its data are given.

    `options` are those of `QueueNetwork.model`: discount, initial, decay, upper, compiled.
    """
    given = {"arrivals": arrivals, "services": services, "routes": routes, "groups": groups}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) == 4:
        return QueueNetwork().model(**options)
    if missing:
        raise ModelError(f"{missing[0]} is missing: give arrivals, services, routes and groups")
    return QueueNetwork(**given).model(**options)  # type: ignore[arg-type]


def _check_list(value: Any, name: str, content: str) -> None:
    if isinstance(value, str) or np.ndim(np.asarray(value, dtype=object)) == 0:
        raise ModelError(f"{name} is {value!r}, expected a list: {content}")


def _initial(initial: Any, n_queues: int, decay: float) -> Any:
    if not isinstance(initial, str):
        return initial
    kind = checks.one_of(initial, "initial", ("geometric", "empty"))
    return Geometric(decay) if kind == "geometric" else (0,) * n_queues
