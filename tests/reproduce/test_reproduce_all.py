"""`bellweight reproduce all`: one folder, resumed, decided by the seed, and a page to show it."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cli_runs import failure

import bellweight as bw
from bellweight import reproduce
from bellweight.cli import exits
from bellweight.cli.main import run
from bellweight.display import Column, Table
from bellweight.problems import single_queue
from bellweight.reproduce import (
    Artefact,
    Reproduction,
    Settings,
    Wanted,
    everything,
    folder,
    index,
    runs,
    verdicts,
)
from bellweight.reproduce.clinic import table5
from bellweight.reproduce.clinic import tables_3_4 as clinic
from bellweight.reproduce.network import figure_convergence
from bellweight.reproduce.paper import CLINIC_TABLES
from bellweight.reproduce.queue import curves, table1
from bellweight.reproduce.queue import runs as queue_runs
from bellweight.reproduce.times import Time
from bellweight.reproduce.times import table as time_table
from bellweight.reproduce.verdicts import Compared, Verdict, Word

HOSTILE = "<script>alert('&\"')</script>"
NAMES = ["table1", "table2", "figure-queue"]


@dataclass(frozen=True)
class Stub(Reproduction):
    """A reproduction of one number."""

    complete: bool = True
    word: Word = Word.MATCHES

    @property
    def caption(self) -> str:
        return f"A picture: {HOSTILE}" if self.name.startswith("figure") else ""

    def document(self) -> dict[str, Any]:
        return {"word": self.word}

    def rows(self) -> Table:
        return Table(HOSTILE, (Column("n", "n"),), ({"n": self.settings.seed},))

    def tables(self) -> tuple[Table, ...]:
        return (Table(HOSTILE, (Column("n", HOSTILE),), ({"n": HOSTILE},), (HOSTILE,)),)

    def compared(self) -> tuple[Compared, ...]:
        reason = "" if self.word is Word.MATCHES else f"a reason {HOSTILE}"
        return (Compared(HOSTILE, "1", "2", Verdict(self.word, 1.0, reason)),)

    def times(self) -> tuple[Time, ...]:
        return (Time("solving", 2.0, 10.0),)

    def figure(self) -> Any:
        from bellweight.display.figures import convergence_figure

        return convergence_figure({"A": [2.0, 1.0]}) if self.caption else None


@dataclass
class Stubs:
    """Artefacts that count how often they are computed; one can be interrupted half-way."""

    words: dict[str, Word] = field(default_factory=dict)
    computed: list[str] = field(default_factory=list)
    interrupt: str = ""

    def find(self, name: str) -> Any:
        def steps(settings: Settings, tell: Callable[[str, float], None]) -> Iterator[Stub]:
            self.computed.append(name)
            # Known beforehand, as the caption depends on it.
            found = Stub(word=self.words.get(name, Word.MATCHES), settings=settings, name=name)
            tell("half", 0.5)
            yield replace(found, complete=False)
            if name == self.interrupt:
                raise KeyboardInterrupt
            yield found

        return Artefact(name, steps, full=Settings(50), quick=Settings(5), takes=("quick",))


@pytest.fixture
def stubs(monkeypatch: pytest.MonkeyPatch) -> Stubs:
    found = Stubs({"table2": Word.DIFFERS, "figure-queue": Word.NOT_REPRODUCED})
    monkeypatch.setattr(everything, "find", found.find)
    few = {name: reproduce.CONTENTS[name] for name in NAMES}
    for module in (everything, index):
        monkeypatch.setattr(module, "CONTENTS", few)
    return found


def words(place: Path, *more: str) -> list[str]:
    return ["reproduce", "all", "--out", str(place), *more]


# Resumption.


def test_everything_is_written_with_a_page(
    stubs: Stubs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "out"
    assert run([*words(out), "--json", str(tmp_path / "all.json")]) == exits.DONE
    assert stubs.computed == NAMES
    present = {path.name for path in out.iterdir()}
    expected = {f"{n}.{kind}" for n in NAMES for kind in ("json", "csv", "txt", "tex")}
    pictures = {"figure-queue.png", "figure-queue.pdf"}
    assert present == expected | pictures | {
        "index.html",
        "results.md",
        "timings.json",
        "verdicts.csv",
    }
    text = capsys.readouterr().out
    assert re.search(r"together\s+3\s+1\s+0\s+1\s+1\s", text)
    assert str(out / "index.html") in text
    document = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    assert document["verdicts"]["table2"]["differs"] == 1


def test_a_second_run_computes_nothing(
    stubs: Stubs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words(tmp_path)) == exits.DONE
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert run(words(tmp_path, "--jobs", "2")) == exits.DONE
    assert stubs.computed == NAMES
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first
    assert "not computed again: table1, table2, figure-queue" in capsys.readouterr().out


def test_what_was_cut_is_computed_again_and_nothing_else(
    stubs: Stubs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stubs.interrupt = "table2"
    assert run(words(tmp_path)) == exits.INTERRUPTED
    said = capsys.readouterr().err
    assert f"{tmp_path} holds table1, table2; the same command goes on" in said
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Not computed yet: table2, figure-queue." in page
    assert json.loads((tmp_path / "table2.json").read_text(encoding="utf-8"))["complete"] is False
    stubs.interrupt = ""
    assert run(words(tmp_path)) == exits.DONE
    assert stubs.computed == ["table1", "table2", "table2", "figure-queue"]
    assert "Not computed yet" not in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_a_missing_file_is_made_again(stubs: Stubs, tmp_path: Path) -> None:
    assert run(words(tmp_path)) == exits.DONE
    (tmp_path / "table2.csv").unlink()
    (tmp_path / "index.html").unlink()
    assert run(words(tmp_path)) == exits.DONE
    assert stubs.computed == [*NAMES, "table2"]
    assert (tmp_path / "table2.csv").is_file()
    assert (tmp_path / "index.html").is_file()


def test_the_default_folder_says_what_it_holds(
    stubs: Stubs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["reproduce", "all", "--quick"]) == exits.DONE
    assert run(["reproduce", "all"]) == exits.DONE
    assert {path.name for path in tmp_path.iterdir()} == {"reproduction", "reproduction-quick"}
    assert stubs.computed == NAMES * 2


def test_progress_names_the_part_and_the_share_of_the_whole(stubs: Stubs, tmp_path: Path) -> None:
    told: list[tuple[str, float]] = []
    steps = everything.plan(Wanted(folder=tmp_path))
    everything.run(steps, tmp_path, lambda text, share: told.append((text, share)))
    texts, shares = zip(*told, strict=True)
    assert texts[:3] == ("1 of 3: table1", "1 of 3: table1, half", "2 of 3: table2")
    assert list(shares) == sorted(shares)
    assert shares[0] == 0.0
    seconds = [reproduce.CONTENTS[name].seconds[1] for name in NAMES]
    assert shares[-1] == pytest.approx(1.0 - 0.5 * seconds[-1] / sum(seconds))


def test_every_artefact_has_its_words_and_an_expected_time() -> None:
    assert sum(entry.seconds[1] for entry in reproduce.CONTENTS.values()) < 3_600.0
    for name, entry in reproduce.CONTENTS.items():
        assert entry.title
        assert entry.about
        artefact = reproduce.find(name)
        assert artefact.name == name
        assert artefact.settings(Wanted(quick=True)).seed == 0


def test_half_a_result_is_not_taken_for_a_finished_row(
    small_queue: bw.TabularModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any, **options: Any) -> bw.Result:
        return replace(bw.solve(*arguments, **options), status=bw.Status.INTERRUPTED)

    assert len(list(queue_runs.policies(small_queue))) == 7
    monkeypatch.setattr(runs, "solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(queue_runs.policies(small_queue))
    with pytest.raises(KeyboardInterrupt):
        reproduce.find("table5").reproduce(Settings())
    model = bw.problems.scheduling("small")
    with pytest.raises(KeyboardInterrupt):
        clinic.Runs(model, Settings(2)).row("Fixed", bw.Fixed(), CLINIC_TABLES["table3"])


# Errors.


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (("--seed", "3"), "computed with seed 0, here seed is 3"),
        (("--quick",), "computed with episodes 50, here episodes is 5"),
    ],
)
def test_other_settings_are_refused_before_the_work(
    more: tuple[str, ...],
    complaint: str,
    stubs: Stubs,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(words(tmp_path)) == exits.DONE
    capsys.readouterr()
    before = (tmp_path / "table1.json").read_bytes()
    code, line = failure(words(tmp_path, *more), capsys)
    assert code == exits.BAD_INPUT
    assert complaint in line
    assert "name another folder" in line
    assert stubs.computed == NAMES
    assert (tmp_path / "table1.json").read_bytes() == before


def test_other_code_and_damaged_files_are_refused(
    stubs: Stubs,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(words(tmp_path)) == exits.DONE
    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr(folder, "code_version", lambda: "newer")
        assert "another version of Bellweight" in failure(words(tmp_path), capsys)[1]
    for text in ("{", "[]", '{"settings": 3}'):
        (tmp_path / "table2.json").write_text(text, encoding="utf-8")
        assert "table2.json is damaged: delete it" in failure(words(tmp_path), capsys)[1]
    assert stubs.computed == NAMES


@pytest.mark.parametrize("name", ["all", "table1", "figure-network"])
def test_a_folder_that_cannot_be_made_is_refused_before_the_work(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("mine", encoding="utf-8")
    monkeypatch.setattr(everything, "plan", None)
    monkeypatch.setattr(table1, "steps", None)
    target = str(blocked / "inside")
    code, line = failure(["reproduce", name, "--out", target], capsys)
    assert code == exits.BAD_INPUT
    assert "cannot make the folder" in line


def test_unknown_names_are_one_line_with_all_names(capsys: pytest.CaptureFixture[str]) -> None:
    code, line = failure(["reproduce", "everything"], capsys)
    assert code == exits.WRONG_USAGE
    for known in (*reproduce.CONTENTS, "all"):
        assert known in line


@pytest.mark.parametrize(("name", "meant"), [("table9", "table"), ("figure_queue", "figure-queue")])
def test_misspelt_names_are_told_what_was_meant(
    name: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = failure(["reproduce", name], capsys)
    assert code == exits.WRONG_USAGE
    assert f"did you mean {meant}" in line


@pytest.mark.parametrize("option", ["--exact", "--samples=2", "--states=9", "--episodes=9"])
def test_all_takes_no_options_of_single_artefacts(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = failure(words(tmp_path / "out", option), capsys)
    assert code == exits.WRONG_USAGE
    assert f"{option.split('=', maxsplit=1)[0]} does not go with all" in line
    assert not (tmp_path / "out").exists()


# The page.


def test_the_page_holds_every_artefact_and_counts_verdicts(stubs: Stubs, tmp_path: Path) -> None:
    everything.run(everything.plan(Wanted(folder=tmp_path, seed=4)), tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    for name in NAMES:
        assert f'<section id="{name}">' in page
        assert f'<a href="#{name}">{name}</a>' in page
        assert f'<a href="{name}.tex">' in page
    summary = page[page.index("<tbody>") : page.index("</tbody>")]
    rows = [re.sub(r"<[^>]+>", "|", row) for row in summary.split("</tr>") if row]
    cells = [[cell for cell in row.split("|") if cell.strip()] for row in rows]
    numbers = {row[0]: row[1:6] for row in cells}
    assert numbers == {
        "table1": ["1", "1", "0", "0", "0"],
        "table2": ["1", "0", "0", "1", "0"],
        "figure-queue": ["1", "0", "0", "0", "1"],
        "together": ["3", "1", "0", "1", "1"],
    }
    assert "seed 4" in page
    assert '<a href="figure-queue.pdf">' in page
    assert page.count('src="data:image/png;base64,') == 1
    # Nothing is fetched.
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)
    assert "5 times faster" in page
    assert "default-src &#x27;none&#x27;" in page


def test_text_from_outside_is_escaped(
    stubs: Stubs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = reproduce.Entry(HOSTILE, HOSTILE, "", (1.0, 1.0))
    monkeypatch.setattr(index, "CONTENTS", dict.fromkeys(NAMES, hostile))
    everything.run(everything.plan(Wanted(folder=tmp_path)), tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "alert('" not in page
    # Title, column, cell, note, caption, statement and reason, each in its place.
    assert page.count("&lt;script&gt;") > 6 * len(NAMES)
    assert "<script" not in (tmp_path / "figure-queue.tex").read_text(encoding="utf-8")


def test_every_section_is_headed_as_a_table_or_a_figure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On the page and in the Markdown, for every name that there is."""
    stubs = Stubs()
    monkeypatch.setattr(everything, "find", stubs.find)
    everything.run(everything.plan(Wanted(folder=tmp_path)), tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    headings = re.findall(r"<h2>(.*?): ", page)
    assert headings == [*(f"Table {number}" for number in range(1, 6)), *["Figure"] * 4]
    text = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert re.findall(r"^### (.*?): ", text, flags=re.MULTILINE) == headings


def test_verdicts_and_times_are_files_of_their_own(stubs: Stubs, tmp_path: Path) -> None:
    everything.run(everything.plan(Wanted(folder=tmp_path)), tmp_path)
    rows = list(
        csv.DictReader((tmp_path / "verdicts.csv").read_text(encoding="utf-8").splitlines())
    )
    assert [row["name"] for row in rows] == NAMES
    assert [row["verdict"] for row in rows] == ["matches", "differs", "not reproduced"]
    assert [bool(row["reason"]) for row in rows] == [False, True, True]
    times = json.loads((tmp_path / "timings.json").read_text(encoding="utf-8"))
    assert times["table1"]["times"] == [{"what": "solving", "seconds": 2.0, "paper_seconds": 10.0}]


def test_a_page_of_a_quick_run_says_what_is_not_judged(stubs: Stubs, tmp_path: Path) -> None:
    stubs.words["table2"] = Word.NOT_JUDGED
    everything.run(everything.plan(Wanted(folder=tmp_path)), tmp_path)
    shown = index.summary_table(index.documents(tmp_path))
    assert shown.rows[1]["not judged"] == 1
    assert "not judged" in [column.heading for column in shown.columns]


def test_a_document_of_an_older_version_is_an_error(stubs: Stubs, tmp_path: Path) -> None:
    (tmp_path / "table1.json").write_text(json.dumps({"settings": {"seed": 0}}), encoding="utf-8")
    with pytest.raises(bw.errors.FileError, match="another version"):
        index.documents(tmp_path)


def test_one_artefact_has_a_page_too_and_replaces_its_old_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "figure-network.json").write_text("of an older version", encoding="utf-8")
    one = ["reproduce", "figure-network", "--out", str(tmp_path)]
    assert run(one) == exits.DONE
    assert "figure-network.pdf, index.html" in capsys.readouterr().out
    assert '<section id="figure-network">' in (tmp_path / "index.html").read_text(encoding="utf-8")
    # What the page would have to show from elsewhere must be whole, before the work begins.
    (tmp_path / "table5.json").write_text("cut in the mid", encoding="utf-8")
    assert "table5.json is damaged" in failure(one, capsys)[1]


