"""What files of model checkers cannot hold, as a line of JSON that only Bellweight reads.

    {"sense": "min", "labels": ["rate 0.2", "5"], "actions": {"rate_0_2": 0, "_5": 1}, "words": {},
     "initial": [0.25, 0.75]}

`actions` has the index of each action by its name in the file, `labels` the labels by index,
`words` those words of state labels that the file spells in another way, and `initial` the
probabilities of the initial states, in their order, where they differ. A DRN file has the line as a
comment; beside PRISM's files it is NAME.names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from bellweight.common import files
from bellweight.models import TabularModel
from bellweight.models.tabular import Sense

MARK = "bellweight: "
"""How a comment that is a note begins."""

_SENSES: dict[str, Sense] = {"min": "min", "max": "max"}
_FIELDS = ("sense", "labels", "actions", "words", "initial")


@dataclass(frozen=True)
class Notes:
    """How a model named its actions and states; without notes, names are those of the file."""

    sense: Sense | None = None
    labels: tuple[str, ...] | None = None
    actions: dict[str, int] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    initial: list[float] | None = None

    @classmethod
    def of(cls, model: TabularModel, names: dict[int, str], words: dict[str, str]) -> Self:
        """Return the notes of a model whose actions and words a file spells like this."""
        spelled = {name: word for word, name in words.items() if name != word}
        places = {name: action for action, name in names.items()}
        chances = model.initial[model.initial > 0.0]
        law = None if (chances == 1.0 / len(chances)).all() else chances.tolist()
        return cls(_SENSES[model.sense], model.action_labels, places, spelled, law)

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return the notes of a line, None where it is damaged."""
        try:
            found = json.loads(text)
            sense, labels, actions, words, initial = (found[name] for name in _FIELDS)
            kept = None if labels is None else tuple(str(label) for label in labels)
            places = [int(place) for place in actions.values()]
            notes = cls(
                _SENSES[sense],
                kept,
                dict(zip(actions, places, strict=True)),
                {name: str(word) for name, word in words.items()},
                None if initial is None else [float(chance) for chance in initial],
            )
        except files.DAMAGE:
            return None
        most = 2**31 if kept is None else len(kept)
        inside = all(0 <= place < most for place in places)
        return notes if inside and len(set(places)) == len(places) else None

    def line(self) -> str:
        """Return the notes as one line."""
        return json.dumps({name: getattr(self, name) for name in _FIELDS})

    def indices(self, names: Iterable[str]) -> Any:
        """Return the index of each action name of a file, or None where one is not noted."""
        found = [self.actions.get(name, -1) for name in names]
        return None if not found or min(found) < 0 else np.array(found, dtype=np.int32)


def told_apart(labels: Iterable[str], spelled: Callable[[str], str]) -> list[str]:
    """Return labels as a file spells them, and all different: x_y, x_y_2."""
    taken: dict[str, int] = {}
    found = []
    for label in labels:
        stem = name = spelled(label)
        while name in taken:
            taken[stem] += 1
            name = f"{stem}_{taken[stem]}"
        taken[name] = 1
        found.append(name)
    return found
