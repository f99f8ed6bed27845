"""The data that compiled loops take, as named tuples of arrays.

Numba knows a tuple's fields by their types, so a loop is compiled once for each kind of policy: a
field that is None takes the code that would use it with it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, IntArray

(
    FINE, BAD_PROBABILITY, OUTSIDE, BAD_COST, BAD_ACTION, NO_ACTION, NOT_A_NUMBER, NOT_WHOLE,
    WRONG_LENGTH,
) = range(9)  # fmt: skip
"""Faults that loops meet; FAULTS * (action + 1) is added where the action is known."""

FAULTS = 16

FINITE, NORMAL, GAMMA, EXPONENTIAL, INTERVAL = range(5)
"""Kinds of random numbers; see `Laws`."""

COORDINATE, HINGE, CLIP, BUMP, WAVE, SPOT, WRITTEN = range(7)
"""Kinds of atoms; see `Functions`."""


class Grids(NamedTuple):
    """Functions in groups that look at the same few coordinates, tabulated on all their values.

    Group g looks at the coordinates at[start[g]:start[g + 1]] and has the cells
    cell_start[g]:cell_start[g + 1], the last coordinate changing fastest. Its functions are
    column[column_start[g]:column_start[g + 1]], and `table` has from table_start[g] on their
    numbers, cell by cell. `value` has for each cell the sum of functions times coefficients, where
    there are coefficients.
    """

    start: IntArray
    at: IntArray
    cell_start: IntArray
    column_start: IntArray
    column: IntArray
    table_start: IntArray
    table: FloatArray
    value: FloatArray


class Functions(NamedTuple):
    """W functions of the state, each the product of an earlier one and an atom.

    Function 0 is the constant 1 and function k is function prefix[k] times atom letter[k]. Atoms 0
    to d - 1 are the coordinates. Atom d + m looks at the coordinates at[start[m]:start[m + 1]],
    x, with as many weights w and one `number`; by its kind it is

        HINGE      max(w' x - number, 0)
        CLIP       min(w' x, number)
        BUMP       exp(-|x - w|^2 / (2 number^2))
        WAVE       cos(w' x + number)
        SPOT       1 where x = w, otherwise 0
        WRITTEN    output `number` of the user's own function

    `grids` has the functions tabulated, for models whose coordinates move independently.
    """

    prefix: IntArray
    letter: IntArray
    kind: IntArray
    start: IntArray
    at: IntArray
    weight: FloatArray
    number: FloatArray
    grids: Grids | None = None


class Quadratic(NamedTuple):
    """The function constant + linear' x + x' square x, for which differences are cheap.

    curve[e] is jump' square jump of event e, where events are jumps.
    """

    constant: float
    linear: FloatArray
    square: FloatArray
    curve: FloatArray


class Table(NamedTuple):
    """An open-addressing hash table from states (m, d) to rows of numbers (m, n)."""

    slots: IntArray
    states: Any
    numbers: FloatArray


class Dual(NamedTuple):
    """What a policy does in states with dual mass.

    A table of states and, where nearby states share their dual, `reach` = (radius, temperature,
    smoothing mass). The numbers are the dual itself then; with radius 0 they are the running sums
    (A,) of the softmax and, last, its share of the policy.
    """

    slots: IntArray
    states: Any
    numbers: FloatArray
    reach: FloatArray


class Lookahead(NamedTuple):
    """How a policy is improved by one step of simulation in every decision.

    A decision simulates up to `paths` futures of up to `horizon` steps, `first` of them before it
    looks for the first time, and leaves the policy where the gain is `clear` standard errors below
    zero; `hope` is the number of them that a choice needs at the end to be worth all paths. Where
    events have a table of chances, event e happens when the random number lies in
    [place[e], place[e] + chance).
    """

    paths: int
    first: int
    horizon: int
    clear: float
    hope: float
    key: Any
    place: FloatArray


class Acting(NamedTuple):
    """A policy: greedy where there are coefficients, a rule where it has numbers, else uniform.

    With a `lookahead` its decisions are improved by simulation. The value function is the largest
    of those with the rows of `coef` (J, W) as coefficients of `functions`; where it is a single
    quadratic one, `quadratic` says so. `ties` decide between actions that are equally good.
    """

    functions: Functions | None
    coef: FloatArray | None
    quadratic: Quadratic | None
    rule: FloatArray | None
    ties: Table
    dual: Dual
    lookahead: Lookahead | None = None


class Where(NamedTuple):
    """Where a loop stopped: the state (d,) and the random numbers (m,) of the step."""

    state: Any
    noise: FloatArray


class Given(NamedTuple):
    """What samplers drew for a block of episodes; empty where compiled code draws.

    The random numbers (n, H, m) of each step, and the first states (n, d).
    """

    noise: FloatArray
    states: FloatArray


class Laws(NamedTuple):
    """Independent random numbers, one for each of m components.

    By its kind a component has one of the values values[start[j]:start[j + 1]] with running sums
    `sums`; or it is normal with mean first[j] and deviation second[j], gamma with this shape and
    scale, exponential with mean first[j], or uniform between the two. A normal one is cut to
    [low[j], high[j]], where its distribution function is below[j] and above[j].
    """

    kind: IntArray
    first: FloatArray
    second: FloatArray
    low: FloatArray
    high: FloatArray
    below: FloatArray
    above: FloatArray
    start: IntArray
    values: FloatArray
    sums: FloatArray


class StepData(NamedTuple):
    """A step model's numbers: its box, the law of its noise, and nodes (N, m) with weights (N,)."""

    parameters: FloatArray
    lower: FloatArray
    upper: FloatArray
    integer: Any
    initial: Laws
    noise: Laws
    nodes: FloatArray
    weights: FloatArray


class LocalTables(NamedTuple):
    """Tables of a few coordinates and the action, each in C order one after another.

    Table j looks at the coordinates at[start[j]:start[j + 1]]; its entries for a state x and an
    action a begin at offset[j] + sum of stride[k] x[at[k]] + width[j] a.
    """

    start: IntArray
    at: IntArray
    stride: IntArray
    offset: IntArray
    width: IntArray
    values: FloatArray


class FactorData(NamedTuple):
    """A factored model's numbers: coordinate i has first[i + 1] - first[i] values.

    `laws` has the chances of the next values of each coordinate and `sums` their running sums, in
    the same places.
    """

    parameters: FloatArray
    first: IntArray
    initial: Laws
    laws: LocalTables
    sums: FloatArray
    costs: LocalTables


class EventData(NamedTuple):
    """An event model's numbers, with chances and jumps where they are data.

    Episodes begin in `start`; with a negative `log_decay` in geometric states instead, `share` of
    whose mass lies within the bounds.
    Event e changes coordinate jump_at[e, k] by jump_by[e, k], k < jump_count[e]. Under action a,
    event event[a, k] has chance chance[a, k], k < event_count[a]. `varying` are the events whose
    chance depends on the action, with their chances (varying events, A). Where actions are all
    combinations of independent choices, group g has the options option_start[g]:option_start[g +
    1]; option o gives event option_event[o, k] the chance option_chance[o, k], k < option_count[o];
    `combined` maps the combinations to actions.
    """

    parameters: FloatArray
    start: FloatArray
    share: FloatArray
    log_decay: float
    table: FloatArray
    upper: IntArray
    jump_count: IntArray
    jump_at: IntArray
    jump_by: IntArray
    event_count: IntArray
    event: IntArray
    chance: FloatArray
    varying: IntArray
    varying_chance: FloatArray
    option_start: IntArray
    option_count: IntArray
    option_event: IntArray
    option_chance: FloatArray
    stride: IntArray
    combined: IntArray


class Scale(NamedTuple):
    """What slacks are compared with.

    `unit` is added to the scale of every row; `rounded` bounds the rounding error of any slack;
    `homogeneous` slacks leave out the costs. The tolerances are those of these names, and `most` is
    how many times its own scale a row's terms may add to it.
    """

    discount: float
    unit: float
    rounded: float
    homogeneous: bool
    feasibility: float = tolerances.FEASIBILITY
    nearness: float = tolerances.NEAR
    rounding: float = tolerances.ROUNDING
    most: float = tolerances.SPOILT / tolerances.FEASIBILITY


class Look(NamedTuple):
    """What a lookahead writes to: see `lookahead.py`.

    M + 1 copies of a state, as they begin and as they are (M + 1, d), whether they are `needed`,
    may differ and still do, and their `change` in cost; Q candidates with their weights (Q, M + 1),
    extra costs, sums of gains and squares, owners and members. `places` holds the place of the
    action among the combinations of choices and the policy's own choice of each owner.
    """

    begun: Any
    copies: Any
    needed: IntArray
    differs: IntArray
    apart: IntArray
    change: FloatArray
    weight: FloatArray
    extra: FloatArray
    mean: FloatArray
    square: FloatArray
    alive: IntArray
    owner: IntArray
    member: IntArray
    places: IntArray
    noise: FloatArray


class Work(NamedTuple):
    """Arrays that a loop writes to again and again.

    `change` (E,) is that of the value by each event; `gain` (A,) the expected change under each
    action, `paid` (A,) its cost and `quality` (A,) both together.
    """

    u: FloatArray
    successor: Any
    raw: FloatArray
    noise: FloatArray
    slope: FloatArray
    change: FloatArray
    quality: FloatArray
    gain: FloatArray
    paid: FloatArray
    atoms: FloatArray
    phi: FloatArray
    look: Look | None


class Kept(NamedTuple):
    """What scans keep, scan p in row p: see `closest.py`. Near rows of scans follow each other."""

    place: IntArray
    relative: FloatArray
    size: FloatArray
    near: IntArray
    counts: IntArray
    violations: FloatArray


class Batch(NamedTuple):
    """The numbers of several states side by side, state m in column m of each array.

    Coordinates and slope (d, M); values and their expected change by what no action changes (M,);
    changes of value by events (E, M); slacks and costs of actions (A, M), with the least slack and
    the bounds on the sizes of costs (M,).
    """

    x: FloatArray
    slope: FloatArray
    here: FloatArray
    base: FloatArray
    change: FloatArray
    slack: FloatArray
    paid: FloatArray
    least: FloatArray
    low: FloatArray
    high: FloatArray


class After(NamedTuple):
    """Features (W,) of a state and of what follows, with their expected change.

    `phi` (E, W) holds those after each event and `reached` (E,) whether it leads anywhere.
    """

    here: FloatArray
    gain: FloatArray
    phi: FloatArray
    reached: Any


def writable(array: Any) -> Any:
    """Return an array as loops know it: in C order and writable, whatever it is."""
    return (
        array if array.flags.c_contiguous and array.flags.writeable else np.array(array, order="C")
    )


def uniform(data: Any) -> Any:
    """Return a tuple with all its arrays writable and in C order: of others loops compile anew."""
    return type(data)(
        *(
            writable(part) if isinstance(part, np.ndarray)
            else uniform(part) if isinstance(part, tuple)
            else part
            for part in data
        )
    )  # fmt: skip
