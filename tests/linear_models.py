"""Small linear models that several tests use."""

from __future__ import annotations

import numpy as np

import bellweight as bw


def shop(**changes: object) -> bw.LinearModel:
    """A shop: stock up to 6, orders up to 3, demand 0 to 2 that is lost never."""
    data: dict[str, object] = {
        "state_cost": [2.0],
        "action_cost": [5.0],
        "next_state": [[1.0]],
        "next_action": [[1.0]],
        "noise": bw.models.Independent([bw.Law([-2, -1, 0], [0.25, 0.5, 0.25])]),
        "initial": bw.models.Independent([bw.Law.uniform(2, 4)]),
        "discount": 0.9,
        "state_upper": 6,
        "action_upper": 3,
        "state_rows": [[1.0]],
        "action_rows": [[1.0]],
        "row_upper": 8.0,
        "state_names": ("stock",),
        "action_names": ("order",),
        "row_names": ("space",),
    }
    return bw.LinearModel(**{**data, **changes})  # type: ignore[arg-type]


def desk() -> bw.LinearModel:
    """A model of a few jobs; it never leaves its box."""
    built = bw.LinearBuilder(discount=0.8, name="desk")
    jobs = built.state("jobs", upper=8, initial=bw.Law.uniform(0, 8))
    done, handed = built.action("done", upper=4), built.action("handed", upper=4)
    new = built.noise("new", bw.Law([0, 1, 2, 3], [0.1, 0.3, 0.4, 0.2]))
    built.require(jobs - done - handed <= 5)
    built.require(done + handed <= jobs)
    built.follow(jobs, jobs - done - handed + new)
    built.cost(2 * jobs + 3 * done + 3 * handed)
    return built.build(first_cost=40.0, cost_growth=0.0)


def nonnegative(model: bw.LinearModel) -> bw.Affine:
    return bw.Affine(lower=np.append(-np.inf, np.zeros(model.dimension)))
