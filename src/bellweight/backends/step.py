"""Step models: real or whole state vectors, rows at sampled states, everything else simulated."""

from __future__ import annotations

from bellweight.backends.event import EventBackend


class StepBackend(EventBackend):
    """The same loops as for event models, on states in a box."""

    noun = "a step model"