# The real thing, small: two folders, one with a single worker, are the same but for times.

REAL = [
    "table1", "table5", "figure-queue", "figure-occupancy", "figure-network",
    "figure-convergence",
]  # fmt: skip


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    places = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    few = {name: reproduce.CONTENTS[name] for name in REAL}
    convergence = figure_convergence.FigureSettings(episodes=20, states=200, iterations=3)
    smaller = ((table1, Settings(50)), (table5, Settings(20)), (figure_convergence, convergence))
    with pytest.MonkeyPatch.context() as patch:
        for module in (everything, index):
            patch.setattr(module, "CONTENTS", few)
        for queue in (table1, curves):
            patch.setattr(queue, "single_queue", partial(single_queue, capacity=300))
        for artefacts, quick in smaller:
            changed = tuple(replace(each, quick=quick) for each in artefacts.ARTEFACTS)
            patch.setattr(artefacts, "ARTEFACTS", changed)
        patch.setattr(table5, "DEGREES", (1,))
        patch.setattr(folder, "_PICTURES", ("png",))
        assert run(words(places[0], "--quick")) == exits.DONE
        assert run(words(places[1], "--quick", "--jobs", "1")) == exits.DONE
        yield places


@pytest.mark.slow
def test_two_runs_are_the_same_but_for_times(two_runs: tuple[Path, Path]) -> None:
    one, other = two_runs
    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in other.iterdir())
    for name in names:
        if Path(name).suffix in (".txt", ".csv", ".tex", ".png", ".pdf"):
            assert (one / name).read_bytes() == (other / name).read_bytes(), name
    for name in REAL:
        documents = [
            json.loads((place / f"{name}.json").read_text(encoding="utf-8")) for place in two_runs
        ]
        assert timeless(documents[0]) == timeless(documents[1])
        assert "times" in documents[0]


