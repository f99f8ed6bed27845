"""An expected cost and its error, one type for exact and for simulated ones."""

from __future__ import annotations

from dataclasses import dataclass

from bellweight.common import files
from bellweight.display import interval_text


@files.storable("Estimate")
@dataclass(frozen=True)
class Estimate:
    """An expected cost with its 95 % half-width, which is 0 where the cost is exact."""

    mean: float
    half_width: float = 0.0

    def __float__(self) -> float:
        return self.mean

    def __str__(self) -> str:
        return interval_text(self.mean, self.half_width)

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        shown = format(self.mean, spec)
        return f"{shown} +- {format(self.half_width, spec)}" if self.half_width else shown
