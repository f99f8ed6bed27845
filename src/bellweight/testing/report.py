"""What a conformance check returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Report:
    """What was checked and found in order, with notes on what is allowed but worth knowing."""

    subject: str
    checked: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.subject}: in order", *(f"  checked  {text}" for text in self.checked)]
        return "\n".join([*lines, *(f"  note     {text}" for text in self.notes)])
