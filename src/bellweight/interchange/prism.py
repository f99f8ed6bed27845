"""PRISM's explicit files: transitions, states, labels and rewards of an MDP or a Markov chain.

    NAME.tra    states choices transitions     then  state choice next probability [action]
    NAME.sta    (x,y)                          then  0:(0,1)
    NAME.lab    0="init" 1="full"              then  0: 0 1
    NAME.srew   states entries                 then  state reward
    NAME.trew   states choices entries         then  state choice next reward
    NAME.names  how Bellweight's labels are spelled in the others (`notes.py`), of no use to PRISM

Files of a Markov chain have neither the number of choices nor the column of the choice. All but the
first may be missing. Format: the PRISM manual, "Explicit Model Files". Files hold no
discount. A label of a state is a word of its name in the model; `init` marks initial states.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from bellweight.common import checks, files
from bellweight.common.status import ArgumentError, FileError
from bellweight.interchange.assembly import Transitions, assembled, given_cost, tabular
from bellweight.interchange.notes import Notes, told_apart
from bellweight.interchange.text import (
    INIT,
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

_COMMENT = "#"
_LABEL = re.compile(r'(\d+)="([^"]*)"')
_REWARD_FILES = (".srew", ".trew")
_REWARD_NAME = re.compile(r'# Reward structure:? "([^"]+)"')


def read_prism(
    path: str | os.PathLike[str],
    discount: float,
    initial: Any = None,
    *,
    sense: Sense | None = None,
    reward: str | None = None,
    actions: Sequence[str] | None = None,
) -> TabularModel:
    """Return the model of NAME.tra and the files beside it; rewards are costs unless `sense="max"`.

    Files that Bellweight wrote of a reward model have rewards without being told.
    Of several reward structures PRISM writes NAME1.srew, NAME2.srew, ...: `reward` names one.
    `initial` replaces the states labelled `init`. `actions` gives the order of action names, else
    that of first appearance. A choice without a name is called a0, a1, ... by its number. Sums of
    probabilities may be off by 1e-5, as PRISM allows, and are then scaled.
    """
    source = Path(path)
    table = _read_transitions(source)
    rewards = _rewards(_reward_file(source, reward), table)
    notes = _read_notes(source.with_suffix(".names"), table)
    marked = _read_labels(source.with_suffix(".lab"), table.n_states, notes)
    marked.start_in(table.starts)
    labels, law = marked.settle(initial, table.n_states, notes.initial)
    vectors = _read_states(source.with_suffix(".sta"), table.n_states)
    rows, action_labels = table.transitions(rewards, actions, notes)
    n_states = table.n_states
    del table, rewards
    return assembled(
        rows,
        n_states,
        discount,
        law,
        lambda row: f"{source}, line {Lines(source, _COMMENT).line_of(row + 1, bool)}",
        tolerance=SUM_TOLERANCE,
        sense=sense or notes.sense or "min",
        state_vectors=vectors,
        state_labels=labels,
        action_labels=action_labels,
        name=source.stem,
    )


def write_prism(model: TabularModel, path: str | os.PathLike[str]) -> Path:
    """Write NAME.tra, .lab, .trew, and .sta where state vectors are whole numbers.

    Costs (rewards of a reward model) are rewards of transitions. PRISM's names have letters, digits
    and _ only; NAME.names has your own, and `read_prism` gives them back.
    """
    model = tabular(model)
    warn_of_losses(model)
    target = Path(path).with_suffix(".tra")
    has_vectors = model.state_vectors is not None and bool((model.state_vectors % 1 == 0).all())
    _check_beside(target, has_vectors)
    if not has_vectors:
        warn_of_vectors(model)
    head = f"{model.n_states} {model.n_pairs} {model.transition.nnz}\n"
    names, words = action_names(model, _spelled), _word_names(model)
    _write(target.with_suffix(".names"), head, [Notes.of(model, names, words).line() + "\n"])
    _write_labels(model, words, target.with_suffix(".lab"))
    if has_vectors:
        _write_states(model, target.with_suffix(".sta"))
    costs = given_cost(model)
    _write(target.with_suffix(".trew"), head, _lines(model, names, costs))
    return _write(target, head, _lines(model, names, None))


def _check_beside(target: Path, has_vectors: bool) -> None:
    """Complain about files of another model, which would be read together with the new ones."""
    endings = (".srew",) if has_vectors else (".srew", ".sta")
    for path in (target.with_suffix(ending) for ending in endings):
        if path.exists():
            raise FileError(
                f"{path} is there and would be read as a part of {target}: remove it, or write to "
                "another name"
            )


@dataclass
class _Table:
    """The rows of a file of transitions; choice is the place in a state, code numbers names."""

    n_states: int
    most_choices: int
    is_chain: bool
    state: Any = field(default_factory=lambda: array("i"))
    choice: Any = field(default_factory=lambda: array("i"))
    successor: Any = field(default_factory=lambda: array("i"))
    code: Any = field(default_factory=lambda: array("i"))
    probability: Any = field(default_factory=lambda: array("d"))
    names: dict[str, int] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)
    n_choices: int = 0

    def add(self, parts: list[str], lines: Lines) -> None:
        """Add the entries of a line."""
        if self.is_chain:
            parts.insert(1, "0")
        if len(parts) not in (4, 5):
            raise lines.wrong(
                f"{len(parts) - self.is_chain} entries, expected "
                f"state{'' if self.is_chain else ' choice'} next probability"
            )
        successor = lines.whole(parts[2], self.n_states)
        if parts[0] == "-":  # how PRISM writes an initial state
            self.starts.append(successor)
            return
        state, choice = (
            lines.whole(parts[0], self.n_states),
            lines.whole(parts[1], self.most_choices),
        )
        name = "" if len(parts) == 4 or self.is_chain else parts[4]
        code = self.names.setdefault(name, len(self.names))
        if not self.state or state != self.state[-1] or choice != self.choice[-1]:
            self.n_choices += 1
        elif code != self.code[-1]:
            raise lines.wrong(f"the action is {name!r}, and another one a line above")
        self.state.append(state)
        self.choice.append(choice)
        self.successor.append(successor)
        self.probability.append(lines.real(parts[3]))
        self.code.append(code)

    def transitions(
        self, rewards: Any, order: Sequence[str] | None, notes: Notes
    ) -> tuple[Transitions, tuple[str, ...] | None]:
        """Return the rows with their actions, and the labels of these."""
        state, choice, successor, code = (
            np.frombuffer(part, dtype=np.int32)
            for part in (self.state, self.choice, self.successor, self.code)
        )
        new = (state[1:] != state[:-1]) | (choice[1:] != choice[:-1])
        first = np.append(0, np.flatnonzero(new) + 1)
        of_choice, labels = settled_actions(
            state[first], choice[first], code[first], list(self.names), order, _spelled, notes
        )
        action = np.repeat(of_choice, np.diff(first, append=len(state)))
        return Transitions(
            state, action, successor, np.frombuffer(self.probability), rewards
        ), labels


def _read_transitions(source: Path) -> _Table:
    lines = Lines(source, _COMMENT)
    rows = iter(lines)
    head = _header(lines, rows, (2, 3))
    if head[0] > head[-1]:
        raise lines.wrong(
            f"{head[0]} states and {head[-1]} transitions: some state has none, expected at least "
            "one of each; let PRISM fix the deadlocks"
        )
    table = _Table(head[0], head[1], is_chain=len(head) == 2)
    for text in rows:
        table.add(text.split(), lines)
    if len(table.state) != head[-1]:
        raise lines.wrong(
            f"the file has {len(table.state)} transitions, expected {head[-1]} as its header says"
        )
    if not table.state:
        raise lines.wrong("there are no transitions, expected at least one")
    if not table.is_chain and table.n_choices != head[1]:
        raise lines.wrong(
            f"the file has {table.n_choices} choices, expected {head[1]} as its header says"
        )
    return table


def _header(lines: Lines, rows: Iterator[str], lengths: tuple[int, ...]) -> list[int]:
    parts = next(rows, "").split()
    if len(parts) not in lengths or not all(part.isdecimal() for part in parts):
        raise lines.wrong(f"{' '.join(parts)!r}, expected a header of {lengths[-1]} whole numbers")
    return [lines.whole(part, 2**31) for part in parts]


def _reward_file(source: Path, reward: str | None) -> Path:
    """Return the file, but for its ending, of the reward structure that is asked for."""
    found = {name: path for path in _reward_files(source) for name in [_reward_name(path)]}
    if reward is None and len(found) <= 1:
        return next(iter(found.values()), source)
    if reward not in found:
        listed = ", ".join(found) or "none"
        raise ArgumentError(
            f"reward is {reward!r}, and the reward structures beside {source} are {listed}: name "
            "one as reward="
        )
    return found[reward]


def _reward_files(source: Path) -> Iterator[Path]:
    """Yield NAME where it has a file of rewards, else NAME1, NAME2, ...

    Files beside transitions of their own, NAME1.tra, belong to another model.
    """
    if _has_rewards(source):
        yield source
        return
    for number in count(1):
        path = source.with_stem(f"{source.stem}{number}")
        if not _has_rewards(path) or path.exists():
            return
        yield path


def _has_rewards(path: Path) -> bool:
    return any(path.with_suffix(ending).exists() for ending in _REWARD_FILES)


def _reward_name(path: Path) -> str:
    """Return the name in the first line of a file of rewards, or the file's name."""
    for ending in _REWARD_FILES:
        if path.with_suffix(ending).exists():
            with open(path.with_suffix(ending), encoding="utf-8-sig", errors="replace") as stream:
                found = _REWARD_NAME.match(stream.readline())
            if found:
                return found[1]
    return path.stem


