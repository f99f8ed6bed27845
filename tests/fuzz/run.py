"""Many cases, one line of JSON for each; a case that hangs is ended and counts as wrong.

A case hangs when it takes too much time of the CPU, so that a busy machine changes no verdict.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

try:
    import resource  # not on Windows
except ImportError:
    resource = None

_LIMIT = 60.0
_WAITING = 60.0  # times the limit: for a case that waits for ever, or where CPU time has no limit


def _serve(pipe: Connection, limit: float) -> None:
    """Run the cases that come in, until none does."""
    import os

    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from .cases import record

    while True:
        wanted = pipe.recv()
        if wanted is None:
            return
        _allow(limit)
        try:
            pipe.send(record(wanted))
        except Exception as problem:
            text = f"{type(problem).__name__}: {problem}"
            pipe.send(_failed(wanted, "harness", text))


def _allow(seconds: float) -> None:
    """Let the system end this process when it has computed for some seconds more."""
    if resource is not None:
        most = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds), most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _failed(wanted: Any, kind: str, text: str) -> dict[str, Any]:
    return {"case": wanted, "family": "none", "text": "", "wrong": [(kind, text)],
            "undecided": [], "notes": [], "seconds": 0.0}  # fmt: skip


class _Worker:
    """A process of its own, which can be ended at any time."""

    def __init__(self, limit: float) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, limit), daemon=True)
        self.process.start()
        theirs.close()
        self.wanted: Any = None
        self.began = 0.0

    def give(self, wanted: Any) -> None:
        self.wanted, self.began = wanted, time.monotonic()
        self.pipe.send(wanted)

    def ending(self) -> tuple[str, str]:
        """Return how the process ended by itself: the kind of fault and a sentence."""
        self.process.join()
        code = self.process.exitcode
        if resource is not None and code == -signal.SIGXCPU:
            return "hang", "too much time of the CPU"
        return "crash", f"exit code {code}"

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def records(wanted: Iterable[Any], jobs: int, limit: float = _LIMIT) -> Iterator[dict[str, Any]]:
    """Yield the record of every case, in the order in which they end."""
    todo = iter(wanted)
    busy: list[_Worker] = []

    def start(worker: _Worker) -> None:
        following = next(todo, None)
        if following is None:
            worker.end()
        else:
            worker.give(following)
            busy.append(worker)

    for _ in range(jobs):
        start(_Worker(limit))
    try:
        while busy:
            ready = wait([worker.pipe for worker in busy], timeout=1.0)
            for worker in list(busy):
                if worker.pipe in ready:
                    busy.remove(worker)
                    try:
                        yield worker.pipe.recv()
                    except EOFError:
                        yield _failed(worker.wanted, *worker.ending())
                        worker.end()
                        start(_Worker(limit))
                    else:
                        start(worker)
                elif time.monotonic() - worker.began > _WAITING * limit:
                    busy.remove(worker)
                    worker.end()
                    yield _failed(worker.wanted, "hang", f"no answer in {_WAITING * limit:g} s")
                    start(_Worker(limit))
    finally:
        for worker in busy:
            worker.end()


def summary(lines: Iterable[dict[str, Any]]) -> str:
    """Return how many cases of each family there were, and what was wrong with how many."""
    total: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    undecided: Counter[str] = Counter()
    kinds: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], list[Any]] = {}
    for line in lines:
        family = line["family"]
        total[family] += 1
        failed[family] += bool(line["wrong"])
        undecided[family] += bool(line["undecided"])
        for kind in sorted({kind for kind, _ in line["wrong"]}):
            kinds[kind, family] += 1
            examples.setdefault((kind, family), []).append(line["case"])
    text = [f"{'family':<16}{'cases':>8}{'wrong':>8}{'reference undecided':>22}"]
    for family in sorted(total):
        row = f"{family:<16}{total[family]:>8}{failed[family]:>8}{undecided[family]:>22}"
        text.append(row)
    row = f"{'all':<16}{total.total():>8}{failed.total():>8}{undecided.total():>22}"
    text += [row, ""]
    for (kind, family), count in sorted(kinds.items(), key=lambda item: -item[1]):
        some = ", ".join(str(case) for case in sorted(examples[kind, family], key=str)[:8])
        text.append(f"{count:>6}  {kind:<32}{family:<12}cases {some}")
    return "\n".join(text)


def main(arguments: list[str] | None = None) -> int:
    """Run cases as the command line says; return 1 if any is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--to", dest="last", type=int, default=200)
    parser.add_argument("--case", action="append", help="one case alone: a number or a name")
    parser.add_argument("--named", action="store_true", help="the named cases")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=_LIMIT, help="CPU seconds for one case")
    parser.add_argument("--output", type=Path, default=Path("build/fuzz.jsonl"))
    parser.add_argument("--resume", action="store_true", help="leave out what the output holds")
    given = parser.parse_args(arguments)
    if given.case:
        return _alone(given.case)
    wanted: list[Any] = list(range(given.first, given.last))
    if given.named:
        from .named import NAMED

        wanted = list(NAMED)
    given.output.parent.mkdir(parents=True, exist_ok=True)
    known = known_lines(given.output) if given.resume else []
    done = {line["case"] for line in known}
    mode = "a" if given.resume else "w"
    chosen = set(wanted)
    lines = [line for line in known if line["case"] in chosen]
    with given.output.open(mode, encoding="utf-8") as output:
        if given.resume:
            output.write("\n")  # the last line may have been cut
        todo = [case for case in wanted if case not in done]
        for line in records(todo, given.jobs, given.limit):
            output.write(json.dumps(line) + "\n")
            output.flush()
            lines.append(line)
            if line["wrong"]:
                print(f"{line['case']}: {line['text']}: {line['wrong'][0]}", flush=True)
    print(summary(lines))
    return int(any(line["wrong"] for line in lines))


def known_lines(path: Path) -> list[dict[str, Any]]:
    """Return the complete lines of a record that may have been cut."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def _alone(cases: list[str]) -> int:
    from .cases import record

    wrong = 0
    for name in cases:
        line = record(int(name) if name.isdigit() else name)
        print(json.dumps(line, indent=2))
        wrong += bool(line["wrong"])
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
