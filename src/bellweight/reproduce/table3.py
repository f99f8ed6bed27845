"""Table 3 of the paper: the small clinic (see `clinic.py`)."""

from __future__ import annotations

from collections.abc import Callable

from bellweight.reproduce.artefact import Reproduction, Settings, Tell, Wanted, ignore
from bellweight.reproduce.clinic import EPISODES, ClinicTable, reproduce_clinic, settings_for
from bellweight.reproduce.paper import TABLE3, TABLE3_SECONDS

__all__ = ["EPISODES", "RESUMES", "reproduce", "settings"]

RESUMES = False


def settings(wanted: Wanted) -> Settings:
    """Return the settings that the command line asks for."""
    return settings_for("table3", wanted)


def reproduce(
    settings: Settings, tell: Tell = ignore, keep: Callable[[Reproduction], object] = ignore
) -> ClinicTable:
    """Compute the table."""
    return reproduce_clinic("table3", "small", TABLE3, TABLE3_SECONDS, settings, tell, keep)
