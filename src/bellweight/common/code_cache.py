"""Folders for compiled code, used only if nobody else could have put code there.

Numba keeps compiled code as files that are executed when they are read. So a folder is used only if
it is a real folder of this user's own, to which nobody else can write, neither directly nor through
the folders above it, and in which nobody else has left anything. Compiled models go to the folder
that `BELLWEIGHT_CACHE` names, or to `bellweight` in the user's cache folder; where that cannot be
made or written, to one of the user's own among the temporary files; and where a folder cannot be
trusted, to a new one that ends with the process, with a warning. The folder that `NUMBA_CACHE_DIR`
names must meet the same conditions.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

from bellweight.common import files
from bellweight.common.status import BellweightWarning

_HAS_OWNERS = hasattr(os, "getuid")
_PRIVATE = 0o700

_chosen: dict[tuple[Path | None, Path], Path] = {}


def cache_folder() -> Path:
    """Return the folder for compiled models, made if need be."""
    wanted, spare = _wanted(), Path(tempfile.gettempdir()) / f"bellweight-{_user()}"
    known = _chosen.get((wanted, spare))
    if known is None or not known.is_dir():
        known = _chosen[wanted, spare] = _trusted([wanted, spare], "BELLWEIGHT_CACHE")
        # Numba's own files get the permissions of the umask, so their folder is closed.
        (known / "__pycache__").mkdir(mode=_PRIVATE, exist_ok=True)
    return known


def keep(path: Path, text: str) -> None:
    """Write a text into a folder for compiled code, for this user alone."""
    files.write_text(path, text)
    path.chmod(0o600)


def guard_numba() -> None:
    """Point Numba elsewhere if the folder that its environment variable names is not safe."""
    from numba.core import config

    named = config.CACHE_DIR  # type: ignore[attr-defined]
    if not named:
        return
    folder = str(_trusted([Path(named).absolute()], "NUMBA_CACHE_DIR"))
    if folder != str(Path(named).absolute()):
        # Numba reads the variable again when others of its variables change.
        os.environ["NUMBA_CACHE_DIR"] = folder
        config.CACHE_DIR = folder  # type: ignore[attr-defined]


def distrust(folder: Path) -> str | None:
    """Return why code in a folder might be somebody else's, or None."""
    if not _HAS_OWNERS:
        return None
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return f"{folder} is a link or a file, expected a folder"
    if status.st_uid != _user():
        return f"{folder} belongs to user {status.st_uid}, not to you"
    if _others_write(status):
        return f"others can write to {folder}"
    return next(_suspicious_above(folder), None) or next(_suspicious_inside(folder), None)


def _wanted() -> Path | None:
    named = os.environ.get("BELLWEIGHT_CACHE")
    if named:
        return Path(named).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache").absolute() / "bellweight"
    except RuntimeError:  # a user without a home
        return None


def _trusted(folders: list[Path | None], variable: str) -> Path:
    """Return the first folder that can be written and trusted, or a new one for this process."""
    reasons = []
    for folder in folders:
        if folder is None or not _made(folder):
            continue
        reason = distrust(folder)
        if reason is None:
            return folder
        reasons.append(reason)
    private = Path(tempfile.mkdtemp(prefix="bellweight-"))
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    if reasons:
        warnings.warn(
            f"compiled code is kept for this process only, because {'; '.join(reasons)}: take away "
            f"the others' permission and what they left there, or name another folder with "
            f"{variable}",
            BellweightWarning,
            stacklevel=2,
        )
    return private


def _made(folder: Path) -> bool:
    """Make a folder that only this user can enter, unless it is there; return if it is usable."""
    try:
        # What stands above must be as safe, whatever the umask.
        for part in [*reversed(folder.parents), folder]:
            if not os.path.lexists(part):
                part.mkdir(mode=_PRIVATE, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _suspicious_above(folder: Path) -> Iterator[str]:
    """Yield the folders above, by name and behind links, that others could replace."""
    # Whoever owns the root owns everything; it need not be user 0 inside a container.
    trusted = {0, _user(), Path("/").stat().st_uid}
    for above in {**dict.fromkeys(folder.parents), **dict.fromkeys(folder.resolve().parents)}:
        status = above.lstat()
        if status.st_uid not in trusted:
            yield f"{above} belongs to user {status.st_uid}"
        sticky = bool(status.st_mode & stat.S_ISVTX)
        if _others_write(status) and not sticky and not stat.S_ISLNK(status.st_mode):
            yield f"others can write to {above}"


def _suspicious_inside(folder: Path, *, enters: bool = True) -> Iterator[str]:
    """Yield what others may have written into a folder, if they can enter it."""
    # Where others cannot enter, permissions below do not matter, but owners do.
    enters = enters and bool(folder.lstat().st_mode & (stat.S_IXGRP | stat.S_IXOTH))
    for place in sorted(folder.iterdir()):
        try:
            status = place.lstat()
        except FileNotFoundError:  # another process of ours has just finished with it
            continue
        if status.st_uid not in (0, _user()):
            yield f"{place} belongs to user {status.st_uid}"
        elif stat.S_ISLNK(status.st_mode):
            yield f"{place} is a link"
        elif enters and _others_write(status):
            yield f"others can write to {place}"
        elif stat.S_ISDIR(status.st_mode):
            yield from _suspicious_inside(place, enters=enters)


def _others_write(status: os.stat_result) -> bool:
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and not _is_private_group(status.st_gid)


def _is_private_group(group: int) -> bool:
    """Return whether a group is this user's alone, as many systems give every user one."""
    import grp
    import pwd

    try:
        user, found = pwd.getpwuid(os.getuid()), grp.getgrgid(group)
    except KeyError:
        return False
    members = set(found.gr_mem) - {user.pw_name}
    return group == user.pw_gid and found.gr_name == user.pw_name and not members


def _user() -> int:
    return os.getuid() if _HAS_OWNERS else 0
