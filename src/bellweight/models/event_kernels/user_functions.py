"""What a model provides: stand-ins for the names that `models/compile.py` writes for each."""

# mypy: disable-error-code="no-untyped-def,empty-body"

import numpy as np

DIMENSION, N_ACTIONS, N_EVENTS, N_DRAWS = 1, 1, 1, 1
SHARED_MOVES, IS_TABLE, HAS_JUMPS, COST_BY_ACTION = True, False, False, True
UPPER = np.zeros(1, dtype=np.int64)
# Jumps: event e changes coordinate JUMP_AT[e, k] by JUMP_BY[e, k], k < JUMP_COUNT[e].
JUMP_AT = JUMP_BY = np.zeros((1, 1), dtype=np.int64)
JUMP_COUNT = np.zeros(1, dtype=np.int64)
# Chances: under action a, event EVENT[a, k] has chance CHANCE[a, k], k < EVENT_COUNT[a].
EVENT = np.zeros((1, 1), dtype=np.int64)
CHANCE = np.zeros((1, 1))
EVENT_COUNT = np.zeros(1, dtype=np.int64)
# The events whose chance depends on the action, and their chances (varying events, A).
VARYING = np.zeros(1, dtype=np.int64)
VARYING_CHANCE = np.zeros((1, 1))
# Independent choices: group g has options OPTION_START[g]:OPTION_START[g + 1]; option o gives event
# OPTION_EVENT[o, k] the chance OPTION_CHANCE[o, k], k < OPTION_COUNT[o]; COMBINED maps to actions.
N_GROUPS = 0
OPTION_START = OPTION_COUNT = STRIDE = COMBINED = np.zeros(1, dtype=np.int64)
OPTION_EVENT = np.zeros((1, 1), dtype=np.int64)
OPTION_CHANCE = np.zeros((1, 1))


def user_cost(state, action): ...
def user_probability(state, action, event): ...
def user_move(state, action, event): ...
def user_admissible(state, action): ...
def user_initial(state, u): ...
def user_rule(state, parameters): ...
