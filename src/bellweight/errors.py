"""Everything that Bellweight raises on purpose: each error is a `BellweightError`."""

from bellweight.common.status import (
    ArgumentError,
    BasisError,
    BellweightError,
    BellweightWarning,
    FileError,
    ModelError,
    PolicyError,
    SolverError,
    WorkerError,
)

__all__ = [
    "ArgumentError",
    "BasisError",
    "BellweightError",
    "BellweightWarning",
    "FileError",
    "ModelError",
    "PolicyError",
    "SolverError",
    "WorkerError",
]
