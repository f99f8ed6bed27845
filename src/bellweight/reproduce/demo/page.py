"""The page of the demonstration: the same story as on the screen, first glance first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bellweight.display import Table, facts_table
from bellweight.display.charts import Chart, Line, off_scale, visible_heights
from bellweight.display.cost_charts import Between, gap_chart
from bellweight.report.sections import Card, Section, assemble, origin
from bellweight.reproduce.demo.queue_part import BY_HAND, EXACT, KINKED, QueuePart

if TYPE_CHECKING:
    from bellweight.reproduce.demo import Demo

_LONGEST_QUEUE = 15  # jobs in the picture of values


def demo_page(found: Demo) -> str:
    """Return the page."""
    proven, network = found.queue.proven, found.network
    return assemble(
        "A policy, and proof of how good it is",
        [
            "Bellweight finds policies for Markov decision processes and proves how much cheaper "
            "any other policy can be. Here: a queue small enough to check that proof, and a "
            "network that nobody can list."
        ],
        list(_sections(found)),
        cards=[
            Card(f"{proven.savings:.2g} %", "of the queue's cost can be saved at most, from 11 "
                 f"numbers for {found.queue.model.n_states:,} states"),
            Card(f"{network.best.savings:.1f} %", "is all that any policy of the network can save "
                 "on the best rule of thumb"),
            Card(f"{network.lower_bound:,.0f}", "is the least that any policy of the network "
                 "costs: proven over all states"),
        ],
    )  # fmt: skip


def cost_charts(found: Demo) -> tuple[Chart, Chart]:
    """Return costs and bounds of both parts: the picture of the README."""
    queue, network = found.queue, found.network
    small = gap_chart(
        [Between(r.policy, r.cost, None, r.lower_bound) for r in queue.rows[:-1]],
        queue.optimal_cost,
    )
    large = gap_chart(
        [Between(r.policy, r.cost, r.half_width, r.lower_bound) for r in network.rows]
    )
    return (
        replace(small, title=f"A queue with {queue.model.n_states:,} states"),
        replace(large, title="A network of eight endless queues"),
    )


def _sections(found: Demo) -> Iterator[Section]:
    queue, network = found.queue, found.network
    first, second = queue.sentences()
    yield Section(
        "queue",
        "A queue: is the policy good?",
        first,
        (
            cost_charts(found)[0],
            _untitled(queue.table()),
        ),
    )
    yield Section("values", "Why: what the numbers say", second, (_values(queue),))
    first, second = network.sentences()
    yield Section(
        "network",
        "Eight queues without end",
        first,
        (cost_charts(found)[1], _untitled(network.table("±"))),
    )
    yield Section(
        "policy",
        "What Bellweight's policy does there",
        second.replace("+-", "±")
        + " The maps show which three queues it serves, by the lengths of two of them: x1 is the "
        "length of queue 1.",
        network.ours.charts("policy"),
    )
    yield Section("origin", "Made by", "", (facts_table("", [*_settings(found), *origin()]),))


def _values(queue: QueuePart) -> Chart:
    """Draw the exact cost to go, and what the guessed and the chosen weights make of it."""
    jobs = np.arange(_LONGEST_QUEUE + 1)
    names = (KINKED, *BY_HAND)
    lines = [Line(EXACT, jobs, queue.optimum.values[jobs], "rule")]
    lines += [Line(name, jobs, queue.results[name].visited.value[jobs]) for name in names]
    shown = (0.0, float(_LONGEST_QUEUE))
    chart = Chart(
        "values", "Cost to go", "jobs in the queue", "expected discounted cost", tuple(lines),
        "Eleven numbers follow the exact values where the queue spends its time.",
        x_range=shown, y_range=visible_heights(lines[:-1], shown),
    )  # fmt: skip
    return replace(chart, alt=chart.alt + off_scale(lines, chart))


def _settings(found: Demo) -> list[tuple[str, str]]:
    network = found.network
    one: Any = network.comparison.evaluations[network.comparison.baseline]
    return [
        ("queue", f"{KINKED} and 4 numbers: DIA; by hand: Fixed, decay of the weights"),
        ("network, proof", f"{len(network.proof.coef)} functions, LocalRows"),
        ("network, policy", f"{len(network.ours.coef)} functions, SampledRows, regularised"),
        ("simulation", f"{one.episodes:,} episodes of {one.horizon:,} steps, seed {one.seed}"),
        ("seconds", f"{found.seconds:.0f}"),
    ]


def _untitled(table: Table) -> Table:
    return replace(table, title="")
