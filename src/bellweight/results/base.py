"""What everything that `solve` returns has in common."""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from bellweight.backends import Estimate, backend_of
from bellweight.common import files, identity
from bellweight.common.status import FileError
from bellweight.display import to_text
from bellweight.display.presentable import Presentable
from bellweight.models import Model
from bellweight.policies import Policy
from bellweight.results.judgement import Judgement


class BaseResult(Presentable, files.Checked):
    """What `solve` returns, for every method and plan: a policy, its cost, a text and a file.

    `cost` is that of the policy from the initial distribution, an estimate whose `half_width` is 0
    where it is exact; None where it was not computed.
    """

    if TYPE_CHECKING:
        # Fields of some classes and properties of others, so there is nothing to inherit.
        @property
        def policy(self) -> Policy: ...
        @property
        def cost(self) -> Estimate | None: ...
        @property
        def model_name(self) -> str: ...
        @property
        def model_digest(self) -> str: ...

    @abstractmethod
    def on(self, model: Model) -> Self:
        """Return the same with its policies bound to their model, so that they can act."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to an `.npz` file, whole or not at all."""
        files.save(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: Model | None = None) -> Self:
        """Read what `save` wrote; with `model`, check that it is its own, so that it can act."""
        found: Self = files.load(path, cls)
        if model is None:
            return found
        backend_of(model)  # complains about what is no model
        if model.digest != found.model_digest:
            raise FileError(
                f"{path} belongs to another model ({found.model_text})"
                f"{identity.doubt(found.model_digest, model.digest)}: load it with the model it "
                "was solved for, or solve again"
            )
        return found.on(model)

    @property
    def model_text(self) -> str:
        """The model in a few words."""
        return self.model_name

    def stored_fault(self) -> str:
        return ""

    def __repr__(self) -> str:
        cost = "" if self.cost is None else f", cost {self.cost}"
        return f"<{type(self).__name__} on {self.model_name}{cost}>"

    def __str__(self) -> str:
        return to_text(self.table()).rstrip()


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PlanResult(BaseResult):
    """What a plan of several solves returns, its policy judged as that of a single one.

    `judgement` tells what acting at random and the target of the plan's method cost beside the
    policy, None where it was not asked for; `warnings` are what the user must know.
    """

    judgement: Judgement | None = None
    warnings: tuple[str, ...] = ()


class ChosenResult(PlanResult):
    """What a plan returns that chose one of its results: `result`, whose policy is its own."""

    if TYPE_CHECKING:

        @property
        def result(self) -> BaseResult: ...

    @property
    def policy(self) -> Policy:
        """The policy of the result that was chosen."""
        return self.result.policy

    @property
    def model_name(self) -> str:
        """The name of the model."""
        return self.result.model_name

    @property
    def model_digest(self) -> str:
        """The fingerprint of the model."""
        return self.result.model_digest

    def on(self, model: Model) -> Self:
        return replace(self, result=self.result.on(model))  # type: ignore[call-arg]
