"""A repair desk: do jobs ourselves, or send them away?

A linear model has vectors of numbers as states and actions, linear constraints, linear costs, and
a next state that is linear in both plus noise. Change it, then:

    bellweight solve THIS_FILE
"""

import bellweight as bw


def model() -> bw.LinearModel:
    """Return the model; `bellweight solve` calls this function."""
    desk = bw.LinearBuilder(discount=0.95, name="repair desk")

    # The state: what is known when we decide. `upper` bounds the states that have rows.
    jobs = desk.state("jobs", upper=20, initial=bw.Law.certain(5))

    # The actions: whole numbers from zero on.
    own = desk.action("own", upper=3)  # done here, at most three a day
    sent = desk.action("sent")  # sent away

    # What is random: new jobs, Poisson with mean 3.5 and at most 12.
    new = desk.noise("new", bw.Law.poisson(3.5, 12))

    desk.require(own + sent <= jobs)  # which actions are allowed
    desk.follow(jobs, jobs - own - sent + new)  # the next state
    desk.cost(2 * jobs + 9 * sent)  # the cost of a step; costs are minimised

    # A job costs at most 2 + 9 a day, 5 are there at first and 3.5 come each day: so much can a
    # step cost under any policy. `bellweight certify` needs it to bound what comes after the last
    # simulated step; without these two numbers it proves nothing.
    return desk.build(first_cost=11 * 5, cost_growth=11 * 3.5)


if __name__ == "__main__":
    print(bw.solve(model(), bw.Affine(), bw.DIA()))
