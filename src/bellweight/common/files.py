"""Files that users exchange: written whole or not at all, read without executing anything.

A stored object is a tree of registered frozen dataclasses. The tree is kept as JSON text and its
arrays as plain arrays, all in one `.npz`; nothing is pickled, and only registered classes are made
on reading. What cannot be stored (a user's function) comes back as an `Unstored` note of its name
and digest.
"""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeAlias, TypeVar

import numpy as np
from scipy import sparse

from bellweight.common import identity, lazy
from bellweight.common.file_types import csr_fault, declared, fits
from bellweight.common.short import value_text
from bellweight.common.status import FileError, Status

FORMAT = 2
"""Version of the file layout; a reader refuses a newer one, and brings an older one up to date."""

UNSTORED = {"stored": False}
"""Metadata of a dataclass field that is left out of files."""


def stored_as(name: str) -> dict[str, str]:
    """Return the metadata of a dataclass field that has another name in files."""
    return {"stored_as": name}


_HEADER = "bellweight"
_KINDS = "biufU"  # of arrays: truth values, numbers and texts
_SCALARS: dict[str, Callable[[str], Any]] = {"status": Status.__getitem__, "number": float}
_Class = TypeVar("_Class", bound=type)
_classes: dict[str, type] = {}
_names: dict[type, str] = {}
_former_fields: dict[type, tuple[str, ...]] = {}


def storable(name: str, *, former: tuple[str, ...] = ()) -> Callable[[_Class], _Class]:
    """Register a dataclass so that files may contain it, under a name of its own.

    Files contain that name, so it never changes, even if the class is renamed. `former`
    are fields that the class no longer has; where older files hold them they are skipped.
    """

    def register(cls: _Class) -> _Class:
        assert name not in _classes, f"{name} is the name of {_classes[name]} in files"
        _classes[name], _names[cls], _former_fields[cls] = cls, name, former
        return cls

    return register


class _DamagedError(FileError):
    """Something is wrong inside a file; the caller adds the name of the file."""


