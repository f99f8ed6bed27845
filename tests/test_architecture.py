"""The one-way rule and other promises about the source, checked on the source itself."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest

import bellweight as bw
from bellweight.models import kernels

SOURCE = Path(bw.__file__).parent

# A room imports only rooms above it. What would point the other way is passed in.
ROOMS = [
    "common",
    "errors",
    "display",
    "models",
    "basis",
    "bases",
    "program",
    "policies",
    "simulation",
    "exact",
    "backends",
    "evaluation",
    "weights",
    "results",
    "solve",
    "plans",
    "certificates",
    "analysis",
    "interchange",
    "problems",
    "report",
    "reproduce",
    "testing",
    "cli",
    "__main__",
]

FILES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def room_of(path: Path) -> str:
    """The room that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_modules(tree: ast.AST) -> Iterator[str]:
    """Full names of everything imported anywhere in a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where a name comes from"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_rooms(path: Path) -> set[str]:
    """The rooms that a file imports."""
    names = imported_modules(parsed(path))
    found = (name.split(".")[1] for name in names if name.startswith("bellweight."))
    return {part for part in found if part in ROOMS or (SOURCE / part).exists()}


def test_every_file_is_in_a_room() -> None:
    rooms = {room_of(path) for path in FILES}
    assert rooms == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_is_for(room: str) -> None:
    folder = SOURCE / room
    if not folder.is_dir():
        assert ast.get_docstring(parsed(SOURCE / f"{room}.py"))
        return
    said = ast.get_docstring(parsed(folder / "__init__.py"))
    assert said is not None
    assert len(said.splitlines()) >= 3, "what the room does, and what may live there"


def test_the_face_is_small_and_shows_no_stray_modules() -> None:
    assert len(bw.__all__) <= 60
    assert dir(bw) == sorted([*bw.__all__, "__version__"])
    modules = {name for name in bw.__all__ if inspect.ismodule(getattr(bw, name))}
    assert modules <= set(ROOMS)


@pytest.mark.parametrize("name", [name for name in ROOMS if name in bw.__all__])
def test_a_public_room_names_what_is_public_in_it(name: str) -> None:
    room = getattr(bw, name)
    if inspect.ismodule(room):
        assert room.__name__ == f"bellweight.{name}"
        assert all(hasattr(room, each) for each in room.__all__)


def test_what_is_at_the_top_is_in_its_room_too() -> None:
    rooms = [thing for name in bw.__all__ if inspect.ismodule(thing := getattr(bw, name))]
    for name in bw.__all__:
        thing = getattr(bw, name)
        if name not in {"solve", "report", "sample_states", "Simulation", "Status"}:
            homes = [r for r in rooms if getattr(r, name, None) is thing]
            assert homes or inspect.ismodule(thing), name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_imports_only_rooms_above_it(path: Path) -> None:
    room = room_of(path)
    above = set(ROOMS[: ROOMS.index(room)])
    below = imported_rooms(path) - above - {room}
    assert not below, f"{path.name} must not import {sorted(below)}: pass it in instead"


def test_the_rule_notices_every_form_of_import(tmp_path: Path) -> None:
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    first.write_text(
        "def f():\n    from bellweight.solve import solve\n    return solve\n", encoding="utf-8"
    )
    assert imported_rooms(first) == {"solve"}
    second.write_text(
        "import bellweight.program.all_rows\nfrom bellweight import report\n"
        "from bellweight.common import checks\n",
        encoding="utf-8",
    )
    assert imported_rooms(second) == {"program", "report", "common"}


@pytest.mark.parametrize("folder", sorted({p.parent for p in FILES} - {SOURCE}))
def test_files_of_a_folder_do_not_import_each_other_in_circles(folder: Path) -> None:
    prefix = f"bellweight.{folder.relative_to(SOURCE).as_posix().replace('/', '.')}."
    graph = {}
    for path in folder.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        # Only what runs on import can go round in circles.
        top = ast.Module([node for node in tree.body if not isinstance(node, ast.If)], [])
        for node in [n for n in ast.walk(top) if isinstance(n, ast.FunctionDef)]:
            node.body = [ast.Pass()]
        names = [name for name in imported_modules(top) if name.startswith(prefix)]
        if path.name != "__init__.py":
            graph[path.stem] = {name.removeprefix(prefix).split(".")[0] for name in names}
    graph = {name: used & set(graph) - {name} for name, used in graph.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(graph)


def test_contributing_lists_the_rooms_in_order_and_names_files_that_exist() -> None:
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text[text.index("| room |") : text.index("## The walk")]
    first_cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    listed = [name for cell in first_cells for name in re.findall(r"`(\w+)(?:/|\.py)`", cell)]
    # `errors.py`, `bases.py` and `__main__.py` only give other rooms a short way.
    assert listed == [room for room in ROOMS if room not in ("errors", "bases", "__main__")]
    known = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py")}
    folder = ""
    guide = text[text.index("## The walk") : text.index("## Habits")]
    for name in re.findall(r"`([\w/]+\.py)`", guide):
        folder, _, file = name.rpartition("/") if "/" in name else (folder, "", name)
        found = {f"{folder}/{file}".lstrip("/"), name}
        assert found & known, f"CONTRIBUTING.md names {name}"


def importers_of(library: str) -> set[str]:
    return {
        str(path.relative_to(SOURCE))
        for path in [*FILES, SOURCE / "__init__.py"]
        if any(name.split(".")[0] == library for name in imported_modules(parsed(path)))
    }


def test_only_the_master_imports_the_solver() -> None:
    assert importers_of("highspy") == {"program/master.py", "program/integer_program.py"}


KINDS = {
    "TabularModel", "EventModel", "LinearModel", "TabularRows", "EventRows", "LinearRows",
    "ListedRows", "TabularSetup", "EventSetup", "LinearSetup", "TabularBackend", "EventBackend",
    "LinearBackend", "StepModel", "StepBackend", "FunctionModel", "FunctionSetup",
    "FunctionBackend", "FactoredModel", "FactoredBackend", "SampledSetup", "StreamedSetup",
    "LocalSetup", "StepSetup",
}  # fmt: skip
# The models' own files may ask for their kind; so may the backends.
OWN_FILES = (
    "models/", "backends/", "exact/", "program/priced_rows.py", "program/local_rows.py",
)  # fmt: skip
ASKING = {
    "certificates/certifying.py": 3,  # what is proven differs in kind, not in degree
    "certificates/verification.py": 3,  # the verifier keeps apart from the backends
    "interchange/assembly.py": 1,  # other packages list their states
    "cli/commands.py": 2,  # whether states can be listed, and on which grid
    "results/result.py": 1,  # a basis that is put back may have to see the states
}


def names_a_kind(node: ast.AST) -> bool:
    """Whether an expression is a kind, by name or as a text, or a few of them together."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(map(names_a_kind, node.elts))
    if isinstance(node, ast.BinOp):
        return names_a_kind(node.left) or names_a_kind(node.right)
    name = getattr(node, "id", getattr(node, "attr", getattr(node, "value", None)))
    return isinstance(name, str) and name in KINDS


