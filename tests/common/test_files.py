"""Files: exact round trips, nothing executed on reading, written whole or not at all."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import pickle
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import strategies
from hypothesis import HealthCheck, given, settings
from scipy import sparse

import bellweight as bw
from bellweight.common import files


def assert_same(one: Any, other: Any, where: str = "") -> None:
    """Compare two stored objects field by field, exactly."""
    if isinstance(one, np.ndarray):
        assert isinstance(other, np.ndarray), where
        assert one.dtype == other.dtype, where
        assert np.array_equal(one, other, equal_nan=one.dtype.kind == "f"), where
    elif sparse.issparse(one):
        assert one.shape == other.shape, where
        assert np.array_equal(one.toarray(), other.toarray()), where
    elif dataclasses.is_dataclass(one):
        assert type(one) is type(other), where
        for field in dataclasses.fields(one):
            if field.metadata.get("stored", True):
                assert_same(
                    getattr(one, field.name), getattr(other, field.name), f"{where}.{field.name}"
                )
    elif isinstance(one, tuple | list):
        assert len(one) == len(other), where
        for i, (first, second) in enumerate(zip(one, other, strict=True)):
            assert_same(first, second, f"{where}[{i}]")
    else:
        assert type(one) is type(other), where
        assert one == other, where


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(model=strategies.models())
def test_models_come_back_exactly(model: bw.TabularModel, tmp_path: Path) -> None:
    model.save(tmp_path / "model.npz")
    loaded = bw.TabularModel.load(tmp_path / "model.npz")
    assert_same(model, loaded)
    assert loaded.digest == model.digest


def test_a_model_keeps_labels_vectors_sense_and_name(tmp_path: Path) -> None:
    model = bw.TabularModel.from_arrays(
        cost=[[1.0, 2.0], [3.0, 4.0]],
        transition=[np.eye(2), np.eye(2)],
        discount=0.5,
        initial=[0.5, 0.5],
        sense="max",
        state_vectors=[[0.0, 1.0], [1.0, 0.5]],
        state_labels=["a", "ü"],
        action_labels=["left", "right"],
        name="a small one",
    )
    model.save(tmp_path / "model.npz")
    loaded = bw.TabularModel.load(tmp_path / "model.npz")
    assert_same(model, loaded)
    assert loaded.cost.tolist() == [-1.0, -2.0, -3.0, -4.0]
    assert loaded.label(1) == "right"


METHODS = {
    "fixed": bw.Fixed("uniform"),
    "array": bw.Fixed(np.full(31, 1.0 / 31.0)),
    "random": bw.FromPolicy(),
    "pia": bw.PIA(step_size=0.5),
    "dia": bw.DIA(target=bw.TablePolicy(np.full(31, 2)), temperature=0.3, smoothing_mass=0.7),
    "nested": bw.DIA(target=bw.Fixed("uniform"), start=bw.FromPolicy()),
}
BASES = {
    "polynomial": bw.Polynomial(3),
    "bounded": bw.Polynomial(2, upper=1e6, lower=[-np.inf, -1e5, -1e5]),
    "affine": bw.Affine(),
    "indicator": bw.Indicator(),
    "groups": bw.Indicator(np.arange(31) // 4),
}


@pytest.mark.parametrize("method", METHODS)
def test_results_come_back_exactly_for_every_method(
    method: str, small_queue: bw.TabularModel, tmp_path: Path
) -> None:
    with warnings.catch_warnings():
        # One of them is worse than its target; that is kept, too.
        warnings.simplefilter("ignore", bw.errors.BellweightWarning)
        result = bw.solve(small_queue, bw.Polynomial(3), METHODS[method])
    result.save(tmp_path / "result.npz")
    assert_same(result, bw.Result.load(tmp_path / "result.npz"))
    assert str(bw.Result.load(tmp_path / "result.npz")) == str(result)


@pytest.mark.parametrize("basis", BASES)
def test_results_come_back_exactly_for_every_basis(
    basis: str, small_queue: bw.TabularModel, tmp_path: Path
) -> None:
    result = bw.solve(small_queue, BASES[basis], bw.Fixed())
    result.save(tmp_path / "result.npz")
    loaded = bw.Result.load(tmp_path / "result.npz", model=small_queue)
    assert_same(result, loaded)
    again = loaded.policy.on(small_queue)
    assert np.array_equal(again.table, result.policy.table)


def test_phases_of_a_cycle_come_back(cycling_of_three: bw.TabularModel, tmp_path: Path) -> None:
    result = bw.solve(cycling_of_three, bw.Polynomial(3), bw.PIA())
    result.save(tmp_path / "result.npz")
    loaded = bw.Result.load(tmp_path / "result.npz")
    assert len(loaded.phases) == 3
    assert_same(result, loaded)


def test_phases_come_back_with_model_and_basis(
    cycling_of_three: bw.TabularModel, tmp_path: Path
) -> None:
    def powers(states: np.ndarray) -> np.ndarray:
        return np.hstack([states**k for k in range(4)])

    basis = bw.Custom(powers, ["1", "x", "x^2", "x^3"])
    result = bw.solve(cycling_of_three, basis, bw.PIA(cycles="average"))
    result.save(tmp_path / "result.npz")
    loaded = bw.Result.load(tmp_path / "result.npz", cycling_of_three, basis)
    assert loaded.average is not None
    for one in (loaded, *loaded.phases, loaded.average):
        assert one.policy.model is cycling_of_three
        assert np.array_equal(
            one.policy.basis(cycling_of_three.states), powers(np.arange(5.0)[:, None])
        )


def test_a_custom_basis_comes_back_as_a_note_and_still_acts(
    small_queue: bw.TabularModel, tmp_path: Path
) -> None:
    def bends(states: np.ndarray) -> np.ndarray:
        return np.column_stack([np.ones(len(states)), np.sqrt(states)])

    result = bw.solve(small_queue, bw.Custom(bends, ["one", "root"]), bw.DIA())
    result.save(tmp_path / "result.npz")
    loaded = bw.Result.load(tmp_path / "result.npz", model=small_queue)
    assert loaded.names == ("one", "root")
    assert isinstance(loaded.basis.fn, files.Unstored)
    assert "bends" in loaded.basis.fn.text
    for name in ("coef", "moments", "weights", "dual", "objective", "history", "status", "method"):
        assert_same(getattr(result, name), getattr(loaded, name), name)
    assert [loaded.policy.action(x) for x in range(31)] == result.policy.table.tolist()
    with pytest.raises(bw.errors.BasisError, match=r"bends was not stored: load the result with"):
        loaded.basis(small_queue.states)
    whole = bw.Result.load(tmp_path / "result.npz", small_queue, bw.Custom(bends, ["one", "root"]))
    assert np.array_equal(whole.basis(small_queue.states), bends(small_queue.states))
    assert bw.verify(small_queue, bw.certify(small_queue, whole)).passed

    def straight(states: np.ndarray) -> np.ndarray:
        return np.column_stack([np.ones(len(states)), states])

    for other in (bw.Custom(straight, ["one", "root"]), bw.Polynomial(1)):
        with pytest.raises(bw.errors.FileError, match=r"solved with another basis .*bends.*: load"):
            bw.Result.load(tmp_path / "result.npz", small_queue, other)


def test_a_basis_that_is_fitted_is_recognised(small_queue: bw.TabularModel, tmp_path: Path) -> None:
    path = tmp_path / "result.npz"
    bw.solve(small_queue, bw.Radial(4, seed=3), bw.PIA()).save(path)
    assert bw.Result.load(path, small_queue, bw.Radial(4, seed=3)).status is bw.Status.CONVERGED
    with pytest.raises(bw.errors.FileError, match="another basis"):
        bw.Result.load(path, small_queue, bw.Radial(4, seed=4, width=2.0))


@dataclass(frozen=True, eq=False, kw_only=True)
class Mine(bw.PIA):
    """A method that Bellweight does not know."""

    taste: int = 7


def test_a_users_method_comes_back_as_a_note(small_queue: bw.TabularModel, tmp_path: Path) -> None:
    result = bw.solve(small_queue, bw.Polynomial(3), Mine())
    result.save(tmp_path / "result.npz")
    loaded = bw.Result.load(tmp_path / "result.npz")
    assert isinstance(loaded.method, files.Unstored)
    assert "Mine" in loaded.method.text
    assert "taste=7" in loaded.method.text
    rest = dataclasses.replace(loaded, method=result.method)
    assert_same(result, rest)


def test_a_loaded_policy_acts_without_its_model(
    small_queue: bw.TabularModel, tmp_path: Path
) -> None:
    result = bw.solve(small_queue, bw.Polynomial(3), bw.DIA())
    result.save(tmp_path / "result.npz")
    policy = bw.Result.load(tmp_path / "result.npz").policy
    assert policy.model is None
    assert [policy.action(x) for x in range(31)] == result.policy.table.tolist()


def test_a_file_with_a_field_that_is_gone_still_loads(
    small_queue: bw.TabularModel, tmp_path: Path
) -> None:
    """Greedy policies once had a field `trust_dual`."""
    path = tmp_path / "result.npz"
    saved = bw.solve(small_queue, bw.Polynomial(2), bw.Fixed(), judge=False)
    saved.save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    header = str(arrays.pop("bellweight"))
    older = header.replace('"preference"', '"trust_dual": false, "preference"')
    assert older != header
    np.savez(path, bellweight=np.array(older), **arrays)
    loaded = bw.Result.load(path, model=small_queue)
    np.testing.assert_array_equal(loaded.policy.table, saved.policy.table)
    np.savez(path, bellweight=np.array(older.replace("trust_dual", "trust")), **arrays)
    with pytest.raises(bw.errors.FileError, match="damaged"):
        bw.Result.load(path, model=small_queue)


def test_a_result_knows_its_model(small_queue: bw.TabularModel, tmp_path: Path) -> None:
    bw.solve(small_queue, bw.Polynomial(3), bw.DIA()).save(tmp_path / "result.npz")
    same = bw.problems.single_queue(capacity=30, discount=0.95)
    assert bw.Result.load(tmp_path / "result.npz", model=same).policy.model is same
    other = bw.problems.single_queue(capacity=30, discount=0.96)
    with pytest.raises(
        bw.errors.FileError,
        match=r"another model \(single queue, 31 states.*load it with the model",
    ):
        bw.Result.load(tmp_path / "result.npz", model=other)


def test_files_hold_no_pickles(small_queue: bw.TabularModel, tmp_path: Path) -> None:
    small_queue.save(tmp_path / "model.npz")
    result = bw.solve(small_queue, bw.Custom(lambda s: np.ones((len(s), 1))), bw.DIA())
    result.save(tmp_path / "result.npz")
    for name in ("model.npz", "result.npz"):
        with np.load(tmp_path / name, allow_pickle=False) as archive:
            kinds = {archive[key].dtype.kind for key in archive.files}
        assert "O" not in kinds


class Trap:
    """Unpickling this makes a folder."""

    def __reduce__(self) -> tuple:
        return (os.mkdir, ("sprung",))


@pytest.mark.parametrize("where", ["header", "array", "bare"])
def test_a_malicious_pickle_is_refused(
    where: str, small_queue: bw.TabularModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "evil.npz"
    small_queue.save(path)
    evil = np.array([Trap()], dtype=object)
    if where == "bare":
        path.write_bytes(pickle.dumps(Trap()))
    else:
        with np.load(path) as archive:
            arrays = dict(archive)
        arrays["bellweight" if where == "header" else "array0"] = evil
        np.savez(path, **arrays, allow_pickle=True)
    with pytest.raises(bw.errors.FileError, match=r"evil\.npz.*save it again"):
        bw.TabularModel.load(path)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(
    share: float, small_queue: bw.TabularModel, tmp_path: Path
) -> None:
    path = tmp_path / "model.npz"
    small_queue.save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(bw.errors.FileError, match=r"model\.npz is damaged.*save it again"):
        bw.TabularModel.load(path)


def test_a_damaged_byte_is_noticed(small_queue: bw.TabularModel, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    small_queue.save(path)
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        info = max(archive.infolist(), key=lambda entry: entry.compress_size)
    middle = info.header_offset + 100 + info.compress_size // 2
    content[middle] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(bw.errors.FileError, match="damaged"):
        bw.TabularModel.load(path)


def npy_bytes() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.ones(3))
    return stream.getvalue()


def write_npz(path: Path, header: Any) -> None:
    np.savez(path, bellweight=np.array(json.dumps(header)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda path: np.savez(path, x=np.ones(3)), r"not a Bellweight file: it was saved by"),
        (lambda path: path.write_bytes(npy_bytes()), r"damaged or not a Bellweight file"),
        (
            lambda path: path.write_text("state,action\n", encoding="utf-8"),
            r"damaged or not a Bellweight file",
        ),
        (lambda path: write_npz(path, {"format": 99, "content": {}}), r"format 99.*update"),
        (lambda path: write_npz(path, []), r"damaged or not a Bellweight file"),
        (lambda path: write_npz(path, {"format": 1, "content": []}), r"damaged or not"),
        (lambda path: write_npz(path, {"content": {}}), r"damaged or not a Bellweight file"),
        (
            lambda path: write_npz(path, {"format": 1, "content": {"type": "Result"}}),
            r"holds a Result, expected a TabularModel: pick another file",
        ),
        (
            lambda path: write_npz(
                path, {"format": 1, "content": {"type": "TabularModel", "fields": {"cost": 3}}}
            ),
            r"damaged or not a Bellweight file",
        ),
        (
            lambda path: write_npz(
                path,
                {
                    "format": 1,
                    "content": {"type": "TabularModel", "fields": {"cost": {"type": "os.system"}}},
                },
            ),
            r"damaged or not a Bellweight file",
        ),
    ],
)
def test_foreign_files_are_refused(content: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    content(path)
    with pytest.raises(bw.errors.FileError, match=rf"file\.npz.*{message}"):
        bw.TabularModel.load(path)


def test_a_file_whose_numbers_are_no_model_is_refused(
    small_queue: bw.TabularModel, tmp_path: Path
) -> None:
    path = tmp_path / "model.npz"
    small_queue.save(path)
    with np.load(path) as archive:
        arrays = {key: archive[key].copy() for key in archive.files}
    wrong = next(k for k, a in arrays.items() if a.dtype.kind == "f" and len(a) == 155)
    arrays[wrong][7] = np.nan
    np.savez(path, **arrays)
    with pytest.raises(bw.errors.FileError, match=r"model\.npz.*nan"):
        bw.TabularModel.load(path)


def test_missing_files_folders_and_directories(
    small_queue: bw.TabularModel, tmp_path: Path
) -> None:
    with pytest.raises(bw.errors.FileError, match=r"none\.npz does not exist: check the path"):
        bw.TabularModel.load(tmp_path / "none.npz")
    with pytest.raises(bw.errors.FileError, match=r"cannot read"):
        bw.TabularModel.load(tmp_path)
    with pytest.raises(bw.errors.FileError, match=r"cannot write .*No such file.*check the folder"):
        small_queue.save(tmp_path / "nowhere" / "model.npz")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(bw.errors.FileError, match=r"cannot write"):
        small_queue.save(tmp_path / "folder.npz")


def test_an_unwritable_folder_is_refused(
    small_queue: bw.TabularModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    # Folder permissions do not stop root, so the system call is made to refuse.
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(
        bw.errors.FileError, match=r"cannot write .*model\.npz: Permission denied: check the folder"
    ):
        small_queue.save(tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_interrupted_write_leaves_the_old_file(
    problem: BaseException,
    small_queue: bw.TabularModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "model.npz"
    small_queue.save(path)
    before = path.read_bytes()

    def half(stream: io.BufferedWriter, **arrays: Any) -> None:
        stream.write(b"half of it")
        raise problem

    monkeypatch.setattr(np, "savez_compressed", half)
    expected = bw.errors.FileError if isinstance(problem, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        bw.problems.single_queue(capacity=3).save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.npz"]


def test_saving_replaces_an_older_file(two_states: bw.TabularModel, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    bw.problems.single_queue(capacity=3).save(path)
    two_states.save(str(path))
    assert_same(bw.TabularModel.load(str(path)), two_states)
    assert path.stat().st_mode & 0o444


def test_loading_checks_the_kind(small_queue: bw.TabularModel, tmp_path: Path) -> None:
    small_queue.save(tmp_path / "model.npz")
    with pytest.raises(bw.errors.FileError, match=r"holds a TabularModel, expected a Result"):
        bw.Result.load(tmp_path / "model.npz")


def test_an_object_goes_through_json_and_nothing_is_lost() -> None:
    basis = bw.Stacked(
        bw.PiecewiseLinear([1, 2.5]), bw.bases.Radial([[0.0, 1.0], [2.0, 3.0]], width=0.5),
        lower=np.array([-np.inf, 0.0, *[1.0] * 6]),
    )  # fmt: skip
    document = json.loads(json.dumps(files.to_plain(basis), allow_nan=False))
    found = files.from_plain("here", document, bw.bases.Basis)
    assert repr(found) == repr(basis)
    states = np.array([[0.5, 1.5], [2.0, 0.0]])
    assert np.array_equal(found.on(states)(states), basis.on(states)(states))
    assert np.array_equal(found.lower, basis.lower)
    assert files.is_whole(document)
    assert not files.is_whole(files.to_plain(bw.bases.Custom(lambda states: states)))


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("arrays"),
        lambda d: d["arrays"].popitem(),
        lambda d: next(iter(d["arrays"].values())).update(type="O"),
        lambda d: next(iter(d["arrays"].values())).update(shape=[7]),
        lambda d: next(iter(d["arrays"].values())).update(items=["x"]),
        lambda d: d["content"].update(type="os.system"),
        lambda d: d["content"].update(fields={}),
        lambda d: d.update(format="2"),
    ],
)
def test_a_damaged_object_in_json_is_refused(change: Any) -> None:
    document = files.to_plain(bw.bases.Radial([[0.0, 1.0]], width=0.5))
    change(document)
    with pytest.raises(bw.errors.FileError, match=r"here"):
        files.from_plain("here", document, bw.bases.Basis)
