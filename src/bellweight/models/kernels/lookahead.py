"""One step of improvement of a policy, by simulating it after every choice of the first action.

Candidate q would change the expected discounted cost from a state on by

    gain[q] = extra[q] + sum_m weight[q, m] (J(copy m) - J(copy 0)),

with J the cost of the policy from the next step on. Where events have a table of chances the copies
are the states after each event whose chance depends on the action, and copy 0 is the state itself:
the first step is then averaged, not drawn. Elsewhere each action has a copy of its own, after a
first step with the same random numbers for all, and copy 0 is that of the policy's action. All
copies meet the same random numbers. One that has become equal to copy 0 stays equal, so that a pair
costs no more than the time until it meets.

Paths are simulated in rounds, each as many as all before. A candidate is dropped once its gain is
not below zero by a share of its standard error that grows with the budget used. In the end the
candidate with the lowest gain is taken among those that are clearly below zero, for each server by
itself where the choices are independent.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: SIM102, SIM110

import numpy as np

from bellweight.common.compiled import draw, episode_key, inlined, inner
from bellweight.models.kernels.actions import choose
from bellweight.models.kernels.events import (
    advance,
    advance_together,
    fill_branches,
    with_choice,
)
from bellweight.models.kernels.layouts import FINE
from bellweight.models.kernels.tables import hash_of
from bellweight.models.kernels.user_functions import DIMENSION, N_ACTIONS, user_admissible


@inner
def same_state(first, second):
    for i in range(DIMENSION):
        if first[i] != second[i]:
            return False
    return True


@inner
def list_actions(state, base, data, look):
    """Make every admissible action but the policy's a candidate with a copy of its own."""
    n = 0
    for action in range(N_ACTIONS):
        if action != base and user_admissible(state, action, data.parameters):
            look.owner[n] = 0
            look.member[n] = action
            for m in range(1, N_ACTIONS + 1):
                look.weight[n, m] = 1.0 if m == n + 1 else 0.0
            n += 1
    return n, n


@inner
def first_steps(state, base, n_copies, key, data, look, work):
    """Take the first step of a path under each action; return a fault."""
    paid = 0.0
    for m in range(n_copies + 1):
        for i in range(DIMENSION):
            look.begun[m, i] = state[i]
        if m == 0 or look.needed[m] == 1:
            action = base if m == 0 else look.member[m - 1]
            fault, cost = advance(look.begun[m], action, key, 0, look.noise, data, work)
            if fault != FINE:
                return fault
            if m == 0:
                paid = cost
            else:
                look.extra[m - 1] = cost - paid
    return FINE


@inner
def set_out(n_copies, look):
    """Put all copies that are needed where they begin."""
    for m in range(n_copies + 1):
        look.change[m] = 0.0
        look.apart[m] = 1 if m == 0 else look.needed[m]
        if look.apart[m] == 1:
            for i in range(DIMENSION):
                look.copies[m, i] = look.begun[m, i]


@inner
def still_apart(n_copies, look):
    """Leave copies alone that have met copy 0; return how many have not."""
    left = 0
    for m in range(1, n_copies + 1):
        if look.apart[m] == 1:
            if same_state(look.copies[m], look.copies[0]):
                look.apart[m] = 0
            else:
                left += 1
    return left


@inner
def follow(n_copies, path_key, action_key, discount, data, policy, plan, work):
    """Simulate the policy from all copies; write how much more each costs than copy 0."""
    look = work.look
    set_out(n_copies, look)
    factor, reference = discount, 0.0
    for step in range(1, plan.horizon + 1):
        if still_apart(n_copies, look) == 0:
            break
        u = draw(action_key, step)
        for m in range(n_copies + 1):
            if look.apart[m] == 1:
                copy = look.copies[m]
                action, _ = choose(
                    copy, u, discount, data, policy.functions, policy.coef, policy.quadratic,
                    policy.rule, policy.ties, policy.dual, work,
                )  # fmt: skip
                if action < 0:
                    return -action
                fault, cost = advance_together(
                    copy, action, path_key, step, plan.place, look.noise, data, work
                )
                if fault != FINE:
                    return fault
                if m == 0:
                    reference = cost
                look.change[m] += factor * (cost - reference)
        factor *= discount
    return FINE


