"""Proven bounds on the violation of rows over a whole box, from what a user declares.

With a value function V(x) = sum over f of v_f(u_f . x), each v_f piecewise linear, and finitely
many nodes w of the noise, the slack of an action,

    g(x) = sum over w of weight_w [cost(x, a, w) + discount V(step(x, a, w))] - V(x),

is bounded below over the box in two ways.

**Bends** (one dimension). Where step and cost are piecewise linear in x and bend only at declared
states, g is piecewise linear, too: it bends there, at the kinks of V, and where a piece of the step
meets a kink. On each piece the step is a line, so these states are found by division. The least
value of g is found among them and the ends of the box. In two dimensions see `plane_proof`.

**Lipschitz constants** (any dimension, practical in one and two; V a sum of functions of single
coordinates). Where |step(x) - step(x')| <= S |x - x'| and |cost(x) - cost(x')| <= C |x - x'| in the
maximum norm, g over a cell with centre c and half-width r is at least

    g(c) - C r - |v'| r - discount E[|v'| near step(c)] S r,

where |v'| is the sum over coordinates of the largest slope of v_i in the cell, or within S r of the
next state. The box is cut into cells, and those with the lowest bound are cut again, until the
bound is close to the lowest g found or a limit on their number is reached.

Both hold for the model with its nodes. Rounding is counted by a margin relative to the terms, and
to what slopes make of the rounding of states: far from zero, neighbouring states are far apart.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from bellweight.common.checks import FloatArray
from bellweight.models.declared import bends_at, stepped
from bellweight.models.laws import Law
from bellweight.models.noise import product_nodes
from bellweight.models.step import StepModel
from bellweight.program.forms import Form, constant_in, forms_of
from bellweight.program.plane_proof import cost_scale, slacks_of, worst_in_plane
from bellweight.program.repair import Repaired
from bellweight.program.sampled_rows import EventRows

_UNIT = 2.0**-53
_SPARE = 8.0
_CELLS = 400_000  # for all actions together
_PLAIN_CELLS = 4_000  # where the model runs as plain Python
_CUT = 4_096  # cells that are cut at a time
_CLOSE = 1e-3  # of the cost scale: no finer bound is looked for


def violation_in_box(rows: EventRows, model: StepModel, coef: FloatArray) -> float | None:
    """Return a number that no violation exceeds, None where the declarations give none."""
    if why_not(rows, model) is not None:
        return None
    forms = forms_of(rows.basis, model.dimension, coef)
    assert forms is not None
    with np.errstate(over="ignore", invalid="ignore"):
        found = _largest(rows, model, coef, forms)
    return found if found is not None and np.isfinite(found) else None


def _largest(
    rows: EventRows, model: StepModel, coef: FloatArray, forms: list[Form]
) -> float | None:
    """Return the bound by the way that the declarations allow; not finite where values are not."""
    if model.bends is None:
        return _by_cells(rows, model, coef, forms)
    if model.dimension == 1:
        return _by_bends(rows, model, coef, forms[0])
    found = worst_in_plane(rows, model, coef, forms)
    if found is not None:
        return found.violation + _margin(rows, model, coef, forms, found.cost, found.steep)
    usable = model.lipschitz is not None and len(forms) == model.dimension
    return _by_cells(rows, model, coef, forms) if usable else None


def why_not(rows: EventRows, model: StepModel) -> str | None:
    """Return why nothing can be proven from what is declared, None where something can."""
    if model.bends is None and model.lipschitz is None:
        return "neither bends nor lipschitz is declared"
    if model.admissible is not None:
        return "not every action is admissible everywhere"
    if not (np.isfinite(model.lower).all() and np.isfinite(model.upper).all()):
        return "the box has a side without a bound"
    if model.integer.any():
        return "some coordinates are whole numbers"
    forms = forms_of(rows.basis, model.dimension, np.zeros(rows.n_basis))
    if forms is None or (model.bends is None and len(forms) > model.dimension):
        return "the basis has functions that are not piecewise linear in one coordinate"
    if constant_in(rows.basis, model.dimension) is None:
        return "the basis has no constant function of its own"
    return None


def no_bound(rows: EventRows, model: StepModel) -> str:
    """Return why a model with declarations has no proven bound; no text without declarations."""
    if model.bends is None and model.lipschitz is None:
        return ""
    if _first_states(model) is None:
        return "the first states have no finite law"
    return why_not(rows, model) or (
        "there are too many pieces (use fewer nodes of the noise), or the values are too large"
    )


def repaired_in_box(rows: EventRows, model: StepModel, coef: FloatArray) -> Repaired | None:
    """Return coefficients at which all rows hold, by moving the constant, where that is proven."""
    first = _first_states(model)
    violation = None if first is None else violation_in_box(rows, model, coef)
    # Functions that add up to one in the sampled states need not do so in others.
    constant = None if violation is None else constant_in(rows.basis, model.dimension)
    if first is None or violation is None or constant is None:
        return None
    states, chances = first
    features = np.asarray(rows.basis(states))
    before = float(chances @ features @ coef)
    drop = max(violation, 0.0) / (1.0 - model.discount)
    lowered = coef.copy()
    lowered[constant] -= drop
    terms = float(chances @ np.abs(features) @ np.abs(coef))
    error = _SPARE * _UNIT * (len(coef) + len(states) + 64) * terms
    value = before - (1.0 + 4.0 * _UNIT) * drop - error
    if not np.isfinite(value):
        return None
    return Repaired(
        coef=lowered,
        value=value,
        violation=max(violation, 0.0),
        loss=before - value,
    )


def proof_text(model: StepModel) -> tuple[str, str]:
    """Return the kind of the bound and how it is known."""
    how = "declared bends" if model.bends is not None else "declared Lipschitz constants"
    text = f"over the whole box, from {how} of step and cost"
    if model.are_draws:
        return "estimated", f"{text}, for the model with its {model.n_nodes:,} draws of the noise"
    if model.has_quadrature:
        nodes = f"{model.n_nodes:,} quadrature nodes"
        return "estimated", f"{text}, for the model with its {nodes} in place of the law"
    return "exact", text


def _by_bends(rows: EventRows, model: StepModel, coef: FloatArray, form: Form) -> float:
    """Return the largest violation over the box: it is at one of finitely many states."""
    low, high = float(model.lower[0]), float(model.upper[0])
    worst, dear, steep = -np.inf, 0.0, 0.0
    for action in range(model.n_actions):
        turns = [np.array([low, high]), form.kinks]
        for node in model.nodes:
            ends = np.unique(np.clip([low, *bends_at(model, action, node)[1], high], low, high))
            turns.append(ends)
            turns.append(_meets(model, action, node, ends, form.kinks))
        states = np.unique(np.concatenate(turns))
        states = states[(states >= low) & (states <= high)][:, None]
        slack, cost = slacks_of(rows, coef, states, action)
        worst, dear = float(np.maximum(worst, -slack.min())), max(dear, cost)  # NaN stays
        steep = max(steep, float((np.abs(np.diff(slack)) / np.diff(states[:, 0])).max(initial=0.0)))
    return worst + _margin(rows, model, coef, [form], dear, steep)


def _meets(
    model: StepModel, action: int, node: FloatArray, ends: FloatArray, kinks: FloatArray
) -> FloatArray:
    """Return where the step, a line between neighbouring ends, takes the values of kinks."""
    after = np.array([stepped(model, np.array([x]), action, node)[0] for x in ends])
    width, rise = np.diff(ends), np.diff(after)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (kinks[:, None] - after[:-1]) / rise
        found = ends[:-1] + share * width
    inside = (share > 0.0) & (share < 1.0)
    return np.asarray(found[inside])


def _by_cells(rows: EventRows, model: StepModel, coef: FloatArray, forms: list[Form]) -> float:
    """Return a bound on the violation by branch and bound over cells of the box."""
    worst, dear = -np.inf, 0.0
    limit = (_CELLS if model.compiled else _PLAIN_CELLS) // model.n_actions
    found = max(-slacks_of(rows, coef, _centres(model), a)[0].min() for a in range(model.n_actions))
    close = _CLOSE * cost_scale(model)
    for action in range(model.n_actions):
        left = ((model.upper - model.lower) / 2.0)[None, :]
        centre = ((model.upper + model.lower) / 2.0)[None, :]
        done = 0
        above, cost = _cell_bounds(rows, model, coef, forms, centre, left, action)
        while True:
            dear = max(dear, cost)
            goal = max(found, worst, 0.0) + close
            open_cells = np.flatnonzero(above > goal)
            done += len(above)
            if len(open_cells) == 0 or done >= limit:
                break
            chosen = open_cells[np.argsort(-above[open_cells])[:_CUT]]
            kept = np.setdiff1d(np.arange(len(above)), chosen, assume_unique=True)
            new_centre, new_left = _halved(centre[chosen], left[chosen])
            bound, cost = _cell_bounds(rows, model, coef, forms, new_centre, new_left, action)
            centre = np.vstack([centre[kept], new_centre])
            left = np.vstack([left[kept], new_left])
            above = np.concatenate([above[kept], bound])
        worst = float(np.maximum(worst, above.max()))  # NaN stays
    assert model.lipschitz is not None
    return worst + _margin(rows, model, coef, forms, dear, model.lipschitz.cost)


def _cell_bounds(
    rows: EventRows,
    model: StepModel,
    coef: FloatArray,
    forms: list[Form],
    centre: FloatArray,
    half: FloatArray,
    action: int,
) -> tuple[FloatArray, float]:
    """Return what no violation in cells (n, d) exceeds, and the largest absolute cost."""
    assert model.lipschitz is not None
    slack, cost = slacks_of(rows, coef, centre, action)
    radius = half.max(axis=1)
    reach = model.lipschitz.step * radius
    lost = model.lipschitz.cost * radius
    for i, form in enumerate(forms):
        lost = lost + half[:, i] * form.steepest(
            centre[:, i] - half[:, i], centre[:, i] + half[:, i]
        )
    after = model.loops.expand(centre, np.full(len(centre), action))[2]
    for i, form in enumerate(forms):
        for node, weight in enumerate(model.weights):
            own = after[:, node, i]
            steep = form.steepest(own - reach, own + reach)
            lost = lost + model.discount * weight * reach * steep
    return -slack + lost, cost


def _halved(centre: FloatArray, half: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cut each cell in two along its longest side."""
    longest = np.argmax(half, axis=1)
    smaller = half.copy()
    rows = np.arange(len(half))
    smaller[rows, longest] *= 0.5
    shift = np.zeros_like(half)
    shift[rows, longest] = smaller[rows, longest]
    return np.vstack([centre - shift, centre + shift]), np.vstack([smaller, smaller])


