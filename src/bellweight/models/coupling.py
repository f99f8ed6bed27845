"""Common random numbers: one number stands for the same event whatever the action.

Event e happens when the number lies in [place[e], place[e] + chance). Events that are both possible
under some action have separate places; events that never compete, such as services of one server,
share a place. Two copies of a system that act differently then meet the same events, as far as
their chances allow.
"""

from __future__ import annotations

import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray


def shared_places(table: FloatArray) -> FloatArray | None:
    """Return where each event's chance begins (E,), from chances (A, E).

    None where the events do not fit into [0, 1) in this way.
    """
    most = table.max(axis=0)
    places = np.zeros(len(most))
    together = (table > 0.0).T.astype(np.int64) @ (table > 0.0) > 0
    placed: list[int] = []
    # The largest first: smaller ones that never compete with them then fit into their places.
    for e in np.argsort(-most, kind="stable"):
        rivals = [f for f in placed if together[e, f]]
        placed.append(int(e))
        for f in sorted(rivals, key=lambda k: places[k]):
            if places[e] < places[f] + most[f] and places[f] < places[e] + most[e]:
                places[e] = places[f] + most[f]
    return places if (places + most).max() <= 1.0 + tolerances.CHANCES else None