DAMAGE = (
    FileError, ValueError, LookupError, TypeError, AttributeError, EOFError, ArithmeticError,
    MemoryError, RuntimeError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What reading a damaged file, or a JSON document of another shape, may raise."""


class Saved:
    """A registered class with methods that save it to an `.npz` file and read it back."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to an `.npz` file, whole or not at all."""
        save(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        found: Self = load(path, cls)
        return found


class Checked(ABC):
    """A class that checks, once it is read from a file, whether its parts fit together."""

    @abstractmethod
    def stored_fault(self) -> str:
        """Return what does not fit, or no text."""


class Changed(ABC):
    """A class whose fields an earlier version of Bellweight stored differently."""

    @classmethod
    @abstractmethod
    def from_format_1(cls, stored: dict[str, Any]) -> dict[str, Any]:
        """Return the fields as they are stored now, from those of a file of format 1."""


Unstored: TypeAlias = identity.Unstored
storable("Unstored")(Unstored)


def path_of(path: str | os.PathLike[str]) -> Path:
    """Return a path, or complain about what is none."""
    try:
        return Path(path)
    except TypeError:
        raise FileError(f"path is {value_text(path)}, expected the name of a file") from None


def check_target(path: str | os.PathLike[str]) -> Path:
    """Raise an error now, before the work begins, if a file could not be written after it."""
    target = path_of(path)
    folder = target.parent
    if target.is_dir():
        raise FileError(f"cannot write {target}: it is a folder, expected a file name")
    if not folder.is_dir():
        raise FileError(f"cannot write {target}: the folder {folder} does not exist: make it")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileError(f"cannot write {target}: no permission to write in {folder}")
    return target


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a text whole or not at all."""
    return write_parts(path, [text])


def write_parts(path: str | os.PathLike[str], parts: Iterable[str]) -> Path:
    """Write a text whole or not at all, one part after the other."""
    return write_whole(path, lambda stream: stream.writelines(part.encode() for part in parts))


def write_whole(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> Path:
    """Write a file through a temporary neighbour, so that `path` is complete or untouched."""
    target = path_of(path)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as problem:
        raise FileError(f"cannot write {target}: {problem.strerror}: check the folder") from None
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except OSError as problem:
        raise FileError(f"cannot write {target}: {problem.strerror or problem}") from None
    finally:
        temporary.unlink(missing_ok=True)
    return target


def write_json(path: str | os.PathLike[str], document: Any) -> Path:
    """Write a JSON document whole or not at all."""
    text = json.dumps(document, indent=2, allow_nan=True) + "\n"
    return write_text(path, text)


def save(path: str | os.PathLike[str], thing: Any) -> Path:
    """Store a registered object in an `.npz` file."""
    arrays: dict[str, Any] = {}
    tree = _encode(thing, arrays)
    arrays[_HEADER] = np.array(json.dumps({"format": FORMAT, "content": tree}))
    return write_whole(path, lambda stream: np.savez_compressed(stream, **arrays))


def load(path: str | os.PathLike[str], *kinds: type) -> Any:
    """Read back an object of one of these classes, or say why the file does not hold one."""
    source = path_of(path)
    try:
        if source.is_file() and not zipfile.is_zipfile(source):
            raise FileError(f"{source} is damaged or not a Bellweight file: save it again")
        with np.load(source, allow_pickle=False) as archive:
            if _HEADER not in archive:
                raise FileError(
                    f"{source} is not a Bellweight file: it was saved by something else"
                )
            return _read(source, json.loads(str(archive[_HEADER])), archive, kinds)
    except FileNotFoundError:
        raise FileError(f"{source} does not exist: check the path") from None
    except FileError as problem:
        raise _unreadable(source, problem) from None
    except OSError as problem:
        raise FileError(f"cannot read {source}: {problem.strerror or problem}") from None
    except DAMAGE as problem:
        raise _unreadable(source, problem) from None


def to_plain(thing: Any) -> dict[str, Any]:
    """Return a registered object as words, numbers, lists and names, for a JSON document."""
    arrays: dict[str, Any] = {}
    tree = _encode(thing, arrays)
    lists = {
        name: {"type": array.dtype.str, "shape": list(array.shape), "items": array.ravel().tolist()}
        for name, array in arrays.items()
    }
    document = {"format": FORMAT, "content": tree, "arrays": lists}
    # JSON has no word for numbers that are not finite.
    found: dict[str, Any] = json.loads(json.dumps(document), parse_constant=_named_number)
    return found


def _named_number(name: str) -> dict[str, str]:
    return {"number": name}


def from_plain(where: str, document: dict[str, Any], *kinds: type) -> Any:
    """Read what `to_plain` returned; errors say where it stands."""
    try:
        arrays = {name: _listed(entry) for name, entry in document["arrays"].items()}
        return _read(where, document, arrays, kinds)
    except DAMAGE as problem:
        raise _unreadable(where, problem) from None


def is_whole(document: dict[str, Any]) -> bool:
    """Return whether nothing was left out of what `to_plain` returned."""
    return not _left_out(document["content"])


def _left_out(node: Any) -> bool:
    if isinstance(node, list):
        return any(map(_left_out, node))
    if not isinstance(node, dict):
        return False
    return node.get("type") == _names[Unstored] or any(map(_left_out, node.values()))


def _listed(entry: dict[str, Any]) -> np.ndarray[Any, Any]:
    kind = np.dtype(entry["type"])
    if kind.kind not in _KINDS:
        raise _DamagedError(f"an array has the type {kind}")
    items = [_decode(item, {}, FORMAT) for item in entry["items"]]
    return np.array(items, dtype=kind).reshape(entry["shape"])


def _read(source: Path | str, header: dict[str, Any], archive: Any, kinds: tuple[type, ...]) -> Any:
    _check_header(source, header, kinds)
    found = _decode(header["content"], archive, header["format"])
    missing = found.stored_fault() if isinstance(found, Checked) else ""
    if missing:
        raise _DamagedError(missing)
    return found


def _unreadable(source: Path | str, problem: Exception) -> FileError:
    if isinstance(problem, FileError) and not isinstance(problem, _DamagedError):
        return problem
    return FileError(f"{source} is damaged or not a Bellweight file ({problem}): save it again")


def _check_header(source: Path | str, header: dict[str, Any], kinds: tuple[type, ...]) -> None:
    version = header["format"]
    if not fits(version, int) or version < 1:
        raise _DamagedError("its format is no number from 1 on")
    if version > FORMAT:
        raise FileError(
            f"{source} has file format {version}, this version reads up to {FORMAT}: "
            "update Bellweight"
        )
    name = header["content"].get("type")
    found = _class_of(name)
    if found is None or not issubclass(found, kinds):
        held = name if found is None else found.__name__
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise FileError(f"{source} holds a {held}, expected a {wanted}: pick another file")


def _encode(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Status):
        return {"status": value.name}
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in _KINDS:
            raise FileError(f"an array of type {value.dtype} cannot be stored: convert it first")
        name = f"array{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if sparse.issparse(value):
        parts = [value.data, value.indices, value.indptr]
        return {"csr": [_encode(part, arrays) for part in parts], "shape": list(value.shape)}
    if isinstance(value, tuple | list):
        return {"tuple": [_encode(item, arrays) for item in value]}
    if isinstance(value, dict):
        return {"dict": {str(key): _encode(item, arrays) for key, item in value.items()}}
    if type(value) in _names:
        stored = [f for f in dataclasses.fields(value) if f.metadata.get("stored", True) and f.init]
        fields = {_stored_name(f): _encode(getattr(value, f.name), arrays) for f in stored}
        return {"type": _names[type(value)], "fields": fields}
    return _encode(Unstored(_describe(value), identity.digest(value)), arrays)


def _decode(node: Any, archive: Any, version: int) -> Any:
    if not isinstance(node, dict):
        return node
    for word, read in _SCALARS.items():
        if word in node:
            return read(node[word])
    if "array" in node:
        array = archive[node["array"]]
        array.setflags(write=False)
        return array
    if "csr" in node:
        data, indices, indptr = (_decode(part, archive, version) for part in node["csr"])
        wrong = csr_fault(data, indices, indptr, node["shape"])
        if wrong:
            raise _DamagedError(wrong)
        return sparse.csr_array((data, indices, indptr), shape=tuple(node["shape"]))
    if "tuple" in node:
        return tuple(_decode(item, archive, version) for item in node["tuple"])
    if "dict" in node:
        return {key: _decode(item, archive, version) for key, item in node["dict"].items()}
    return _made(node, archive, version)


def _made(node: dict[str, Any], archive: Any, version: int) -> Any:
    """Return an object of a registered class, whose fields have the types that they should."""
    cls = _class_of(node["type"])
    if cls is None:
        raise _DamagedError(f"{node['type']} is unknown")
    stored = {name: _decode(item, archive, version) for name, item in node["fields"].items()}
    if version < FORMAT and issubclass(cls, Changed):
        stored = cls.from_format_1(stored)
    names = {_stored_name(f): f.name for f in dataclasses.fields(cls)}
    known = {name: value for name, value in stored.items() if name not in _former_fields[cls]}
    unknown = [name for name in known if name not in names]
    if unknown:
        raise _DamagedError(f"{unknown[0]} is no part of {node['type']} in this version")
    values = {names[name]: value for name, value in known.items()}
    for name, value in values.items():
        # An `Unstored` note may stand for a value of any type.
        if not isinstance(value, Unstored) and not fits(value, declared(cls).get(name, Any)):
            raise _DamagedError(f"{name} of {node['type']} has another type than it should have")
    return cls(**values)


def _class_of(name: str) -> type | None:
    """Return the class of a name in files; its module may not have been imported yet."""
    if name not in _classes:
        lazy.load_all()
    return _classes.get(name)


def _stored_name(field: dataclasses.Field[Any]) -> str:
    name: str = field.metadata.get("stored_as", field.name)
    return name


def _describe(value: Any) -> str:
    return getattr(value, "__qualname__", None) or repr(value)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
