"""Two queues in a row, one worker: which of them to serve?

An event model has states that are vectors of counts, too many to list, and a few events of which
one happens in each step. Its functions are compiled: use numbers, arrays and plain loops in them.
Change them, then:

    bellweight solve THIS_FILE
"""

import bellweight as bw

ARRIVAL = 0.25  # chance of an arrival in a step
SERVICE = (0.6, 0.55)  # chance that the served queue finishes a job
HOLDING = (1.0, 1.5)  # cost per job and step in each queue


def cost(state):  # type: ignore[no-untyped-def]
    """Return the cost of a step in a state; costs are minimised."""
    return HOLDING[0] * state[0] + HOLDING[1] * state[1]


def probability(action, event):  # type: ignore[no-untyped-def]
    """Return the chance of an event; with what is left over to one nothing happens."""
    if event == 0:
        return ARRIVAL
    return SERVICE[action] if event == action + 1 else 0.0


def move(state, event):  # type: ignore[no-untyped-def]
    """Change the state in place."""
    if event == 0:
        state[0] += 1
    elif event == 1 and state[0] > 0:
        state[0] -= 1
        state[1] += 1
    elif event == 2 and state[1] > 0:
        state[1] -= 1


def model() -> bw.EventModel:
    """Return the model; `bellweight solve` calls this function."""
    return bw.EventModel(
        dimension=2,  # how many counts a state has
        actions=["serve the first", "serve the second"],
        events=["arrival", "first done", "second done"],
        cost=cost,
        probability=probability,
        move=move,
        discount=0.98,
        initial=bw.models.Geometric(0.8),  # where we begin: small counts are likely
        # By how much the cost of a step can grow from one step to the next, in expectation: it
        # bounds what a simulation leaves out when it ends.
        cost_growth=0.55,
        name="two queues",
    )


if __name__ == "__main__":
    print(bw.solve(model(), bw.Polynomial(2), bw.DIA()))
