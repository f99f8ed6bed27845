"""Random event models on small grids, run as plain Python, against their own data written out."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bellweight as bw

from .judge import features_of
from .program import Findings, Listed, check_dual, check_objective, solved, typical
from .rational import Rows, UndecidedError, UnreachableError, bellman_rows, moments_of, solve
from .tabular import Rng, costs, discount, pick
from .values import Exactly, Numbers, approximate_values

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Grid:
    """The data of a model: everything that its functions look up."""

    upper: tuple[int, int]
    cost: Floats
    chance: Floats
    target: NDArray[np.int64]
    open_to: NDArray[np.bool_]

    @property
    def states(self) -> NDArray[np.int64]:
        """The states in lexicographic order."""
        return np.array(list(product(*(range(bound + 1) for bound in self.upper))))

    def model(self, factor: float, initial: Any) -> bw.EventModel:
        """Return the model as functions of the data."""
        width = self.upper[1] + 1
        costs, chances, targets, open_to = self.cost, self.chance, self.target, self.open_to

        def cost(state: Any, action: Any) -> float:
            return costs[state[0] * width + state[1], action]

        def probability(state: Any, action: Any, event: Any) -> float:
            return chances[state[0] * width + state[1], action, event]

        def move(state: Any, action: Any, event: Any) -> None:
            place = state[0] * width + state[1]
            state[0] = targets[place, action, event, 0]
            state[1] = targets[place, action, event, 1]

        def admissible(state: Any, action: Any) -> bool:
            return open_to[state[0] * width + state[1], action]

        return bw.EventModel(
            dimension=2, actions=self.cost.shape[1], events=self.chance.shape[2], cost=cost,
            probability=probability, move=move, admissible=admissible, discount=factor,
            upper=self.upper, initial=initial, compiled=False,
        )  # fmt: skip

    def written_out(self, factor: float) -> bw.TabularModel:
        """Return the same model with one row for each pair, written here."""
        states = self.states
        number = {tuple(state): x for x, state in enumerate(states.tolist())}
        pair_state, pair_action = np.nonzero(self.open_to)
        rows = np.zeros((len(pair_state), len(states)))
        for pair, (x, a) in enumerate(zip(pair_state, pair_action, strict=True)):
            rows[pair, x] = 1.0 - self.chance[x, a].sum()
            for event, chance in enumerate(self.chance[x, a]):
                rows[pair, number.get(tuple(self.target[x, a, event].tolist()), x)] += chance
        return bw.TabularModel.from_pairs(
            self.cost[pair_state, pair_action], rows, pair_state, pair_action, factor,
            np.eye(len(states))[0], state_vectors=states.astype(float),
        )  # fmt: skip


def grid(rng: Rng) -> Grid:
    """Return random data: chances in eighths, moves that may lead outside, ties."""
    upper = tuple(int(bound) for bound in rng.integers(1, 5, size=2))
    n = (upper[0] + 1) * (upper[1] + 1)
    n_actions, n_events = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    chances = rng.multinomial(8, np.ones(n_events + 1) / (n_events + 1), size=(n, n_actions)) / 8.0
    open_to = rng.random((n, n_actions)) < 0.7
    open_to[np.arange(n), rng.integers(n_actions, size=n)] = True
    return Grid(
        (upper[0], upper[1]),
        costs(rng, n * n_actions).reshape(n, n_actions),
        chances[..., :n_events],
        rng.integers(0, 6, size=(n, n_actions, n_events, 2)),
        open_to,
    )


@dataclass(frozen=True, eq=False)
class EventCase:
    """An event model with a sample of its states, a basis and a method."""

    number: int
    family: str
    text: str
    data: Grid
    factor: float
    initial: Any
    sample: NDArray[np.int64]
    basis: Any
    method: Any

    def run(self) -> Findings:
        """Solve on the sample and check against the rows of the sample."""
        found = Findings()
        model = self.data.model(self.factor, self.initial)
        result = solved(
            found, model, self.basis, self.method, rows=bw.SampledRows(self.sample),
            simulation=bw.Simulation(episodes=20), stop=bw.Stop(max_iterations=4), judge=False,
        )  # fmt: skip
        listing = self.data.written_out(self.factor)
        states = self.data.states
        number = {tuple(state): x for x, state in enumerate(states.tolist())}
        chosen = np.array([number[tuple(state)] for state in self.sample.tolist()])
        pairs = np.flatnonzero(np.isin(listing.pair_state, chosen))
        features = features_of(listing, self.basis)
        whole = bellman_rows(listing, features)
        rows = Rows(whole.columns[pairs], whole.scales, whole.cost[pairs], whole.cost_scale)
        if result is None:
            return self._excused(found, rows, features)
        self._moments(found, result, features)
        moments = [Fraction(float(moment)) for moment in result.moments]
        # Simulated moments are rounded: those of dependent functions may contradict each other.
        kept = _independent(features)
        part = Rows(rows.columns[:, kept], tuple(rows.scales[k] for k in kept), rows.cost,
                    rows.cost_scale)  # fmt: skip
        try:
            truth = solve(part, [moments[k] for k in kept])
        except UndecidedError as problem:
            found.undecided.append(str(problem))
            return found
        ends = {"CONVERGED", "CYCLING", "ITERATION_LIMIT"}
        found.check(result.status.name in ends, f"status {result.status.name}", str(result.audit))
        cost = Exactly.of(listing).cost[pairs]
        zero = 1e-14 * typical(listing.cost) / (1.0 - self.factor)
        check_objective(found, result, truth, zero)
        dual = np.zeros(listing.n_pairs)
        for state, action, value in zip(
            result.support.states, result.support.actions, result.support.values, strict=True
        ):
            x = number[tuple(int(part) for part in state)]
            own = listing.admissible_actions(x).tolist()
            dual[listing.pair_start[x] + own.index(int(action))] += value
        listed = Listed(rows, cost, moments, self.factor, zero)
        check_dual(found, result, listed, dual[pairs], truth)
        found.check(result.lower_bound is None, "claim", f"lower bound {result.lower_bound}")
        self._greedy(found, result, listing, features, states)
        return found

    def _excused(self, found: Findings, rows: Rows, features: Floats) -> Findings:
        """An unbounded program on a sample is said to be unbounded: that is right."""
        if [kind for kind, _ in found.wrong] != ["error UNBOUNDED"] or not isinstance(
            self.method, bw.Fixed
        ):
            return found
        try:
            solve(rows, moments_of(features, self._law()))
        except UnreachableError:
            found.wrong.clear()
            found.notes.append("unbounded, rightly")
        return found

    def _law(self) -> Floats:
        """Return the initial law over the states."""
        first, second = (np.arange(bound + 1.0) for bound in self.data.upper)
        if not isinstance(self.initial, bw.models.Geometric):
            return np.multiply.outer(first == 0.0, second == 0.0).ravel().astype(float)
        each = [self.initial.decay**first, self.initial.decay**second]
        return np.multiply.outer(each[0] / each[0].sum(), each[1] / each[1].sum()).ravel()

    def _moments(self, found: Findings, result: Any, features: Floats) -> None:
        if not isinstance(self.method, bw.Fixed):
            return
        law = self._law()
        off = np.abs(result.moments - features.T @ law)
        allowed = 1e-12 * (np.abs(features).T @ law) + 1e-13
        found.check(bool((off <= allowed).all()), "moments", f"off by {off.max():.3g}")

    def _greedy(
        self, found: Findings, result: Any, listing: Any, features: Floats, states: Any
    ) -> None:
        """The policy is greedy in every state, sampled or not."""
        quality = Exactly.of(listing).qualities(approximate_values(features, result.coef))
        made_of = np.abs(features) @ np.abs(result.coef)
        for x, state in enumerate(states):
            own = listing.admissible_actions(x).tolist()
            first = int(listing.pair_start[x])
            taken = first + own.index(int(result.policy.action(state)))
            span = slice(first, first + len(own))
            gap = quality.parts[taken] - min(quality.parts[span])
            terms = np.abs(Numbers(quality.parts[span], quality.scale).floats()).max()
            terms += (listing.transition[[taken]] @ made_of)[0]
            if gap / quality.scale > 3e-12 * terms + 1e-300:
                text = f"state {state}: worse by {gap / quality.scale:.3g} of {terms:.3g}"
                found.check(False, "greedy", text)
                return


def _independent(features: Floats) -> list[int]:
    """Return the functions that are not combinations of earlier ones; they are small integers."""
    kept: list[int] = []
    for k in range(features.shape[1]):
        if np.linalg.matrix_rank(features[:, [*kept, k]]) > len(kept):
            kept.append(k)
    return kept


def event_case(number: int, rng: Rng) -> EventCase:
    """Return an event model, sampled wholly or in part."""
    data = grid(rng)
    factor = min(discount(rng), 0.99)
    initial = pick(rng, (None, None, bw.models.Geometric(0.5), bw.models.Geometric(0.9)))
    states = data.states
    kind = pick(rng, ("fixed",) * 5 + ("policy", "pia", "dia"))
    whole = kind != "fixed" or rng.random() < 0.6
    size = len(states) if whole else int(rng.integers(max(2, len(states) // 2), len(states) + 1))
    sample = states[np.sort(rng.choice(len(states), size=size, replace=False))]
    degree = int(rng.integers(1, 4))
    basis, text = pick(
        rng,
        (
            (bw.Polynomial(degree), f"Polynomial({degree})"),
            (bw.Polynomial(degree), f"Polynomial({degree})"),
            (bw.Affine(), "Affine()"),
        ),
    )
    if kind != "fixed":
        factor = min(factor, 0.9)  # episodes run as plain Python
    method = {
        "fixed": bw.Fixed(), "policy": bw.FromPolicy(bw.Uniform()), "pia": bw.PIA(),
        "dia": bw.DIA(),
    }[kind]  # fmt: skip
    said = (
        f"{len(states)} states of which {size} are sampled, discount {factor:.6g}, "
        f"initial {initial}, {text}, {kind}"
    )
    return EventCase(number, "event", said, data, factor, initial, sample, basis, method)