def _rewards(source: Path, table: _Table) -> Any:
    """Return the rewards of states and of transitions, together, for each row of the table."""
    found = np.zeros(len(table.state))
    states = source.with_suffix(".srew")
    if states.exists():
        lines = Lines(states, _COMMENT)
        rewards = np.zeros(table.n_states)
        for parts in _entries(lines, 2, 2, table.n_states):
            rewards[lines.whole(parts[0], table.n_states)] = lines.real(parts[1])
        found = rewards[np.frombuffer(table.state, dtype=np.int32)]
    moves = source.with_suffix(".trew")
    if moves.exists():
        _add_transition_rewards(Lines(moves, _COMMENT), table, found)
    return found


def _add_transition_rewards(lines: Lines, table: _Table, found: Any) -> None:
    """Add rewards by (state, choice, next); both files list them in the same order."""
    row, last = 0, len(table.state)
    state, choice, successor = table.state, table.choice, table.successor
    for parts in _entries(lines, 4 - table.is_chain, 3 - table.is_chain, table.n_states):
        if table.is_chain:
            parts.insert(1, "0")
        x, k, y = (lines.whole(part, 2**31) for part in parts[:3])
        while row < last and (successor[row] != y or state[row] != x or choice[row] != k):
            row += 1
        if row == last:
            raise lines.wrong(f"{' '.join(parts[:3])} is no transition, or is out of order")
        found[row] += lines.real(parts[3])
        row += 1


