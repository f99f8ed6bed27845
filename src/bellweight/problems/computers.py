"""Computers in a network that fail, infect their neighbours and are rebooted one per step.

Each of n computers works (0) or has failed (1). A working computer fails in a step with probability
`failure` plus `infection` for each failed neighbour that it listens to. One computer per step may
be rebooted: it works in the next step with probability `repair`. Every failed computer costs one
per step. The factored planning literature (Guestrin, Koller, Parr and Venkataraman 2003) uses such
rings and stars: 2^n states, and everything is local.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellweight.common import checks, tolerances
from bellweight.common.status import ModelError
from bellweight.models import FactoredModel, Law, Local


def computer_network(
    listens: Sequence[Sequence[int]] = ((3,), (0,), (1,), (2,)),
    *,
    failure: float = 0.05,
    infection: float = 0.3,
    repair: float = 0.95,
    discount: float = 0.95,
    broken: float = 0.0,
    compiled: bool = True,
) -> FactoredModel:
    """Return a network in which computer i listens to the computers in `listens[i]`.

    Action 0 reboots nobody, action i + 1 computer i, which is `x1` for i = 0 in tables and
    pictures, rebooted by `reboot 1`. At the start each computer has failed with
    probability `broken`, independently.
    """
    try:
        listens = [list(near) for near in listens]
    except TypeError:
        raise ModelError(
            f"listens is {listens!r}, expected for each computer those it listens to, as in "
            "[(1,), (0,)]; for a number of computers see computer_ring and computer_star"
        ) from None
    n = len(listens)
    for name, chance in (("failure", failure), ("infection", infection), ("repair", repair)):
        if not 0.0 <= chance <= 1.0:
            raise ModelError(f"{name} is {chance}, expected a probability")
    most = max((len(near) for near in listens), default=0)
    if failure + most * infection > 1.0 + tolerances.CHANCES:
        raise ModelError(
            f"failure + {most} infection is {failure + most * infection:.6g}, expected at most 1: "
            "lower the chance of an infection, or the number of neighbours"
        )
    for i, near in enumerate(listens):
        if any(j not in range(n) or j == i for j in near) or len(set(near)) < len(near):
            raise ModelError(f"listens[{i}] is {list(near)}, expected other computers, each once")

    def law(i: int) -> Local:
        scope = sorted({i, *listens[i]})
        own = scope.index(i)

        def chances(*values: int) -> list[float]:
            *states, action = values
            fails = failure + infection * (sum(states) - states[own])
            if states[own] == 1:
                fails = 1.0
            if action == i + 1:
                fails = 1.0 - repair
            return [1.0 - fails, fails]

        return Local(scope, chances)

    return FactoredModel(
        sizes=[2] * n,
        actions=["reboot nobody", *(f"reboot {i + 1}" for i in range(n))],
        laws=[law(i) for i in range(n)],
        costs=[Local([i], lambda failed, action: float(failed)) for i in range(n)],
        discount=discount,
        initial=[Law([0, 1], [1.0 - broken, broken])] * n,
        cost_growth=n * (failure + most * infection),
        compiled=compiled,
        name=f"network of {n} computers",
    )


def computer_ring(
    n: int = 10,
    *,
    failure: float = 0.05,
    infection: float = 0.3,
    repair: float = 0.95,
    discount: float = 0.95,
    broken: float = 0.0,
    compiled: bool = True,
) -> FactoredModel:
    """Return a ring of n computers: computer i listens to computer i - 1."""
    checks.count(n, "n", least=2)
    return computer_network(
        [((i - 1) % n,) for i in range(n)], failure=failure, infection=infection, repair=repair,
        discount=discount, broken=broken, compiled=compiled,
    )  # fmt: skip


def computer_star(
    n: int = 10,
    *,
    failure: float = 0.05,
    infection: float = 0.3,
    repair: float = 0.95,
    discount: float = 0.95,
    broken: float = 0.0,
    compiled: bool = True,
) -> FactoredModel:
    """Return a star of n computers: all others listen to computer 0."""
    checks.count(n, "n", least=2)
    return computer_network(
        [(), *((0,) for _ in range(n - 1))], failure=failure, infection=infection, repair=repair,
        discount=discount, broken=broken, compiled=compiled,
    )  # fmt: skip
