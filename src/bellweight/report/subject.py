"""A result with what is known about its policy, as pages tell it."""

from __future__ import annotations

from dataclasses import dataclass

from bellweight.certificates.certificate import Certificate
from bellweight.display import interval_text
from bellweight.display.cost_charts import Between
from bellweight.display.table import capital
from bellweight.evaluation.evaluate import Evaluation
from bellweight.results.result import Result

ROUNDING = 1e-9
"""Share of a cost that is none."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A result with what is known about its policy; None: not known."""

    result: Result
    evaluation: Evaluation | None = None
    certificate: Certificate | None = None
    doubts: tuple[str, ...] = ()

    @property
    def cost(self) -> float | None:
        """The policy's cost: exact, or else simulated."""
        if self.result.is_exact or self.evaluation is None:
            return None if self.result.cost is None else self.result.cost.mean
        return self.evaluation.mean

    @property
    def half_width(self) -> float | None:
        """The error of a simulated cost."""
        if self.result.is_exact:
            return None
        if self.evaluation is not None:
            return self.evaluation.half_width
        return None if self.result.cost is None else self.result.cost.half_width

    @property
    def low(self) -> float | None:
        """A proven lower bound on every policy's cost."""
        if self.certificate is not None and self.certificate.bound is not None:
            return self.certificate.value
        return self.result.lower_bound

    @property
    def low_is_exact(self) -> bool:
        """Whether the bound holds for the model itself, not for one whose noise was replaced."""
        proven = self.certificate is not None and self.certificate.bound is not None
        return proven or self.result.lower_bound_kind == "exact"

    @property
    def gap(self) -> float | None:
        """What the policy can lose at most, as proven; a rounding error counts as nothing."""
        proven = None if self.certificate is None else self.certificate.bound
        if proven is None:
            if self.result.cost is None or self.low is None or not self.result.is_exact:
                return None
            proven = self.result.cost.mean - self.low
        return 0.0 if proven <= ROUNDING * abs(self.cost or 0.0) else proven

    @property
    def sure(self) -> str:
        """With what confidence the gap holds; nothing where it is certain."""
        confidence = None if self.certificate is None else self.certificate.confidence
        return "" if confidence is None else f", with {100.0 * confidence:g} % confidence"

    def between(self, label: str) -> Between | None:
        """Return the cost and the bound, to be drawn."""
        return None if self.cost is None else Between(label, self.cost, self.half_width, self.low)

    def warnings(self) -> list[str]:
        """Return what to know before trusting the numbers."""
        status = self.result.status
        told = f"{status.name}: {status.message}. {capital(status.remedy)}."
        ending = [] if status.is_success else [told]
        return [*ending, *self.result.warnings, *self.doubts]

    def interval(self) -> str:
        """Return the cost with its error."""
        if self.cost is None:
            return "not known"
        return interval_text(self.cost, self.half_width or 0.0, between="±")