def _entries(lines: Lines, width: int, head: int, n_states: int) -> Iterator[list[str]]:
    rows = iter(lines)
    counts = _header(lines, rows, (head,))
    if counts[0] != n_states:
        raise lines.wrong(f"{counts[0]} states, expected {n_states} as the transitions have")
    expected = counts[-1]
    n_rows = 0
    for text in rows:
        n_rows += 1
        parts = text.split()
        if len(parts) != width:
            raise lines.wrong(f"{len(parts)} entries, expected {width}")
        yield parts
    if n_rows != expected:
        raise lines.wrong(f"the file has {n_rows} entries, expected {expected} as its header says")


def _read_notes(source: Path, table: _Table) -> Notes:
    """Return the names that Bellweight noted, none where they belong to other transitions."""
    if not source.exists():
        return Notes()
    lines = Lines(source, _COMMENT)
    rows = iter(lines)
    head = _header(lines, rows, (3,))
    if head != [table.n_states, table.n_choices, len(table.state)]:
        return Notes()
    text = next(rows, None)
    return Notes() if text is None else lines.noted(text)


def _read_labels(source: Path, n_states: int, notes: Notes) -> StateLabels:
    labels = StateLabels()
    if not source.exists():
        return labels
    lines = Lines(source, _COMMENT)
    rows = iter(lines)
    head = next(rows, "")
    names = {number: notes.words.get(name, name) for number, name in _LABEL.findall(head)}
    if _LABEL.sub("", head).strip() or not names:
        raise lines.wrong(f'{head!r}, expected labels such as 0="init" 1="full"')
    for text in rows:
        state, colon, numbers = text.partition(":")
        if not colon or any(number not in names for number in numbers.split()):
            raise lines.wrong(f"{text!r}, expected a state, a colon and numbers of labels")
        words = [names[number] for number in numbers.split()]
        labels.add(lines.whole(state.strip(), n_states), words)
    return labels


