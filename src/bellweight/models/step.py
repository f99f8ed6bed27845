"""Models given by a simulator: real or whole state vectors, finitely many actions, random numbers.

The user writes plain functions: `step` returns the next state, `cost` what the step costs. Their
`noise` is an array (m,) of random numbers whose law is given beside: a finite law, a continuous one
with a quadrature, several independent ones, or a sampler. Rows of a program are sums over nodes of
the law; simulation draws from the law itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from bellweight.common import checks, identity
from bellweight.common.checks import BoolArray, FloatArray
from bellweight.common.status import ModelError
from bellweight.common.streams import stream_keys
from bellweight.models.compile import Called, Source, Written, model_source, with_optional
from bellweight.models.declared import Lipschitz, check_declared
from bellweight.models.first_states import FirstStates, draws_itself, first_laws
from bellweight.models.function_checks import arguments_of, call_by_name
from bellweight.models.function_model import FunctionModel, per_coordinate
from bellweight.models.function_text import Held
from bellweight.models.gridded import gridded
from bellweight.models.kernels.layouts import StepData, uniform
from bellweight.models.laws import Independent, Law
from bellweight.models.loops import Loops
from bellweight.models.noise import (
    DRAWS,
    NODES,
    AnyLaw,
    Sampler,
    laid_out,
    law_draws,
    law_list,
    product_nodes,
    spread_draws,
)
from bellweight.models.parameters import Parameters
from bellweight.models.spread import Box
from bellweight.models.step_checks import check_functions, check_start, first_answer
from bellweight.models.tabular import TabularModel
from bellweight.models.vectorised import held_functions

_ARGUMENTS = {
    "step": ("state", "action", "noise", "parameters", "successor"),
    "cost": ("state", "action", "noise", "parameters"),
    "admissible": ("state", "action", "parameters"),
    "initial": ("state", "u", "parameters"),
}
_SLOWER = "pass vectorised=True with functions of many states, or compiled=False for the slow path"
_REACHING = 32  # first states that tell how far a side without a bound reaches
_FAR_STATES = 4_096
_DRAWING = 4  # the branch of a seed that draws for expectations come from


@dataclass(frozen=True, eq=False, kw_only=True)
class StepModel(FunctionModel):
    """A Markov decision process given by what happens in one step.

    A function takes any of these arguments, by name and in any order, and no others:

        step           state, action, noise, parameters (and `successor`, if it fills it in)
        cost           state, action, noise, parameters
        admissible     state, action, parameters
        initial        state, u, parameters

    `state` is an array (d,): of integers where all coordinates are whole, otherwise of floats.
    `action` is an index, `noise` an array (m,). Numbers and arrays that a function needs are taken
    from its module or enclosing function, as they are when the model is built.

    Expectations are sums over `nodes` with `weights`: those of a quadrature of each continuous law,
    or fixed draws. `lipschitz` and `bends` let a lower bound be proven over the whole box, for
    bases of piecewise linear functions of one coordinate.

    Args:
        dimension: how many coordinates a state has, d.
        actions: labels, or how many there are.
        step: returns the next state (d,).
        cost: of a step.
        discount: how much a cost one step later counts, below one.
        noise: a law, a list of independent laws, or a sampler `noise(rng)` that draws one vector
            (`noise(rng, n)`: n at once); without it a step is not random.
        initial: a state, a list of laws, one for each coordinate, a sampler `initial(rng)`, or a
            function `initial(state, u)` that fills in the state from `initial_draws` uniform
            numbers.
        admissible: whether an action may be taken; all by default.
        lower: least coordinates, one number for all or one for each, None where there is no bound.
            A step that leaves the box is an error.
        upper: largest coordinates, in the same way.
        integer: which coordinates are whole numbers, one answer for all or one for each.
        parameters: numbers that will change, as in an `EventModel`.
        initial_draws: how many uniform numbers `initial` gets.
        quadrature: nodes of each continuous law.
        draws: how many fixed draws take their place, for a sampler and where nodes would be more
            than 1,024 together.
        draws_seed: decides those draws.
        cost_growth: as in an `EventModel`.
        lipschitz: `Lipschitz(step, cost)`, how fast the two can change.
        bends: `bends(action, noise)` returns where step or cost bend, both being affine in between:
            in one dimension a list of states, in two a list of lines (p, q, r), the states with
            p x + q y = r.
        vectorised: functions that cannot be compiled work on many states at once, as NumPy does:
            `step(states, action, noise)` gets states (n, d) and noise (n, m) and returns (n, d),
            `cost` (n,), `admissible(states, action)` (n,); slower, with the same answers.
        compiled: False runs everything as plain Python, slowly.
        name: for people.

    Examples:
        >>> def step(state, action, noise):
        ...     return np.array([min(max(state[0] + action - noise[0], 0.0), 10.0)])
        >>> def cost(state, action):
        ...     return state[0] + 3.0 * action
        >>> bw.StepModel(
        ...     dimension=1, actions=["wait", "order"], step=step, cost=cost, discount=0.9,
        ...     noise=bw.Law([0.0, 1.0], [0.5, 0.5]), initial=3.0, lower=0, upper=10,
        ...     compiled=False,
        ... ).dimension
        1
    """

    dimension: int
    actions: Any
    step: Callable[..., Any]
    cost: Callable[..., float]
    discount: float
    noise: Any = None
    initial: Any = None
    admissible: Callable[..., bool] | None = None
    lower: Any = None
    upper: Any = None
    integer: Any = False
    parameters: Any = None
    initial_draws: int | None = None
    quadrature: int = NODES
    draws: int = DRAWS
    draws_seed: int = 0
    cost_growth: float | None = None
    lipschitz: Lipschitz | None = None
    bends: Callable[..., Any] | None = None
    vectorised: bool = False
    compiled: bool = True
    name: str = "step model"
    numbers: Parameters = field(init=False, repr=False)
    nodes: FloatArray = field(init=False, repr=False)
    weights: FloatArray = field(init=False, repr=False)
    _given: Mapping[str, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        self._take_common(self.dimension, self.parameters)
        put(self, "lower", self._bounds(self.lower, "lower", -np.inf))
        put(self, "upper", self._bounds(self.upper, "upper", np.inf))
        put(self, "integer", self._whole_coordinates())
        self._check_box()
        checks.count(self.quadrature, "quadrature")
        checks.count(self.draws, "draws", least=2)
        nodes, weights = self._expectation()
        put(self, "nodes", nodes)
        put(self, "weights", weights)
        if self.vectorised:
            put(self, "compiled", False)
            _ = self.held
        for role, function in self._functions().items():
            if function is not None:
                arguments_of(function, role, _ARGUMENTS[role])
        if not self.vectorised:
            _ = self._written  # which names parameters that do not exist
            check_functions(self, self._first_state())
        self._check_compiles(self._functions(), _ARGUMENTS, _SLOWER)
        from bellweight.models.announce import announcing, to_stderr

        with announcing(to_stderr):
            check_start(self)
        if self.lipschitz is not None or self.bends is not None:
            check_declared(self)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, or of draws, that an expectation is a sum over."""
        return len(self.weights)

    @cached_property
    def noise_laws(self) -> tuple[AnyLaw, ...] | None:
        """The laws of the components of the noise, or None where it has a sampler."""
        if callable(self.noise):
            return None
        laws = law_list(0.0 if self.noise is None else self.noise, "noise")
        if not laws:
            raise ModelError("noise is an empty list, expected at least one law, or None")
        return laws

    @cached_property
    def _law_nodes(self) -> tuple[FloatArray, FloatArray] | None:
        """The nodes and weights of the noise's laws, or None where draws stand for them."""
        laws = self.noise_laws
        return None if laws is None else product_nodes(laws, self.quadrature)

    @property
    def are_draws(self) -> bool:
        """Whether the nodes are draws, so that rows are sample averages."""
        return self._law_nodes is None

    @property
    def has_quadrature(self) -> bool:
        """Whether nodes stand for a continuous law, so that expectations are approximate."""
        laws = self.noise_laws or ()
        return not self.are_draws and not all(isinstance(law, Law) for law in laws)

    @cached_property
    def loops(self) -> Loops:
        sampled = Sampler(self.noise) if callable(self.noise) else None
        return Loops(
            self.source, self._data, self.discount, self.actions, self.dimension,
            n_events=self.n_nodes,
            n_draws=self.initial_draws or self.dimension,
            n_noise=self.nodes.shape[1],
            state_type=self.state_type,
            keeps_events=False,
            leaving="step leads out of the box between lower and upper",
            sample=None if sampled is None else sampled.episodes,
            sample_starts=self._sampled_starts.drawn if self.samples_starts else None,
        )  # fmt: skip

    @cached_property
    def digest(self) -> str:
        sizes = (self.dimension, self.n_actions, self.initial_draws)
        numbers = (sizes, self.lower, self.upper, self.integer, self.discount, self.numbers.numbers)
        laws = tuple(self._data.noise) + tuple(self._data.initial)
        written: Any = self._written.parts
        if self.vectorised:
            own = (self.step, self.cost, self.admissible)
            written = tuple(identity.digest(function) for function in own)
        # The last digits of nodes that stand for a law differ between machines.
        found = (self.nodes, self.weights) if self.noise_laws is None else self._nodes_chosen
        # The text that is compiled has no samplers, and nodes are a few of their draws.
        is_written = not (self.samples_starts or self.vectorised)
        given = (self.noise, None if is_written else self.initial)
        samplers = tuple(one for one in given if callable(one))
        return identity.digest((written, numbers, laws, *found, *samplers))

    @property
    def _nodes_chosen(self) -> tuple[Any, ...]:
        """What decides the nodes that stand for laws."""
        if self.are_draws:
            return self.draws, self.draws_seed
        return (self.quadrature if self.has_quadrature else None, self.n_nodes)

    def with_draws(self, seed: int) -> StepModel:
        """Return this model with other draws in its expectations."""
        return type(self)(**{**self._given, "draws_seed": seed})

    def loops_of_a_step(self, rng: np.random.Generator, most: int) -> Loops:
        if not (self.are_draws or self.has_quadrature):
            return self.loops
        n, laws = min(self.n_nodes, most), self.noise_laws
        nodes = Sampler(self.noise).drawn(rng, n) if laws is None else spread_draws(laws, n, rng)
        data = self.loops.data._replace(nodes=nodes, weights=np.full(n, 1.0 / n))
        return replace(self.loops, data=data, n_events=n)

    def to_tabular(self, grid: Any = None, max_entries: int = 50_000_000) -> TabularModel:
        """Return the model on a grid, for `exact.optimal` and the like: few dimensions.

        `grid` is a number of points along each coordinate, or for each coordinate a number or the
        points themselves; by default all values of whole coordinates and 101 points of others.
        Next states between points are interpolated multilinearly, expectations are sums over
        `nodes`: see `models.gridded`. States of the result are in lexicographic order.
        """
        return gridded(self, grid, max_entries)

    def far_states(self) -> tuple[str, Any]:
        return "over the box", self.spread_states(_FAR_STATES)

    def spread_states(self, n: int, seed: int = 0) -> Any:
        """Return at most n distinct states that fill the box evenly, its corners included.

        A side without a bound reaches as far as ten times the first states do. The points are those
        of a scrambled Sobol sequence; whole coordinates are rounded.
        """

        return self.check_states(self.box().sequence(n, seed), "spread states")

    @cached_property
    def _sides(self) -> tuple[list[float], list[float], list[bool]]:
        return self.lower.tolist(), self.upper.tolist(), self.integer.tolist()

    def box(self) -> Box:
        return Box(*self.finite_box(), self.integer)

    def finite_box(self) -> tuple[FloatArray, FloatArray]:
        """Return the box, cut where a side has no bound: see `spread_states`."""
        states = self.sample_initial(0, _REACHING, np.uint64(1)).astype(np.float64)
        reach = 10.0 * np.maximum(np.abs(states).max(axis=0), 1.0)
        low = np.where(np.isfinite(self.lower), self.lower, -reach)
        high = np.where(np.isfinite(self.upper), self.upper, reach)
        return np.minimum(low, high), high

    def source_with(self, functions: Mapping[str, Called]) -> Source:
        takes: list[str] = []
        if not self.vectorised:
            takes = arguments_of(self.cost, "cost", _ARGUMENTS["cost"])
        source = model_source(
            "vectors" if self.vectorised else "steps",
            with_optional(self._written, functions),
            {
                "DIMENSION": self.dimension,
                "N_ACTIONS": self.n_actions,
                "N_DRAWS": self.initial_draws or self.dimension,
                "HAS_INITIAL": callable(self.initial) and not self.samples_starts,
                "HAS_WRITTEN": "functions" in functions,
                "COST_BY_NOISE": "noise" in takes,
            },
            compiled=self.compiled,
        )
        return replace(source, held=source.held + self.held)

    @cached_property
    def held(self) -> Held:
        """Functions that work on many states at once, which are called as they are."""
        return held_functions(self) if self.vectorised else ()

    def __repr__(self) -> str:
        kind = "draws" if self.are_draws else "nodes"
        return (
            f"StepModel({self.name!r}: dimension {self.dimension}, {self.n_actions} actions, "
            f"{self.n_nodes} {kind} of noise, discount {self.discount:g})"
        )

    @cached_property
    def _written(self) -> Written:
        """The text of the user's functions, read once; none where they are called as they are."""
        if self.vectorised:
            return Written()
        given = self._functions()
        called = {
            "step": Called(self.step, _ARGUMENTS["step"], body=self._step_body),
            "noisy_cost": Called(self.cost, _ARGUMENTS["cost"]),
            "admissible": Called(self.admissible, _ARGUMENTS["admissible"], "return True"),
            "initial": Called(given["initial"], _ARGUMENTS["initial"]),
        }
        return Written().adding(called, self.numbers.layout)

    @cached_property
    def _step_body(self) -> str:
        """The call of the user's step: it fills in the successor, or returns it in some form."""
        if "successor" in arguments_of(self.step, "step", _ARGUMENTS["step"]):
            return "{call}\n    return DIMENSION"
        if np.ndim(first_answer(self, self._first_state())) == 0:
            return "successor[0] = {call}\n    return 1"
        copied = [f"    successor[{i}] = answer[{i}]" for i in range(self.dimension)]
        guard = "    if len(answer) != DIMENSION:\n        return len(answer)"
        return "\n".join(["answer = {call}", guard, *copied, "    return DIMENSION"])

    def _first_state(self) -> Any:
        if self.samples_starts:
            state = self._sampled_starts.drawn(0, 1, np.uint64(1))[0]
        elif callable(self.initial):
            state = np.zeros(self.dimension)
            draws = np.full(self.initial_draws or self.dimension, 0.5)
            given = {"state": state, "u": draws, "parameters": self.numbers.given}
            call_by_name(self.initial, given)
        else:
            state = law_draws(laid_out(self.initial_laws), 1, np.uint64(1))[0]
        return np.array(state, dtype=self.state_type)

    @cached_property
    def samples_starts(self) -> bool:
        """Whether the initial state comes from a sampler that is given a generator."""
        return draws_itself(self.initial)

    @cached_property
    def _sampled_starts(self) -> FirstStates:
        sampler = Sampler(self.initial, "initial")
        sampler.check()
        return FirstStates(sampler, self.integer)

    @cached_property
    def initial_laws(self) -> tuple[AnyLaw, ...]:
        """The laws of the first state's coordinates; meaningless where it is a function."""
        return first_laws(self.initial, self.integer)

    @property
    def start(self) -> FloatArray | None:
        laws = self.initial_laws
        if callable(self.initial) or not all(
            isinstance(w, Law) and len(w.values) == 1 for w in laws
        ):
            return None
        return Independent([law for law in laws if isinstance(law, Law)]).mean

    @cached_property
    def _data(self) -> StepData:
        data = StepData(
            parameters=self.numbers.numbers,
            lower=self.lower,
            upper=self.upper,
            integer=self.integer,
            initial=laid_out(self.initial_laws),
            noise=laid_out(self.noise_laws or law_list(np.zeros(self.nodes.shape[1]), "noise")),
            nodes=self.nodes,
            weights=self.weights,
        )
        checked: StepData = uniform(data)
        return checked

    def _expectation(self) -> tuple[FloatArray, FloatArray]:
        """Return the nodes (N, m) and weights (N,) of expectations."""
        if self._law_nodes is not None:
            return self._law_nodes
        n, laws = self.draws, self.noise_laws
        key = stream_keys(self.draws_seed, _DRAWING)[0]
        if laws is not None:
            nodes = law_draws(laid_out(laws), n, key)
        else:
            sampler = Sampler(self.noise)
            sampler.check()
            nodes = sampler.drawn(np.random.default_rng(int(key)), n)
        return nodes, np.full(n, 1.0 / n)

    def _functions(self) -> dict[str, Any]:
        """Return the functions that are compiled, None where there is none."""
        if self.vectorised:
            return {}
        is_filled = callable(self.initial) and not self.samples_starts
        initial = self.initial if is_filled else None
        own = {"step": self.step, "cost": self.cost, "admissible": self.admissible}
        return {**own, "initial": initial}

    def _bounds(self, given: Any, name: str, missing: float) -> FloatArray:
        listed = per_coordinate(given, name, self.dimension)
        bounds = [missing if bound is None else bound for bound in listed]
        return checks.float_array(bounds, name, (self.dimension,), finite=False)

    def _whole_coordinates(self) -> BoolArray:
        listed = np.atleast_1d(np.asarray(self.integer))
        if listed.dtype != np.bool_ or len(listed) not in (1, self.dimension):
            raise ModelError(
                f"integer is {self.integer!r}, expected True, False, or one of them for each of "
                f"the {self.dimension} coordinates"
            )
        return np.array(np.broadcast_to(listed, (self.dimension,)))

    def _check_box(self) -> None:
        wrong = checks.first_index(~(self.lower <= self.upper))
        if wrong is not None:
            i = wrong[0]
            raise ModelError(
                f"lower[{i}] is {self.lower[i]} and upper[{i}] is {self.upper[i]}, expected lower "
                "<= upper"
            )