def timeless(value: Any) -> Any:
    """A document without what was measured with a clock."""
    if isinstance(value, dict):
        return {
            key: timeless(item)
            for key, item in value.items()
            if key != "times" and not re.fullmatch(r"(compile_)?seconds", key)
        }
    return [timeless(item) for item in value] if isinstance(value, list) else value


@pytest.mark.slow
def test_every_verdict_of_the_real_thing_is_one_of_the_words(two_runs: tuple[Path, Path]) -> None:
    found = index.documents(two_runs[0])
    rows = index.verdict_table(found).rows
    assert {row["verdict"] for row in rows} <= set(Word)
    assert all(bool(row["reason"]) == (row["verdict"] != "matches") for row in rows)
    numbers = {name: len(document["compared"]) for name, document in found.items()}
    assert numbers == {
        "table1": 21,
        "table5": 5,
        "figure-queue": 8,
        "figure-occupancy": 5,
        "figure-network": 4,
        "figure-convergence": 3,
    }
    # Only Table 2, whose own tests say so, needs more episodes than a quick run has.
    assert "not judged" not in {row["verdict"] for row in rows}


@pytest.mark.slow
def test_the_real_page_shows_every_table_and_picture(two_runs: tuple[Path, Path]) -> None:
    page = (two_runs[0] / "index.html").read_text(encoding="utf-8")
    assert page.count('src="data:image/png;base64,') == 4
    for text in ("391.23 ± 0.76", "29,001.42 ± 54.03", "not reproduced"):
        assert text in page
    assert re.findall(r'<section id="([\w-]+)">', page) == [*REAL, "times"]