@inner
def add_gains(n_candidates, n_copies, look):
    """Add what one path says about the gain of each candidate that is left."""
    for q in range(n_candidates):
        if look.alive[q] == 1:
            gain = look.extra[q]
            for m in range(1, n_copies + 1):
                gain += look.weight[q, m] * look.change[m]
            look.mean[q] += gain
            look.square[q] += gain * gain


@inner
def scores(q, done, look):
    """Return the mean gain of a candidate and its standard error."""
    mean = look.mean[q] / done
    variance = max(look.square[q] / done - mean * mean, 0.0) / (done - 1)
    return mean, np.sqrt(variance)


@inner
def drop(n_candidates, n_copies, done, limit, look):
    """Drop candidates that are not `limit` standard errors below zero; return how many are left."""
    left = 0
    for m in range(1, n_copies + 1):
        look.needed[m] = 0
    for q in range(n_candidates):
        if look.alive[q] == 1:
            if done > 1:
                mean, error = scores(q, done, look)
                if not mean < -limit * error:
                    look.alive[q] = 0
            if look.alive[q] == 1:
                left += 1
                for m in range(1, n_copies + 1):
                    if look.weight[q, m] != 0.0 and look.differs[m] == 1:
                        look.needed[m] = 1
    return left


@inner
def clearest(base, n_candidates, done, clear, data, look):
    """Return the policy's action with the best clear candidate of each owner in its place."""
    action = base
    for q in range(n_candidates):
        if look.alive[q] == 1:
            mean, error = scores(q, done, look)
            best = mean < -clear * error
            for other in range(n_candidates):
                if best and other != q and look.alive[other] == 1:
                    if look.owner[other] == look.owner[q]:
                        rival, spread = scores(other, done, look)
                        if rival < -clear * spread and (rival, other) < (mean, q):
                            best = False
            if best:
                action = with_choice(look.owner[q], look.member[q], data, look)
    return action


@inner
def improved(state, base, discount, data, policy, plan, work):
    """Return the action that is clearly better than the policy's, or that one; or minus a fault."""
    look = work.look
    for m in range(len(look.differs)):
        look.differs[m] = 1
    n_candidates, n_copies = fill_branches(state, base, data, look)
    averaged = n_candidates >= 0
    if not averaged:
        n_candidates, n_copies = list_actions(state, base, data, look)
    for q in range(n_candidates):
        look.alive[q] = 1
        look.mean[q] = 0.0
        look.square[q] = 0.0
    left = drop(n_candidates, n_copies, 0, 0.0, look)
    half = np.uint64(hash_of(state)) >> np.uint64(1)
    key = episode_key(plan.key[0], np.int64(half))
    done, target, most = 0, min(plan.first, plan.paths), plan.paths
    while left > 0:
        while done < target:
            path_key = episode_key(key, done)
            if not averaged:
                fault = first_steps(state, base, n_copies, path_key, data, look, work)
                if fault != FINE:
                    return -fault
            action_key = episode_key(path_key, 0)
            fault = follow(n_copies, path_key, action_key, discount, data, policy, plan, work)
            if fault != FINE:
                return -fault
            add_gains(n_candidates, n_copies, look)
            done += 1
        left = drop(n_candidates, n_copies, done, plan.hope * np.sqrt(done / most), look)
        if done >= most:
            break
        target = min(2 * done, most)
    return clearest(base, n_candidates, done, plan.clear, data, look) if left > 0 else base


@inner
def reconsider(state, action, discount, data, policy, plan, work):
    """Return the action of the lookahead, where there is one.

    The lookahead is an argument of its own: only then is its code left out where there is none.
    """
    if plan is not None:
        if action >= 0 and plan.paths > 0:
            return improved(state, action, discount, data, policy, plan, work)
    return action


@inlined
def decide(state, u, discount, data, policy, work):
    """Return the action of a policy, or minus a fault, and whether the state has dual mass."""
    action, in_dual = choose(
        state, u, discount, data, policy.functions, policy.coef, policy.quadratic, policy.rule,
        policy.ties, policy.dual, work,
    )  # fmt: skip
    action = reconsider(state, action, discount, data, policy, policy.lookahead, work)
    return action, in_dual


@inner
def go_on(state, action, key, step, given, data, plan, work):
    """Move to the next state; return a fault and the cost.

    Policies with a lookahead meet the same events for the same random numbers, whatever they do.
    """
    if plan is not None:
        return advance_together(state, action, key, step, plan.place, given, data, work)
    return advance(state, action, key, step, given, data, work)