def asks_for_a_kind(node: ast.AST) -> bool:
    """Whether an expression asks what kind of model, rows or backend it has."""
    if isinstance(node, ast.Compare):  # type(model) is LinearModel, and its name as a text
        return any(map(names_a_kind, [node.left, *node.comparators]))
    if isinstance(node, ast.MatchClass):
        return names_a_kind(node.cls)
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    if called in ("isinstance", "issubclass"):
        return any(map(names_a_kind, node.args[1:]))
    # What only some kinds have: hasattr(model, ...), or getattr with an answer for the others.
    of_a_model = bool(node.args) and ast.unparse(node.args[0]).split(".")[-1] == "model"
    return of_a_model and (called == "hasattr" or (called == "getattr" and len(node.args) == 3))


def kind_checks(tree: ast.AST) -> int:
    """How often code asks what kind of model, rows or backend it has."""
    return sum(map(asks_for_a_kind, ast.walk(tree)))


def test_few_places_ask_for_the_kind_of_a_model() -> None:
    places = {str(path.relative_to(SOURCE)): kind_checks(parsed(path)) for path in FILES}
    asking = {name: n for name, n in places.items() if n > 0 and not name.startswith(OWN_FILES)}
    assert asking == ASKING
    assert sum(ASKING.values()) <= 10