def _read_states(source: Path, n_states: int) -> Any:
    if not source.exists():
        return None
    lines = Lines(source, _COMMENT)
    rows = iter(lines)
    head = next(rows, "")
    if not (head.startswith("(") and head.endswith(")")):
        raise lines.wrong(f"{head!r}, expected the names of the variables, such as (x,y)")
    width = head.count(",") + 1
    vectors = np.zeros((n_states, width))
    n_rows = 0
    for text in rows:
        n_rows += 1
        state, _, values = text.partition(":")
        parts = values.strip().strip("()").split(",")
        if len(parts) != width:
            raise lines.wrong(f"{len(parts)} values, expected {width}")
        words = {"true": "1", "false": "0"}
        vectors[lines.whole(state.strip(), n_states)] = [
            lines.real(words.get(part.strip(), part.strip())) for part in parts
        ]
    if n_rows != n_states:
        raise lines.wrong(f"the file ends after {n_rows} of {n_states} states")
    return vectors


def _lines(model: TabularModel, names: dict[int, str], costs: Any) -> Iterator[str]:
    """Yield the lines of each pair: with its action's name, or with its cost."""
    rows, start = model.transition, model.pair_start
    for pair in range(model.n_pairs):
        state = int(model.pair_state[pair])
        begin = f"{state} {pair - int(start[state])}"
        part = slice(rows.indptr[pair], rows.indptr[pair + 1])
        moves = zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True)
        if costs is None:
            end = names[int(model.pair_action[pair])]
            yield "".join(f"{begin} {y} {p!r} {end}\n" for y, p in moves)
        else:
            yield "".join(f"{begin} {y} {float(costs[pair])!r}\n" for y, _ in moves)


def _word_names(model: TabularModel) -> dict[str, str]:
    """Return the words of state labels, each with its name in the file; init and deadlock first."""
    found = (word for words in state_words(model) for word in words)
    words = list(dict.fromkeys((INIT, "deadlock", *found)))
    return dict(zip(words, told_apart(words, _spelled), strict=True))


def _write_labels(model: TabularModel, words: dict[str, str], path: Path) -> None:
    head = " ".join(f'{number}="{name}"' for number, name in enumerate(words.values())) + "\n"
    numbers = {word: str(number) for number, word in enumerate(words)}
    marked = (
        f"{state}: {' '.join(numbers[word] for word in found)}\n"
        for state, found in enumerate(state_words(model))
        if found
    )
    _write(path, head, marked)


def _write_states(model: TabularModel, path: Path) -> None:
    vectors = checks.float_array(model.state_vectors, "state_vectors", (-1, -1)).astype(np.int64)
    head = "(" + ",".join(f"x{i}" for i in range(vectors.shape[1])) + ")\n"
    rows = (f"{i}:({','.join(map(str, vector.tolist()))})\n" for i, vector in enumerate(vectors))
    _write(path, head, rows)


def _write(path: Path, head: str, lines: Iterable[str]) -> Path:
    return files.write_parts(path, chain([head], lines))


def _spelled(label: str) -> str:
    """Return a label as PRISM takes names: letters, digits and _, no digit first."""
    name = re.sub(r"\W+", "_", label.strip())
    return f"_{name}" if name[0].isdecimal() else name
