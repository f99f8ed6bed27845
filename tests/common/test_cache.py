"""Compiled code is kept where nobody else can put any, and found there."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import stat
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest

import bellweight as bw
from bellweight.common import code_cache
from bellweight.models.compile import Source

STRANGER = 54_321
NOT_KEPT = "compiled code is kept for this process only"


@pytest.fixture
def spare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder among the temporary files, for a user whose own cache folder cannot be made."""
    blocked = tmp_path / "file"
    blocked.write_text("not a folder", encoding="utf-8")
    monkeypatch.setenv("BELLWEIGHT_CACHE", str(blocked / "cache"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path / "tmp" / f"bellweight-{os.getuid()}"


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the environment names."""
    monkeypatch.setenv("BELLWEIGHT_CACHE", str(tmp_path / "named"))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o777)  # so that the second choice is no good either
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path / "named"


def owned_by(stranger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a place look as if it belonged to another user, which only root could arrange."""
    look = Path.lstat

    def lstat(self: Path) -> os.stat_result:
        found = look(self)
        if self == stranger:
            return os.stat_result([*found[:4], STRANGER, *found[5:]])
        return found

    monkeypatch.setattr(Path, "lstat", lstat)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def refused(folder: Path, reason: str) -> None:
    """Check that a folder is not used, that it is said why, and said once."""
    with pytest.warns(bw.errors.BellweightWarning, match=NOT_KEPT) as heard:
        instead = code_cache.cache_folder()
    assert reason in str(heard[0].message)
    assert instead != folder
    assert mode(instead) == 0o700
    assert not [entry for entry in instead.iterdir() if entry.name != "__pycache__"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert code_cache.cache_folder() == instead


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_new_folder_is_for_its_user_alone(umask: int, spare: Path) -> None:
    before = os.umask(umask)
    try:
        assert code_cache.cache_folder() == spare
        code_cache.keep(spare / "model_a.py", "a = 1\n")
    finally:
        os.umask(before)
    assert mode(spare) == mode(spare / "__pycache__") == 0o700
    assert mode(spare / "model_a.py") == 0o600
    assert code_cache.distrust(spare) is None


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_folders_above_a_new_one_are_closed_too(
    umask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BELLWEIGHT_CACHE", str(tmp_path / "a" / "b" / "c"))
    before = os.umask(umask)
    try:
        assert code_cache.cache_folder() == tmp_path / "a" / "b" / "c"
    finally:
        os.umask(before)
    assert [mode(tmp_path / "a"), mode(tmp_path / "a" / "b")] == [0o700, 0o700]


def test_a_planted_folder_among_the_temporary_files_is_refused(spare: Path) -> None:
    spare.mkdir()
    spare.chmod(0o777)
    (spare / "model_a.py").write_text("raise SystemExit('planted')\n", encoding="utf-8")
    refused(spare, f"others can write to {spare}")


def test_a_link_is_refused(spare: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    spare.symlink_to(tmp_path / "elsewhere")
    refused(spare, "is a link or a file")


def test_a_file_in_its_place_is_refused(spare: Path) -> None:
    spare.write_text("", encoding="utf-8")
    spare.chmod(0o700)
    refused(spare, "is a link or a file")


def test_a_folder_of_another_user_is_refused(spare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spare.mkdir(mode=0o700)
    owned_by(spare, monkeypatch)
    refused(spare, f"belongs to user {STRANGER}")


def test_the_folder_of_the_environment_is_held_to_the_same(
    named: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named.mkdir()
    named.chmod(0o775)
    monkeypatch.setattr(code_cache, "_is_private_group", lambda group: False)
    refused(named, f"others can write to {named}")


def test_a_group_that_is_the_users_own_is_no_danger(
    named: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named.mkdir()
    named.chmod(0o775)
    monkeypatch.setattr(code_cache, "_is_private_group", lambda group: True)
    assert code_cache.cache_folder() == named


def test_a_folder_above_that_others_can_write_to_is_refused(
    tmp_path: Path, named: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    above = tmp_path / "open"
    above.mkdir()
    above.chmod(0o777)
    monkeypatch.setenv("BELLWEIGHT_CACHE", str(above / "cache"))
    refused(above / "cache", f"others can write to {above}")
    above.chmod(0o1777)  # sticky: others cannot exchange what is not theirs
    monkeypatch.setenv("BELLWEIGHT_CACHE", str(above / "another"))
    assert code_cache.cache_folder() == above / "another"


def test_a_folder_above_of_another_user_is_refused(
    tmp_path: Path, named: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs").mkdir()
    monkeypatch.setenv("BELLWEIGHT_CACHE", str(tmp_path / "theirs" / "cache"))
    owned_by(tmp_path / "theirs", monkeypatch)
    refused(tmp_path / "theirs" / "cache", f"theirs belongs to user {STRANGER}")


@pytest.mark.parametrize("where", [".", "__pycache__"])
@pytest.mark.parametrize("how", ["writable", "link", "owner"])
def test_what_others_left_inside_is_refused(
    where: str, how: str, named: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (named / "__pycache__").mkdir(parents=True)
    for folder in (named, named / "__pycache__"):
        folder.chmod(0o755)
    planted = named / where / "planted.nbi"
    if how == "link":
        planted.symlink_to("/dev/null")
    else:
        planted.write_text("", encoding="utf-8")
        planted.chmod(0o666 if how == "writable" else 0o600)
    if how == "owner":
        owned_by(planted, monkeypatch)
    refused(named, {"writable": "others can write", "link": "is a link"}.get(how, "belongs to"))


def test_a_folder_as_earlier_versions_made_it_is_still_used(named: Path) -> None:
    (named / "__pycache__").mkdir(parents=True)
    for folder in (named, named / "__pycache__"):
        folder.chmod(0o755)
    (named / "model_a.py").write_text("", encoding="utf-8")
    (named / "model_a.py").chmod(0o644)
    assert code_cache.cache_folder() == named


def test_a_folder_that_is_removed_meanwhile_is_made_again(named: Path) -> None:
    folder = code_cache.cache_folder()
    (folder / "__pycache__").rmdir()
    folder.rmdir()
    assert code_cache.cache_folder() == folder
    assert folder.is_dir()


def test_a_user_without_a_home(spare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Any:
        raise RuntimeError("could not determine home directory")

    monkeypatch.delenv("BELLWEIGHT_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    assert code_cache.cache_folder() == spare


def test_a_home_that_cannot_be_written(
    spare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BELLWEIGHT_CACHE")
    (tmp_path / "home" / "bellweight").mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    # Root may write everywhere, so the answer of the system is put in its place.
    allowed = os.access
    home = tmp_path / "home" / "bellweight"
    monkeypatch.setattr(os, "access", lambda path, how: path != home and allowed(path, how))
    assert code_cache.cache_folder() == spare


def test_what_runs_is_our_text_and_not_what_the_file_says(named: Path) -> None:
    source = Source("answer = 42\n")
    source.path.write_text("answer = 13\n", encoding="utf-8")
    # A file of bytecode that claims to belong to the right text.
    wrong = named / "wrong.py"
    wrong.write_text("answer = 66\n", encoding="utf-8")
    compiled = importlib.util.cache_from_source(str(source.path))
    py_compile.compile(
        str(wrong), cfile=compiled, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    assert not source.is_cached
    assert source.load().answer == 42
    assert source.path.read_text(encoding="utf-8") == source.text
    assert source.is_cached


def test_a_damaged_file_is_written_again(named: Path) -> None:
    source = Source("answer = 43\n")
    source.path.write_bytes(b"\xff\xfe\x00")
    assert not source.is_cached
    assert source.load().answer == 43


SHOW = """
import warnings
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    import bellweight
    bellweight.solve
import numba
print(numba.config.CACHE_DIR)
print([str(one.message) for one in heard if one.category is bellweight.errors.BellweightWarning])
"""


@pytest.mark.parametrize("permissions", [0o777, 0o700])
def test_the_folder_that_numba_is_told_of_is_held_to_the_same(
    permissions: int, tmp_path: Path
) -> None:
    folder = tmp_path / "numba"
    folder.mkdir()
    folder.chmod(permissions)
    ended = subprocess.run(
        [sys.executable, "-c", SHOW], env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    used, said = ended.stdout.splitlines()
    assert (used == str(folder)) == (permissions == 0o700)
    assert (NOT_KEPT in said) == (permissions == 0o777)
    assert list(folder.iterdir()) == [] or permissions == 0o700