@pytest.mark.parametrize(
    "asking",
    [
        "isinstance(model, LinearModel)",
        "isinstance(model, bw.models.EventModel | StepModel)",
        "issubclass(kind, (int, TabularModel))",
        "type(model) is LinearModel",
        "type(model) in (EventModel, StepModel)",
        "type(self.model).__name__ == 'EventModel'",
        "hasattr(settings.model, 'jumps')",
        "getattr(model, 'structure', None) is None",
        "match model:\n    case TabularModel():\n        pass",
    ],
)
def test_the_count_notices_every_way_to_ask(asking: str) -> None:
    assert kind_checks(ast.parse(asking)) == 1


def test_the_count_leaves_other_questions_alone() -> None:
    for other in (
        "isinstance(basis, Basis)",
        "getattr(field, name)",
        "cast('EventModel', model)",
        "TabularModel.load(path).digest != model.digest",
    ):
        assert kind_checks(ast.parse(other)) == 0


def test_no_file_uses_what_is_private_to_another() -> None:
    python = {"_replace", "_fields", "_lru_cache_wrapper"}  # public in spite of their names
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        names = [name.split(".")[-1] for name in imported_modules(parsed(path))]
        assert not [name for name in names if re.match(r"_[a-z]", name)], path
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr):
                own = re.search(rf"(self\.|cls\.|def |^ +){node.attr}\b", text, re.MULTILINE)
                assert own or node.attr in python, f"{path.name}: {ast.unparse(node)}"


def test_only_the_command_line_knows_its_options() -> None:
    """Messages of the library name arguments; the commands that the demo suggests are commands."""
    for path in FILES:
        if room_of(path) == "cli" or path.parent.name == "demo":
            continue
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str):
                text = ast.unparse(node)
                assert not re.search(r"(^f?.|\s)--[a-z{]", text), f"{path.name}: {text}"


# Numbers that tune one algorithm of these stand at the top of its file; compiled loops are joined
# with the user's code, and pages only show numbers.
OWN_TOLERANCES = (
    "common/tolerances.py",
    "program/",
    "exact/",
    "models/kernels/",
    "report/",
    "cli/",
)
TINY = {
    "certificates/certifying.py": 3,  # shares to try one after the other
    "plans/search.py": 1,  # seconds of an episode, to divide by
}


def tiny_numbers(path: Path) -> int:
    """How many numbers that look like tolerances a file has, but for the users' `tol` arguments."""
    tree = parsed(path)
    users = {
        id(default)
        for node in ast.walk(tree)
        for default in (
            [node.value]
            if isinstance(node, ast.keyword | ast.AnnAssign)
            and "tol" in (getattr(node, "arg", ""), ast.unparse(getattr(node, "target", node)))
            else [*node.defaults, *node.kw_defaults]
            if isinstance(node, ast.arguments)
            else []
        )
    }
    return sum(
        isinstance(node, ast.Constant)
        and isinstance(node.value, float)
        and 1e-15 <= abs(node.value) <= 1e-6
        and id(node) not in users
        for node in ast.walk(tree)
    )


def test_tolerances_have_one_home() -> None:
    places = {str(path.relative_to(SOURCE)): tiny_numbers(path) for path in FILES}
    found = {name: n for name, n in places.items() if n > 0 and not name.startswith(OWN_TOLERANCES)}
    assert found == TINY


def test_no_file_imports_pickle() -> None:
    for library in ("pickle", "cloudpickle", "dill", "shelve", "marshal"):
        assert importers_of(library) == set()


def test_the_core_does_not_draw() -> None:
    for library in ("matplotlib", "plotly", "typer", "rich"):
        found = {name.split("/")[0] for name in importers_of(library)}
        # Sensitivity names the type of the figure it returns.
        assert found <= {"display", "report", "reproduce", "cli", "analysis"}


def test_randomness_is_never_global() -> None:
    for path in FILES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
                drawn = ast.unparse(node.value) in ("np.random", "numpy.random")
                allowed = node.attr in ("Generator", "SeedSequence", "default_rng")
                assert not drawn or allowed, f"{path.name}: {ast.unparse(node)}"
    assert importers_of("random") == set()


