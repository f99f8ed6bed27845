"""What `verify` knows about value functions over the box of a step model in one dimension.

A certificate of such a model records its value function V as plain functions with coefficients.
With declared bends the slack of an action,

    E[cost(x, a, w) + discount V(step(x, a, w))] - V(x),

is a line between the ends of the box, the kinks of V, the bends, and the states from which a piece
of the step meets a kink. It is least at one of these, so evaluating all of them proves the least
slack, up to rounding.

Nothing here uses row sources, bases or the proofs of `program`. The model's own functions, its
nodes and its declarations are shared with `certify`.
"""

from __future__ import annotations

from math import fsum

import numpy as np

from bellweight.certificates.enclosure import gamma
from bellweight.certificates.record import Record
from bellweight.common.blocks import blocks
from bellweight.common.checks import FloatArray
from bellweight.common.status import FileError
from bellweight.models.declared import bends_at
from bellweight.models.laws import Law
from bellweight.models.noise import product_nodes
from bellweight.models.step import StepModel

_BLOCK = 1 << 20  # next states at a time


def is_line(model: StepModel) -> bool:
    """Return whether the rows of a box follow from finitely many states."""
    return model.dimension == 1 and model.bends is not None


def line_value(model: StepModel, record: Record) -> float:
    """Return the value that the recorded functions prove, lowered by the largest violation."""
    values = _Values(model, record)
    laws = [] if callable(model.initial) else list(model.initial_laws)
    first = product_nodes([law for law in laws if isinstance(law, Law)], 1)
    if first is None or not laws or not all(isinstance(law, Law) for law in laws):
        raise FileError("the first states of the model have no finite law, so no value is proven")
    slacks = [
        _least_slack(model, values, action, _turns(model, values, action))
        for action in range(model.n_actions)
    ]
    start = float(first[1] @ values(first[0]))
    # Values are computed twice for a row, and the states where it bends are rounded as well.
    rounding = 4.0 * gamma(len(values.coef) + model.n_nodes + model.dimension + 16) * values.size
    worst = float(np.maximum(0.0, -np.min(slacks))) + rounding  # NaN stays
    # Chances may add up to a little more than one: then lowering by a constant mends less of a row,
    # and takes more from the value.
    mass, ahead = (max(1.0, fsum(chances)) for chances in (first[1], model.weights))
    left = 1.0 - model.discount * ahead
    found = start - rounding - mass * worst / left
    if not (np.isfinite(found) and left > 0.0):
        raise FileError("the values are too large: what they prove cannot be computed")
    return found


class _Values:
    """The recorded value function; `size` is that of its terms anywhere in the box, at most."""

    def __init__(self, model: StepModel, record: Record) -> None:
        dimension = model.dimension
        self.coef = record.numbers("coef")
        self.terms = record.parts("terms", len(self.coef))
        self.forms = np.zeros((len(self.coef), dimension))
        for form, term in zip(self.forms, self.terms, strict=True):
            weight = term.numbers("weight")
            np.add.at(form, term.whole("index", len(weight), dimension), weight)
        self.kind = [term.text("kind") for term in self.terms]
        self.number = np.array([term.number("number") for term in self.terms])
        unknown = set(self.kind) - {"constant", "coordinate", "hinge", "clip"}
        if unknown:
            raise FileError(f"a term is a {min(unknown)}, which is not known here")
        reach = np.maximum(np.abs(model.lower), np.abs(model.upper))
        largest = np.where(
            [kind == "constant" for kind in self.kind], 1.0, np.abs(self.forms) @ reach
        )
        self.size = float(np.abs(self.coef) @ (largest + np.abs(self.number)))

    def __call__(self, states: FloatArray) -> FloatArray:
        found = np.zeros(len(states))
        along = states @ self.forms.T
        for k, (kind, c) in enumerate(zip(self.kind, self.coef, strict=True)):
            u, number = along[:, k], self.number[k]
            if kind == "constant":
                found += c
            elif kind == "coordinate":
                found += c * u
            elif kind == "hinge":
                found += c * np.maximum(u - number, 0.0)
            else:
                found += c * np.minimum(u, number)
        return found

    def kinks(self) -> FloatArray:
        """Return where it bends, in one dimension."""
        bent = [k for k, kind in enumerate(self.kind) if kind in ("hinge", "clip")]
        bent = [k for k in bent if self.forms[k, 0] != 0.0]
        return np.array([self.number[k] / self.forms[k, 0] for k in bent])


def _turns(model: StepModel, values: _Values, action: int) -> FloatArray:
    """Return the states (n, 1) at which the slack of an action may bend, and the ends."""
    low, high = float(model.lower[0]), float(model.upper[0])
    kinks, found = values.kinks(), [low, high]
    found += kinks.tolist()
    for number, node in enumerate(model.nodes):
        ends = np.unique(np.clip([low, *bends_at(model, action, node)[1], high], low, high))
        after = model.loops.expand(ends[:, None], np.full(len(ends), action))[2][:, number, 0]
        found += ends.tolist()
        for i in range(len(ends) - 1):
            rise = after[i + 1] - after[i]
            for kink in kinks[(kinks - after[i]) * (kinks - after[i + 1]) < 0.0]:
                found.append(ends[i] + (kink - after[i]) / rise * (ends[i + 1] - ends[i]))
    states = np.unique(found)
    return np.asarray(states[(states >= low) & (states <= high)][:, None])


def _least_slack(model: StepModel, values: _Values, action: int, states: FloatArray) -> float:
    """Return the least slack of an action at some states."""
    least = np.inf
    for part in blocks(len(states), _BLOCK // model.n_nodes):
        some = states[part]
        cost, chance, after = model.loops.expand(some, np.full(len(some), action))
        ahead = values(after.reshape(-1, model.dimension)).reshape(chance.shape)
        slack = cost + model.discount * (chance * ahead).sum(axis=1) - values(some)
        least = float(np.minimum(least, slack.min()))  # NaN stays NaN
    return least
