"""A warehouse whose stock is a real number: how much to order?

A step model is a simulator: a function that says what happens in one step. States are vectors of
real or whole numbers, actions are finitely many, the noise has a known law. Its functions are
compiled: use numbers, arrays and plain loops in them. Change them, then:

    bellweight solve THIS_FILE
"""

import bellweight as bw

ORDERS = (0.0, 2.0, 4.0, 6.0)  # what can be ordered
PRICE, HOLDING, PENALTY = 2.0, 1.0, 9.0
LOWEST, HIGHEST = -4.0, 12.0  # backlog and shelf; a step must stay in between


def step(state, action, noise):  # type: ignore[no-untyped-def]
    """Return the next state: order, then meet the demand; what does not fit is lost."""
    return min(max(state[0] + ORDERS[action] - noise[0], LOWEST), HIGHEST)


def cost(state, action, noise):  # type: ignore[no-untyped-def]
    """Return the cost of the step; costs are minimised."""
    after = state[0] + ORDERS[action] - noise[0]
    return PRICE * ORDERS[action] + HOLDING * max(after, 0.0) + PENALTY * max(-after, 0.0)


def model() -> bw.StepModel:
    """Return the model; `bellweight solve` calls this function."""
    return bw.StepModel(
        dimension=1,  # how many numbers a state has
        actions=[f"order {order:g}" for order in ORDERS],
        step=step,
        cost=cost,
        discount=0.9,
        noise=bw.models.Normal(3.0, 1.5, lower=0.0, upper=8.0),  # the demand
        initial=4.0,
        lower=LOWEST,
        upper=HIGHEST,
        name="warehouse",
    )


if __name__ == "__main__":
    print(bw.solve(model(), bw.PiecewiseLinear(6), bw.DIA()))
