"""Table 4 of the paper: the large clinic (see `clinic.py`)."""

from __future__ import annotations

from collections.abc import Callable

from bellweight.reproduce.artefact import Reproduction, Settings, Tell, Wanted, ignore
from bellweight.reproduce.clinic import EPISODES, ClinicTable, reproduce_clinic, settings_for
from bellweight.reproduce.paper import TABLE4, TABLE4_SECONDS

__all__ = ["EPISODES", "RESUMES", "reproduce", "settings"]

RESUMES = False


def settings(wanted: Wanted) -> Settings:
    """Return the settings that the command line asks for."""
    return settings_for("table4", wanted)


def reproduce(
    settings: Settings, tell: Tell = ignore, keep: Callable[[Reproduction], object] = ignore
) -> ClinicTable:
    """Compute the table."""
    return reproduce_clinic("table4", "large", TABLE4, TABLE4_SECONDS, settings, tell, keep)
