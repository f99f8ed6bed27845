"""Two queues in a row and one server: which queue should it work on?"""

import bellweight as bw

ARRIVAL, SERVICE = 0.25, (0.6, 0.55)


def cost(state):
    return state[0] + 1.5 * state[1]


def probability(action, event):
    if event == 0:
        return ARRIVAL
    return SERVICE[action] if event == action + 1 else 0.0


def move(state, event):
    if event == 0:
        state[0] += 1
    elif event == 1 and state[0] > 0:
        state[0] -= 1
        state[1] += 1
    elif event == 2 and state[1] > 0:
        state[1] -= 1


model = bw.EventModel(
    dimension=2, actions=["first", "second"], events=["arrival", "first done", "second done"],
    cost=cost, probability=probability, move=move, discount=0.98, initial=bw.Geometric(0.8),
)  # fmt: skip
rows = bw.SampledRows(bw.sample_states(model, 500, seed=1))
result = bw.solve(model, bw.Polynomial(2), bw.DIA(), rows=rows, seed=2)
print(result)
print("with 5 and 2 waiting, serve:", model.label(result.policy.action((5, 2))))
print(bw.compare(model, {"random": bw.Uniform(), "bellweight": result.policy}, 20_000, seed=3))
