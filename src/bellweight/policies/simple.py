"""Policies that need no solution: at random, by a rule, by a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellweight.common import checks, files, tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import PolicyError
from bellweight.models import LinearModel, TabularModel
from bellweight.models.function_model import FunctionModel
from bellweight.policies.compiled import CompiledPolicy, compiled_rule, compiled_uniform
from bellweight.policies.linear_actions import Chooser, RandomChooser, RuleChooser
from bellweight.policies.policy import Policy
from bellweight.policies.tables import actions_to_probabilities, by_state


@files.storable("Uniform")
@dataclass(frozen=True, repr=False)
class Uniform(Policy):
    """Every admissible action with the same probability.

    Args:
        model: the model in which it acts; `on(model)` fills it in.

    Examples:
        >>> bw.evaluate(bw.problems.single_queue(capacity=30), bw.Uniform(), 100, seed=1).episodes
        100
    """

    def probabilities(self, model: TabularModel) -> FloatArray:
        counts = np.diff(model.pair_start)
        return np.repeat(1.0 / counts, counts)

    def compiled(self, model: FunctionModel) -> CompiledPolicy:
        return compiled_uniform(model)

    def chooser(self, model: LinearModel) -> Chooser:
        return RandomChooser(model)


@files.storable("Rule")
@dataclass(frozen=True, eq=False, repr=False)
class Rule(Policy):
    """A decision rule that the user writes.

    Rules that differ only in their `parameters` share the compiled code. A file keeps the name but
    not the function.

    Args:
        fn: `fn(state)` or `fn(state, parameters)` returns an action index for a state (d,) and is
            compiled. For a linear model, `fn(states)` maps states (n, d) to actions (n, m) and is
            not compiled.
        parameters: an array of numbers.
        model: the model in which it acts; `on(model)` fills it in.

    Examples:
        >>> def serve_the_longer(state):
        ...     return 0 if state[0] >= state[1] else 1
        >>> bw.Rule(serve_the_longer)
        Rule(fn=serve_the_longer)
    """

    fn: Callable[..., Any] | files.Unstored
    parameters: Any = ()

    def probabilities(self, model: TabularModel) -> FloatArray:
        fn, numbers = self.function(), self.numbers()
        takes_numbers = fn.__code__.co_argcount == 2
        states = self.states_of(model)
        chosen = [fn(state, numbers) if takes_numbers else fn(state) for state in states]
        return actions_to_probabilities(model, np.array(chosen, dtype=np.int64))

    def compiled(self, model: FunctionModel) -> CompiledPolicy:
        return compiled_rule(model, self.function(), self.numbers())

    def chooser(self, model: LinearModel) -> Chooser:
        return RuleChooser(model, self.function())

    @staticmethod
    def states_of(model: TabularModel) -> Any:
        """Return the states (S, d) as a rule gets them: integers where all numbers are whole."""
        states = model.states
        return states.astype(np.int64) if (states == np.floor(states)).all() else states.copy()

    def numbers(self) -> FloatArray:
        """Return the parameters as the compiled loops take them: at least one number."""
        numbers = np.array(self.parameters, dtype=np.float64).ravel()
        return numbers if len(numbers) else np.zeros(1)

    def function(self) -> Any:
        """Return the user's function, or say that a file could not hold it."""
        if isinstance(self.fn, files.Unstored):
            raise PolicyError(f"the rule {self.fn.text} was not stored: build Rule(fn) again")
        return self.fn


@files.storable("Table")
@dataclass(frozen=True, eq=False, repr=False)
class TablePolicy(Policy):
    """A policy given as numbers, for tabular models.

    Args:
        entries: one action index per state (S,), or probabilities (S, A).
        model: the model in which it acts; `on(model)` fills it in.

    Examples:
        >>> queue = bw.problems.single_queue(capacity=30)
        >>> always = bw.TablePolicy([2] * queue.n_states)
        >>> always.on(queue).action(7)
        2
    """

    entries: Any

    def probabilities(self, model: TabularModel) -> FloatArray:
        entries = np.asarray(self.entries)
        if entries.ndim == 1 and entries.dtype.kind in "iu":
            return actions_to_probabilities(model, entries.astype(np.int64))
        shape = (model.n_states, model.n_actions)
        matrix = checks.float_array(entries, "policy table", shape, PolicyError)
        chances = matrix[model.pair_state, model.pair_action]
        stray = checks.first_index(
            np.abs(matrix.sum(axis=1) - by_state(model, chances)) > tolerances.CHANCES
        )
        if stray is not None:
            raise PolicyError(
                f"the policy table gives probability to an inadmissible action in "
                f"{model.state_name(stray[0])}: set it to zero"
            )
        return chances

    @property
    def known_actions(self) -> IntArray | None:
        entries = np.asarray(self.entries)
        is_list = entries.ndim == 1 and entries.dtype.kind in "iu"
        return entries if self.model is None and is_list else None
