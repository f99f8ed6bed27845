"""`exact.optimal` against QuantEcon's policy iteration on the queue of 50,000 states.

The same model in QuantEcon's sparse state-action-pair form (rewards are negated costs), built
before the clock starts, as ours is. One run of each beforehand takes care of compilation. QuantEcon
also returns the chain of the optimal policy; its part of the time is small and is left in.
"""

from __future__ import annotations

import numpy as np
from measure import Line, take_turns
from quantecon.markov import DiscreteDP
from scipy import sparse

import bellweight as bw

TITLE = "Exact optimum of the queue"
FIGURES = {
    "exact_optimal": "optimal values and policy, against QuantEcon",
}

REPEATS = 7
AGREEMENT = 1e-10


def run() -> list[Line]:
    """Return the one line of this benchmark."""
    model = bw.problems.single_queue()
    peer = DiscreteDP(
        -model.cost,
        sparse.csr_matrix(model.transition),
        model.discount,
        model.pair_state,
        model.pair_action,
    )
    peer.policy_iteration()
    bw.exact.optimal(model)
    (our_time, ours), (peer_time, theirs) = take_turns(
        REPEATS, lambda: bw.exact.optimal(model), peer.policy_iteration
    )
    difference = float(np.abs(ours.values + theirs.v).max() / np.abs(ours.values).max())
    return [
        Line(
            "exact_optimal",
            our_time,
            peer=peer_time,
            ratio=peer_time / our_time,
            target=1.0,
            notes=(
                f"values agree to {difference:.1e} (relative); iterations: ours "
                f"{ours.iterations}, peer {theirs.num_iter}",
            ),
            wrong="" if difference <= AGREEMENT else "the values differ",
        )
    ]
