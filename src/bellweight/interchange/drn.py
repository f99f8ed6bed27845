"""Storm's DRN files: an MDP or a Markov chain as one text, states with labels and rewards.

    @type: MDP
    @reward_models
    cost
    @nr_states
    2
    @model
    state 0 init
        action a0 [1.5]
            0 : 0.25
            1 : 0.75

Format: Storm's documentation, "The DRN format". A file holds no discount. A label of a state is a
word of its name in the model; `init` marks initial states.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bellweight.common import files
from bellweight.common.status import FileError
from bellweight.interchange.assembly import Transitions, assembled, given_cost, tabular
from bellweight.interchange.notes import MARK, Notes
from bellweight.interchange.text import (
    NO_LABEL,
    SUM_TOLERANCE,
    Lines,
    StateLabels,
    action_names,
    settled_actions,
    state_words,
    warn_of_losses,
    warn_of_vectors,
)
from bellweight.models import TabularModel
from bellweight.models.tabular import Sense

_STATE = re.compile(r"state\s+(?P<name>\S+)\s*(?:\[(?P<rewards>[^\]]*)\])?(?P<labels>.*)")
_ACTION = re.compile(r"action(?:\s+(?P<name>\S+))?\s*(?:\[(?P<rewards>[^\]]*)\])?")
_LABEL = re.compile(r'"([^"]+)"|([^\s"]+)')
_OPENERS = "[{!"  # a label that begins with one of these must be in quotes
_COMMENT = "//"
_TYPES = ("mdp", "dtmc")


def read_drn(
    path: str | os.PathLike[str],
    discount: float,
    initial: Any = None,
    *,
    sense: Sense | None = None,
    reward: str | None = None,
    actions: Sequence[str] | None = None,
) -> TabularModel:
    """Return the model of a DRN file; rewards are costs unless `sense="max"`.

    A file that Bellweight wrote of a reward model has rewards without being told. `reward` names
    the reward model where there are several. `initial` and `actions` are as in `read_prism`, and so
    are sums of probabilities that are off by rounding.
    """
    source = Path(path)
    parsed = _Parser(source, reward)
    parsed.read()
    labels, law = parsed.labels.settle(initial, parsed.n_states, parsed.lines.notes.initial)
    rows, action_labels = parsed.transitions(actions)
    n_states, sense = parsed.n_states, sense or parsed.lines.notes.sense or "min"
    del parsed
    return assembled(
        rows,
        n_states,
        discount,
        law,
        lambda row: f"{source}, line {Lines(source, _COMMENT).line_of(row, _Transitions())}",
        tolerance=SUM_TOLERANCE,
        sense=sense,
        state_labels=labels,
        action_labels=action_labels,
        name=source.stem,
    )


def write_drn(model: TabularModel, path: str | os.PathLike[str]) -> Path:
    """Write a model as Storm does, with one reward model: costs, or rewards of a reward model."""
    model = tabular(model)
    warn_of_losses(model)
    warn_of_vectors(model)
    return files.write_parts(path, _parts(model))


class _Transitions:
    """Whether a line is a transition: those below @model that open no state or action."""

    def __init__(self) -> None:
        self._below = False

    def __call__(self, text: str) -> bool:
        if self._below:
            return not text.startswith(("state", "action"))
        self._below = text == "@model"
        return False


class _Parser:
    """One pass over the lines of a file; pairs and transitions grow as they are read."""

    def __init__(self, source: Path, reward: str | None) -> None:
        self.lines, self.reward = Lines(source, _COMMENT), reward
        self.n_states, self.n_choices, self.place = 0, -1, 0
        self.state, self.choices, self.code = array("i"), array("i"), array("i")
        self.start, self.cost = array("q"), array("d")
        self.successor, self.probability = array("i"), array("d")
        self.names: dict[str, int] = {}
        self.labels, self.placeholders = StateLabels(), dict[str, float]()
        self.current, self.choice, self.state_reward = -1, 0, 0.0

    def transitions(self, order: Sequence[str] | None) -> tuple[Transitions, Any]:
        """Return what was read, and the labels of actions."""
        state, choice, code = (
            np.frombuffer(part, dtype=np.int32) for part in (self.state, self.choices, self.code)
        )
        action, labels = settled_actions(
            state, choice, code, list(self.names), order, _spelled, self.lines.notes
        )
        ends = np.append(np.frombuffer(self.start, dtype=np.int64), len(self.successor))
        counts = np.diff(ends)
        rows = Transitions(
            np.repeat(state, counts),
            np.repeat(action, counts),
            np.frombuffer(self.successor, dtype=np.int32),
            np.frombuffer(self.probability),
            np.repeat(np.frombuffer(self.cost), counts),
        )
        return rows, labels

    def read(self) -> None:
        """Read the whole file."""
        rows = iter(self.lines)
        self._read_header(rows)
        for text in rows:
            if text.startswith("state"):
                self._open_state(text)
            elif text.startswith("action"):
                self._open_action(text)
            else:
                self._add_transition(text)
        self._check_complete()
        if self.current != self.n_states - 1:
            raise self.lines.wrong(
                f"the file ends after {self.current + 1} of {self.n_states} states"
            )
        if self.n_choices not in (-1, len(self.state)):
            raise self.lines.wrong(
                f"the file has {len(self.state)} choices, expected {self.n_choices} as its header "
                "says"
            )

    def _read_header(self, rows: Iterator[str]) -> None:
        section, rewards = "", list[str]()
        for text in rows:
            if text == "@model":
                self.place = self._reward_place(rewards)
                return
            if text.startswith("@"):
                section, _, rest = text.partition(":")
                if section == "@type" and rest.strip().lower() not in _TYPES:
                    raise self.lines.wrong(f"the model is {rest.strip()}, expected MDP or DTMC")
            elif section == "@reward_models":
                rewards += text.split()
            elif section == "@nr_states":
                self.n_states = self.lines.whole(text, 2**31)
                if not self.n_states:
                    raise self.lines.wrong("there are no states, expected at least one")
            elif section == "@nr_choices":
                self.n_choices = self.lines.whole(text, 2**31)
            elif section == "@placeholders":
                name, _, value = text.partition(":")
                self.placeholders[name.strip()] = self.lines.real(value.strip())
            elif section == "@parameters":
                raise self.lines.wrong(f"the parameter {text} has no value: instantiate the model")
        raise self.lines.wrong("the file ends before @model")

    def _reward_place(self, rewards: list[str]) -> int:
        if self.reward is None and len(rewards) <= 1:
            return 0 if rewards else -1
        if self.reward not in rewards:
            listed = ", ".join(rewards) or "none"
            raise self.lines.wrong(f"the reward models are {listed}: name one as reward=")
        return rewards.index(self.reward)

    def _reward(self, text: str | None) -> float:
        """Return the reward of a list in brackets."""
        if text is None:
            return 0.0
        values = [part.strip() for part in text.split(",")]
        if self.place >= len(values):
            raise self.lines.wrong(f"{len(values)} rewards, expected at least {self.place + 1}")
        return self._real(values[self.place]) if self.place >= 0 else 0.0

    def _real(self, text: str) -> float:
        """Return a number or what a placeholder such as $1 stands for."""
        if text.startswith("$") and text in self.placeholders:
            return self.placeholders[text]
        return self.lines.real(text)

    def _open_state(self, text: str) -> None:
        self._check_complete()
        found = _STATE.fullmatch(text)
        if found is None:
            raise self.lines.wrong(f"{text!r}, expected the word state and its number")
        state = self.lines.whole(found["name"], self.n_states)
        if state != self.current + 1:
            raise self.lines.wrong(
                f"state {state}, expected {self.current + 1}: states are in order"
            )
        self.current, self.choice = state, 0
        self.state_reward = self._reward(found["rewards"])
        if found["rewards"] is None and found["labels"].lstrip().startswith("["):
            raise self.lines.wrong(f"{text!r}, expected rewards in brackets")
        self.labels.add(state, self._labels(found["labels"]))

    def _labels(self, text: str) -> list[str]:
        if _LABEL.sub("", text).strip():
            raise self.lines.wrong(
                f"{text.strip()!r}, expected labels, each with two quotes or none"
            )
        return [quoted or plain for quoted, plain in _LABEL.findall(text)]

    def _open_action(self, text: str) -> None:
        if self.choice:
            self._check_complete()
        found = _ACTION.fullmatch(text)
        if found is None:
            raise self.lines.wrong(f"{text!r}, expected the word action, its name and [rewards]")
        self._open_pair(found["name"] or NO_LABEL, self._reward(found["rewards"]))

    def _open_pair(self, name: str, reward: float) -> None:
        if self.current < 0:
            raise self.lines.wrong("an action before the first state")
        self.state.append(self.current)
        self.choices.append(self.choice)
        self.code.append(self.names.setdefault(name, len(self.names)))
        self.cost.append(self.state_reward + reward)
        self.start.append(len(self.successor))
        self.choice += 1

    def _add_transition(self, text: str) -> None:
        successor, colon, probability = text.partition(":")
        if not colon:
            raise self.lines.wrong(f"{text!r}, expected a state, an action or next : probability")
        if not self.choice:
            self._open_pair(NO_LABEL, 0.0)  # Markov chains have no line for the action
        self.successor.append(self.lines.whole(successor.strip(), self.n_states))
        self.probability.append(self._real(probability.strip()))

    def _check_complete(self) -> None:
        if self.current >= 0 and (not self.choice or self.start[-1] == len(self.successor)):
            raise self.lines.wrong(f"state {self.current} has no transition before this line")


def _parts(model: TabularModel) -> Iterator[str]:
    names = action_names(model, _spelled)
    yield (
        f"// Exported by bellweight\n// {MARK}{Notes.of(model, names, {}).line()}\n"
        "@type: MDP\n@parameters\n\n@reward_models\n"
        f"{'reward' if model.sense == 'max' else 'cost'}\n@nr_states\n{model.n_states}\n"
        f"@nr_choices\n{model.n_pairs}\n@model\n"
    )
    rows, cost, words = model.transition, given_cost(model), state_words(model)
    last = -1
    for pair, (state, action) in enumerate(zip(model.pair_state, model.pair_action, strict=True)):
        if state != last:
            yield " ".join([f"state {state}", *map(_quoted, next(words))]) + "\n"
            last = state
        part = slice(rows.indptr[pair], rows.indptr[pair + 1])
        moves = zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True)
        head = f"\taction {names[int(action)]} [{float(cost[pair])!r}]\n"
        yield head + "".join(f"\t\t{y} : {p!r}\n" for y, p in moves)


def _spelled(label: str) -> str:
    """Return an action's label as one word."""
    return re.sub(r"\s+", "_", label.strip())


def _quoted(word: str) -> str:
    """Return a state's label, in quotes where Storm wants them."""
    if '"' in word:
        raise FileError(
            f"the label {word} has a quotation mark, which files cannot hold: rename it"
        )
    return f'"{word}"' if word[0] in _OPENERS else word
