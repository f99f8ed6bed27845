"""Models of many parts that move in the same step, each by a law of its own.

A state has d coordinates with finitely many values each. Given the state x and the action a, they
move independently, and coordinate i looks at few of them:

    P(next | x, a) = product over i of law_i(next_i | x on its scope, a),
    cost(x, a)     = sum of functions of few coordinates and the action.

The joint successors, of which there are as many as states, are never listed. Episodes draw one
number for each coordinate. The expectation of a function of few coordinates is a sum over their
values, so that rows are exact for bases of such functions, and `LocalRows` searches the rows of all
states (Guestrin, Koller, Parr and Venkataraman, "Efficient solution algorithms for factored MDPs",
2003).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np
from scipy import sparse

from bellweight.common import checks, identity
from bellweight.common.blocks import blocks
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import ModelError
from bellweight.models.compile import Called, Source, Written, model_source, with_optional
from bellweight.models.factored_parts import Local, PartReader, PartTable
from bellweight.models.first_states import coordinate_laws
from bellweight.models.function_model import FunctionModel
from bellweight.models.initial import joint_law, product_moments
from bellweight.models.kernels.layouts import FactorData, LocalTables, uniform
from bellweight.models.laws import Law
from bellweight.models.local import LocalCoordinate, LocalCoordinates
from bellweight.models.loops import Loops
from bellweight.models.noise import laid_out
from bellweight.models.parameters import Parameters
from bellweight.models.tabular import TabularModel

_MOST_JOINT = 1 << 22  # joint successors that are listed for some pairs
_FAR_STATES = 4_096
_BLOCK = 4_096  # pairs at a time


@dataclass(frozen=True, eq=False, kw_only=True)
class FactoredModel(FunctionModel):
    """A Markov decision process whose coordinates move independently, given state and action.

    `sizes` (d,) are the numbers of values of the coordinates, 0, 1, ... each. `actions` are labels,
    or how many there are. `laws` has a `Local` for each coordinate, the law of its next value;
    `costs` has those whose sum is the cost, `admissible` rules that must all hold (default: every
    action is admissible). Functions are called once for each combination when the model is built;
    they are plain Python and are not compiled.

    `initial` is a state or a list of finite laws, one for each coordinate.

        machine = Local([0], lambda level, action: [1, 0, 0] if action else worn[level])

    `bw.solve` takes `LocalRows()` by itself where the basis has functions of few coordinates: then
    the rows of all states count, and the lower bound is proven.
    """

    sizes: Any
    actions: Any
    laws: Sequence[Local]
    costs: Sequence[Local]
    discount: float
    initial: Any = None
    admissible: Sequence[Local] = ()
    compiled: bool = True
    name: str = "factored model"
    cost_growth: float | None = None
    dimension: int = field(init=False)
    numbers: Parameters = field(init=False, repr=False)
    _given: Mapping[str, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        sizes = tuple(checks.count(n, "sizes") for n in np.atleast_1d(self.sizes).tolist())
        self._take_common(len(sizes), None)
        object.__setattr__(self, "sizes", sizes)
        if len(self.laws) != len(sizes):
            raise ModelError(
                f"laws has {len(self.laws)} entries, expected one for each of the {len(sizes)} "
                "coordinates"
            )
        _ = self.law_tables, self.cost_tables, self._rule_tables, self.initial_laws
        self._check_rules()

    @property
    def value_counts(self) -> tuple[int, ...]:
        counts: tuple[int, ...] = self.sizes
        return counts

    @cached_property
    def _reader(self) -> PartReader:
        return PartReader(self.sizes, self.actions)

    @cached_property
    def law_tables(self) -> tuple[PartTable, ...]:
        """The laws as tables."""
        return tuple(self._reader.law(law, i) for i, law in enumerate(self.laws))

    @cached_property
    def cost_tables(self) -> tuple[PartTable, ...]:
        """The costs as tables."""
        return tuple(
            self._reader.table(part, 1, f"costs[{j}]", "a number")
            for j, part in enumerate(self.costs)
        )

    @cached_property
    def _rule_tables(self) -> tuple[PartTable, ...]:
        given = enumerate(self.admissible)
        return tuple(
            self._reader.table(part, 1, f"admissible[{j}]", "True or False") for j, part in given
        )

    @cached_property
    def initial_laws(self) -> tuple[FloatArray, ...]:
        """The chances of each coordinate's values at the start."""
        laws, found = coordinate_laws(self.initial, self.dimension), []
        for i, (law, size) in enumerate(zip(laws, self.sizes, strict=True)):
            whole = isinstance(law, Law) and (law.values == np.rint(law.values)).all()
            if not isinstance(law, Law) or not whole or not (law.values >= 0).all():
                raise ModelError(f"initial[{i}] is {law!r}, expected a finite law of whole numbers")
            if law.values.max() >= size:
                raise ModelError(
                    f"initial[{i}] takes the value {law.values.max():g}, outside the state space: "
                    f"coordinate {i} has the values 0 to {size - 1}"
                )
            mass = np.bincount(law.values.astype(np.int64), law.chances, size)
            found.append(mass.astype(np.float64))
        return tuple(found)

    @cached_property
    def structure(self) -> LocalCoordinates:
        """The local parts, as `LocalRows` takes them; the action is one variable more."""
        action = self.dimension
        return LocalCoordinates(
            discount=self.discount,
            limits=np.array(self.sizes) - 1,
            choices=(self.n_actions,),
            cost_terms=[((*t.scope, action), t.first_at) for t in self.cost_tables],
            coordinates=[LocalCoordinate((*t.scope, action), t.at_points) for t in self.law_tables],
            rules=[((*t.scope, action), t.first_at) for t in self._rule_tables],
            initial=self.initial_laws,
        )

    @cached_property
    def largest_cost(self) -> float:
        """A bound on the absolute cost of any pair."""
        return float(sum(np.abs(table.values).max() for table in self.cost_tables))

    @cached_property
    def loops(self) -> Loops:
        return Loops(
            self.source, self._data, self.discount, self.actions, self.dimension,
            n_events=sum(self.sizes), n_draws=self.dimension, n_noise=0, keeps_events=False,
        )  # fmt: skip

    @cached_property
    def digest(self) -> str:
        tables = [*self.law_tables, *self.cost_tables, *self._rule_tables]
        parts = tuple((table.scope, table.values) for table in tables)
        counts = (self.sizes, self.n_actions, len(self.cost_tables), self.discount)
        return identity.digest((counts, parts, self.initial_laws))

    @property
    def start(self) -> FloatArray | None:
        certain = all(chances.max() == 1.0 for chances in self.initial_laws)
        return np.array([float(c.argmax()) for c in self.initial_laws]) if certain else None

    def initial_moments(self, words: list[tuple[int, ...]]) -> FloatArray:
        return product_moments(list(self.initial_laws), words)

    def far_states(self) -> tuple[str, Any]:
        return "over all states", self.spread_states(_FAR_STATES)

    @cached_property
    def _sides(self) -> tuple[list[float], list[float], list[bool]]:
        high = [float(size - 1) for size in self.sizes]
        return [0.0] * self.dimension, high, [True] * self.dimension

    def spread_states(self, n: int, seed: int = 0) -> Any:
        """Return at most n distinct states, drawn evenly from all."""
        drawn = np.random.default_rng(seed).integers(0, self.sizes, size=(n, self.dimension))
        return np.unique(drawn, axis=0)

    def source_with(self, functions: Mapping[str, Called]) -> Source:
        return model_source(
            "factors",
            with_optional(self._written, functions),
            {
                "DIMENSION": self.dimension,
                "N_ACTIONS": self.n_actions,
                "N_DRAWS": self.dimension,
                "HAS_INITIAL": False,
                "HAS_WRITTEN": "functions" in functions,
            },
            compiled=self.compiled,
        )

    def expand(self, states: Any, actions: IntArray) -> tuple[Any, Any, Any]:
        """Return cost (n,), chances (n, E) and successors (n, E, d) of some pairs.

        E is the largest number of joint successors of a pair; only small models and tests list
        them.
        """
        laws = [table.at(states, actions) for table in self.law_tables]
        reached = [[np.flatnonzero(law[n]) for law in laws] for n in range(len(states))]
        most = max(prod(map(len, each)) for each in reached)
        if most * len(states) > _MOST_JOINT:
            raise ModelError(
                f"{len(states)} pairs have up to {most:.2g} joint successors each, too many to be "
                "listed: use LocalRows(), or SampledRows(states) with functions of few coordinates"
            )
        chances = np.zeros((len(states), most))
        successors = np.repeat(np.asarray(states)[:, None, :], most, axis=1)
        for n, each in enumerate(reached):
            joint = np.array(list(product(*each)), dtype=np.int64)
            successors[n, : len(joint)] = joint
            of_each = [law[n][joint[:, i]] for i, law in enumerate(laws)]
            chances[n, : len(joint)] = np.prod(of_each, axis=0)
        return self.costs_of(states, actions), chances, successors

    def to_tabular(self, max_states: int = 20_000) -> TabularModel:
        """Return the same model with its states listed, in lexicographic order."""
        n_states = prod(self.sizes)
        if n_states > max_states:
            raise ModelError(
                f"{n_states:.3g} states, expected at most {max_states:,}: solve the model as it "
                "is, or raise max_states"
            )
        states = np.indices(self.sizes).reshape(self.dimension, -1).T.astype(np.int64)
        states = np.ascontiguousarray(states)
        pair_state, pair_action = np.nonzero(self.admissible_mask(states))
        rows = [
            sparse.csr_array(self._joint(states[pair_state[k]], pair_action[k]))
            for k in blocks(len(pair_state), _BLOCK)
        ]
        return TabularModel.from_pairs(
            self.costs_of(states[pair_state], pair_action), sparse.vstack(rows), pair_state,
            pair_action, self.discount, joint_law(self.initial_laws),
            state_vectors=states, action_labels=self.actions, name=self.name,
        )  # fmt: skip

    def _joint(self, states: IntArray, actions: IntArray) -> FloatArray:
        """Return the chances (n, S) of all states after some pairs."""
        joint = np.ones((len(states), 1))
        for table in self.law_tables:
            own = table.at(states, actions)
            joint = (joint[:, :, None] * own[:, None, :]).reshape(len(states), -1)
        return joint

    def __repr__(self) -> str:
        return (
            f"FactoredModel({self.name!r}: {self.dimension} coordinates, {prod(self.sizes):.3g} "
            f"states, {self.n_actions} actions, discount {self.discount:g})"
        )

    @cached_property
    def _written(self) -> Written:
        """The text of what the loops call: whether an action is admissible."""
        lines, offset = [], 0
        for table in self._rule_tables:
            place = [str(offset), f"action * {table.values.shape[-1]}"]
            strides = _strides(table.values.shape)
            place += [f"state[{i}] * {s}" for i, s in zip(table.scope, strides, strict=False)]
            lines += [f"if parameters[{' + '.join(place)}] == 0.0:", "    return False"]
            offset += table.values.size
        body = "\n    ".join([*lines, "return True"])
        called = {
            "admissible": Called(None, ("state", "action", "parameters"), body),
            "initial": Called(None, ("state", "u", "parameters")),
        }
        return Written().adding(called)

    @cached_property
    def _data(self) -> FactorData:
        rules = [table.values.ravel() for table in self._rule_tables]
        starts = [Law(np.arange(len(c), dtype=np.float64), c) for c in self.initial_laws]
        sums = []
        for table in self.law_tables:
            running = np.cumsum(table.values, axis=-1)
            running[..., -1] = np.inf
            sums.append(running.ravel())
        data: FactorData = uniform(
            FactorData(
                parameters=np.concatenate([*rules, np.zeros(1)]),
                first=np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64),
                initial=laid_out(starts),
                laws=_flat(self.law_tables),
                sums=np.concatenate(sums),
                costs=_flat(self.cost_tables),
            )
        )
        return data

    def _check_rules(self) -> None:
        """Look for states in which no action is admissible, where that is easy to see."""
        if not self._rule_tables:
            return
        for number, _ in enumerate(self.admissible):
            table = self._rule_tables[number]
            empty = checks.first_index(np.asarray(~(table.values[..., 0] > 0.0).any(axis=-1)))
            if empty is not None:
                state = [f"x{i + 1} = {v}" for i, v in zip(table.scope, empty, strict=True)]
                raise ModelError(
                    f"admissible[{number}] allows no action where {', '.join(state) or 'ever'}: "
                    "allow at least one in every state"
                )
        self.admissible_mask(self.spread_states(_FAR_STATES))


def _flat(tables: Sequence[PartTable]) -> LocalTables:
    """Return tables one after another."""
    starts = np.concatenate([[0], np.cumsum([len(t.scope) for t in tables])])
    offsets = np.concatenate([[0], np.cumsum([t.values.size for t in tables])])[:-1]
    strides = [s for t in tables for s in _strides(t.values.shape)[: len(t.scope)]]
    return LocalTables(
        starts.astype(np.int64),
        np.array([i for t in tables for i in t.scope], dtype=np.int64),
        np.array(strides, dtype=np.int64),
        offsets.astype(np.int64),
        np.array([t.values.shape[-1] for t in tables], dtype=np.int64),
        np.concatenate([*(t.values.ravel() for t in tables), np.zeros(0)]),
    )


def _strides(shape: tuple[int, ...]) -> list[int]:
    """Return how far apart neighbours along each axis of an array in C order are."""
    return [prod(shape[k + 1 :]) for k in range(len(shape))]