# Verdicts and times.


def test_a_verdict_has_a_reason_unless_it_matches() -> None:
    for word in Word:
        if word is Word.MATCHES:
            assert Verdict(word).reason == ""
            with pytest.raises(AssertionError):
                Verdict(word, None, "because")
        else:
            assert Verdict(word, None, "because").reason == "because"
            with pytest.raises(AssertionError):
                Verdict(word)


def test_words_are_counted_and_reasons_numbered() -> None:
    given = [
        Verdict(Word.DIFFERS, 1.0, "second"),
        Verdict(Word.MATCHES),
        Verdict(Word.BETTER, 1.0, "first"),
        Verdict(Word.DIFFERS, 2.0, "second"),
    ]
    assert verdicts.count(v.word for v in given) == {
        "matches": 1,
        "better": 1,
        "differs": 2,
        "not reproduced": 0,
        "not judged": 0,
    }
    reasons = verdicts.reasons([*given, None])
    assert reasons == ["second", "first"]
    assert [verdicts.marked(v, reasons) for v in given] == [
        "differs [1]",
        "matches",
        "better [2]",
        "differs [1]",
    ]
    assert verdicts.marked(None, reasons) is None
    assert verdicts.numbered(reasons) == ("[1] second.", "[2] first.")


def test_statements_and_extents() -> None:
    assert verdicts.statement(True, "unused").word == "matches"
    assert verdicts.statement(False, "used").reason == "used"
    assert verdicts.table2_largest(193, (190, 205)).word == "matches"
    assert verdicts.table2_largest(92, (101, 109)).word is Word.DIFFERS
    assert verdicts.table5_difference(0.004, 0.0).word == "matches"
    assert verdicts.table5_difference(0.0, 1_490.42).word is Word.NOT_REPRODUCED


def test_times_stand_beside_the_papers() -> None:
    assert Time("a", 2.0, 10.0).pace == "5 times faster"
    assert Time("a", 20.0, 10.0).pace == "2.0 times slower"
    assert (Time("a", 2.0, 10.0).word, Time("a", 20.0, 10.0).word) == ("better", "differs")
    assert Time("a", 2.0).word is Time("a", 2.0).pace is None
    alone = time_table({"x": [Time("a", 1.0)]})
    assert [column.heading for column in alone.columns] == ["what", "seconds"]
    both = time_table({"x": [Time("a", 1.0, 3.0)], "y": [Time("b", 1.0)]})
    assert both.cells() == [
        ["x", "a", "1.00", "3.00", "3 times faster", "better"],
        ["y", "b", "1.00", "-", "-", "-"],
    ]