def test_texts_are_utf_8_whatever_the_locale() -> None:
    """Also in tests, examples, benchmarks and studies; bytes have no encoding."""
    folders = [
        SOURCE,
        *(SOURCE.parents[1] / name for name in ("tests", "examples", "benchmarks", "studies")),
    ]
    found = []
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.Call):
                continue
            given = {word.arg for word in node.keywords}
            called = ast.unparse(node.func)
            # `files.write_text` is our own, which writes UTF-8.
            file = called.endswith((".read_text", ".write_text")) and called != "files.write_text"
            pipe = called.startswith("subprocess.") and "text" in given
            if (file or pipe or called == "open") and "encoding" not in given:
                found.append(f"{path.name}:{node.lineno}: {called}")
    assert found == []


def test_all_names_exist_and_none_is_forgotten() -> None:
    assert len(set(bw.__all__)) == len(bw.__all__)
    for name in bw.__all__:
        assert getattr(bw, name) is not None
    body = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8")).body
    checked = next(node for node in body if isinstance(node, ast.If))
    assert ast.unparse(checked.test) == "TYPE_CHECKING"
    imported = {
        alias.asname or alias.name
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == set(bw.__all__)


def test_parts_of_the_compiled_loops_use_only_parts_before_them() -> None:
    folder = SOURCE / "models" / "kernels"
    library = {
        "closest",
        "features",
        "layouts",
        "many_features",
        "noise_draws",
        "records",
        "tables",
    }
    of_a_step = {name for own in kernels.OWN_PARTS.values() for name in own}
    for kind, own in kernels.OWN_PARTS.items():
        known = {"user_functions", *library}
        for part in kernels.parts(kind):
            names = imported_modules(parsed(folder / f"{part}.py"))
            used = {name.split(".")[3] for name in names if ".models.kernels." in name}
            # What happens in a step stands in for that of every kind.
            used = {kind if name in of_a_step - set(own) else name for name in used}
            assert used <= known, f"{part} uses {sorted(used - known)}, which are joined after it"
            known.add(part)
    for part in library:
        names = imported_modules(parsed(folder / f"{part}.py"))
        assert {n.split(".")[3] for n in names if ".models.kernels." in n} <= library
    found = {path.stem for path in folder.glob("*.py")}
    assert found == {
        "__init__",
        "user_functions",
        *library,
        *of_a_step,
        *kernels.parts("events"),
    }


def modules() -> Iterator[ModuleType]:
    for info in pkgutil.walk_packages([str(SOURCE)], "bellweight."):
        if ".models.kernels." not in info.name:  # parts of a template, not modules of functions
            yield importlib.import_module(info.name)


def test_modules_and_public_functions_have_docstrings() -> None:
    for module in modules():
        assert module.__doc__, module.__name__
        for name, thing in vars(module).items():
            if name.startswith("_") or getattr(thing, "__module__", "") != module.__name__:
                continue
            if inspect.isfunction(thing) or inspect.isclass(thing):
                where = f"{module.__name__}.{name}"
                assert thing.__doc__, f"{where} has no docstring"
                # A dataclass without one is given its signature instead.
                assert not thing.__doc__.startswith(f"{name}("), f"{where} has no docstring"


def test_public_methods_have_docstrings_their_own_or_inherited() -> None:
    for name in bw.__all__:
        thing = getattr(bw, name)
        if not inspect.isclass(thing):
            continue
        for method, function in vars(thing).items():
            if method.startswith("_") or not callable(getattr(thing, method, None)):
                continue
            if inspect.isfunction(function) or isinstance(function, classmethod):
                assert inspect.getdoc(getattr(thing, method)), f"{name}.{method} has no docstring"


def test_every_error_is_a_bellweight_error() -> None:
    for path in FILES:
        tree = parsed(path)
        looked_up = {  # a mapping has to raise KeyError
            inner
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and node.name == "__getitem__"
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if node in looked_up:
                continue
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                raised = ast.unparse(node.exc.func)
                python = {"ValueError", "TypeError", "RuntimeError", "KeyError", "OSError"}
                assert raised not in python, f"{path.name} raises a bare {raised}"