def _centres(model: StepModel) -> FloatArray:
    return np.asarray(model.spread_states(256), dtype=np.float64)


def _margin(
    rows: EventRows,
    model: StepModel,
    coef: FloatArray,
    forms: list[Form],
    dear: float,
    steep: float,
) -> float:
    """Return what rounding can do to a slack: of sums over nodes and functions, and of states.

    The functions are largest in absolute value at ends of the box. A state, a bend or a next state
    that is rounded moves V by its slope, and the rest by `steep`.
    """
    ends = np.array([model.lower, model.upper])
    if len(forms) > model.dimension:  # some are functions of several coordinates
        ends = np.array(list(product(*ends.T)))
    terms = float(np.abs(np.asarray(rows.basis(ends))).max(axis=0) @ np.abs(coef))
    far = np.abs(ends).max(axis=0)
    moved = steep * float(far.sum())
    for form in forms:
        moved += 2.0 * float(np.abs(form.slopes).max() * (np.abs(form.direction) @ far))
    size = dear + 2.0 * terms + moved
    return _SPARE * _UNIT * (model.n_nodes + rows.n_basis + 64) * size


def _first_states(model: StepModel) -> tuple[FloatArray, FloatArray] | None:
    """Return the first states (n, d) and their chances (n,) where the law is finite and known."""
    if callable(model.initial):
        return None
    laws = [law for law in model.initial_laws if isinstance(law, Law)]
    return product_nodes(laws, 1) if len(laws) == model.dimension else None
