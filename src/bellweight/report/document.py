"""Results as JSON documents: numbers, words and lists only, so that any language reads them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bellweight.backends import backend_of
from bellweight.common.status import Status
from bellweight.models import Model
from bellweight.policies import Support
from bellweight.solve import CyclePhase, Result


def plain(value: Any) -> Any:
    """Return a value as JSON holds it; a number that is not finite becomes null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: plain(getattr(value, field.name)) for field in fields}
    if isinstance(value, Status):
        return value.name
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def result_document(result: Result, model: Model | None = None) -> dict[str, Any]:
    """Return what a result says, without the arrays over all states; labels need the model."""
    return {
        "status": result.status.name,
        "message": result.status.message,
        "remedy": result.status.remedy,
        "model": result.model_name,
        "model_size": result.model_size,
        "method": result.method_name,
        "mode": result.mode,
        "cost": None if result.cost is None else plain(result.cost.mean),
        "half_width": None if result.cost is None else plain(result.cost.half_width),
        "judgement": plain(result.judgement),
        "lower_bound": plain(result.lower_bound),
        "lower_bound_kind": result.lower_bound_kind,
        "objective": plain(result.objective),
        "regularisation": result.regularisation,
        "basis": list(result.names),
        "coef": plain(result.coef),
        "moments": plain(result.moments),
        "support": _support(result.support, model),
        "actions": action_counts(result, model),
        "iterations": len(result.history),
        "history": plain(result.history),
        "phases": [_phase(phase) for phase in result.phases],
        "average": None if result.average is None else _phase(result.average),
        "audit": plain(result.audit),
        "stop": plain(result.stop),
        "seed": result.seed,
        "seconds": result.seconds,
        "warnings": list(result.warnings),
    }


def action_counts(result: Result, model: Model | None = None) -> dict[str, int]:
    """Return in how many states the policy takes each action, by label."""
    if result.policy.table is None:
        return {}
    counts = np.bincount(result.policy.table)
    return {_label(model, int(a)): int(counts[a]) for a in np.flatnonzero(counts)}


def _phase(phase: CyclePhase) -> dict[str, Any]:
    return {
        "cost": plain(phase.cost.mean),
        "half_width": plain(phase.cost.half_width),
        "is_constant": phase.is_constant,
        "coef": plain(phase.coef),
    }


def _support(support: Support, model: Model | None) -> list[dict[str, Any]]:
    return [
        {
            "state": state,
            "state_label": _state_label(model, state),
            "action": action,
            "action_label": _label(model, action),
            "dual": value,
        }
        for state, action, value in zip(
            support.states.tolist(), support.actions.tolist(), support.values.tolist(), strict=True
        )
    ]


def _state_label(model: Model | None, state: Any) -> str | None:
    return None if model is None else backend_of(model).state_label(state)


def _label(model: Model | None, action: Any) -> str:
    return str(action) if model is None else backend_of(model).action_text(action)
