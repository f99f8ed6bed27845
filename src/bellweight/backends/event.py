"""Event models: vectors of whole numbers, rows at sampled states or, by their scopes, of all."""

from __future__ import annotations

from bellweight.backends.simulated import FunctionBackend
from bellweight.models import EventModel


class EventBackend(FunctionBackend[EventModel]):
    """All that models given by functions share."""

    noun = "an event model"
    usual_basis = "poly:2"
