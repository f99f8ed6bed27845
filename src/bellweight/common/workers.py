"""Pieces of data and work on each of them: by threads here, or on a Dask cluster.

Threads are the default; `joblib.parallel_config` names another backend. On a Dask cluster every
piece is sent once and stays with the workers; when one dies, Dask makes what it held again, from
the scheduler's copy. Which pieces there are does not depend on the workers, answers come in the
order of the pieces, and sums are added in an order that their number decides: results are the same
for any number of workers.
"""

from __future__ import annotations

import operator
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from itertools import starmap, zip_longest
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed, parallel_config
from joblib.parallel import get_active_backend

from bellweight.common import checks
from bellweight.common.status import WorkerError

_checked: weakref.WeakSet[Any] = weakref.WeakSet()  # clients whose workers were asked


class Pieces:
    """Pieces of data; `map` applies a function to each of them, wherever they are.

    Pieces among the shared arguments of a function are not shared: each piece gets its own one, or
    all of them the only one. So a cluster keeps these, too. With `by_threads` the pieces are not
    sent to processes of the same machine, which would get them anew in every pass; with `once` a
    cluster does not keep them.
    """

    def __init__(
        self, pieces: Iterable[Any], *, by_threads: bool = False, once: bool = False
    ) -> None:
        self._pieces = list(pieces)
        self._by_threads = by_threads
        self._once = once
        self._stays = False
        self._held: dict[int, list[Any]] = {}  # futures of the pieces, by the client's identity

    def __len__(self) -> int:
        return len(self._pieces)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_held": {}}  # a client is its process's own

    def map(
        self,
        work: Callable[..., Any],
        *shared: Any,
        jobs: int | None = None,
        only: Sequence[int] | None = None,
    ) -> list[Any]:
        """Return work(piece, *shared) for every piece, or for those named only, in order."""
        chosen = range(len(self)) if only is None else only
        client = self._client(len(chosen))
        if client is not None:
            return list(client.gather(self._on_cluster(client, work, shared, chosen)))
        return list(self._here(work, shared, chosen, jobs))

    def staying(self) -> Self:
        """Return the same pieces for passes too short for the way to a cluster: threads do them."""
        other = copy(self)
        other._by_threads = other._stays = True
        return other

    def _client(self, n: int) -> Any | None:
        """Return the client of the cluster where so many pieces are worked on, if there is one."""
        return dask_client() if n > 1 and not self._stays else None

    def each(self, work: Callable[..., Any], *shared: Any, jobs: int | None = None) -> Self:
        """Return the same answers as pieces, which stay where they were made."""
        client, answers = self._client(len(self)), copy(self)
        if client is None:
            answers._pieces, answers._held = self.map(work, *shared, jobs=jobs), {}
            return answers
        held = self._on_cluster(client, work, shared, range(len(self)))
        answers._pieces, answers._held = [None] * len(self), {id(client): held}
        return answers

    def total(self, work: Callable[..., Any], *shared: Any, jobs: int | None = None) -> Any:
        """Return the sum of the same answers; a cluster adds them up where they are."""
        client, every = self._client(len(self)), range(len(self))
        if client is None:
            return _in_pairs(self._here(work, shared, every, jobs), operator.add)

        def add(one: Any, other: Any) -> Any:
            return client.submit(operator.add, one, other, pure=False)

        return _in_pairs(self._on_cluster(client, work, shared, every), add).result()

    def _here(
        self, work: Callable[..., Any], shared: Sequence[Any], chosen: Sequence[int],
        jobs: int | None,
    ) -> Iterator[Any]:  # fmt: skip
        given = [(self._pieces[k], *_own(k, shared)) for k in chosen]
        if len(given) <= 1:
            yield from starmap(work, given)
            return
        try:
            yield from in_order(work, given, jobs, by_threads=self._by_threads)
        except BrokenExecutor as problem:
            raise WorkerError(
                f"a worker process died in a pass ({type(problem).__name__}): use fewer jobs if "
                "memory ran out, threads, or Dask, which retries",
                {},
            ) from problem

    def _on_cluster(
        self, client: Any, work: Callable[..., Any], shared: Sequence[Any], chosen: Sequence[int]
    ) -> list[Any]:
        """Return futures of the answers.

        Data is submitted, not scattered: what a dead worker held is then made again. Dask advises
        against large data in a graph; this is sent once.
        """
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            common: Any = [None if isinstance(part, Pieces) else part for part in shared]
            if not all(part is None or np.isscalar(part) for part in common):
                common = client.submit(_same, common, pure=False)
            places = [place for place, part in enumerate(shared) if isinstance(part, Pieces)]
            own = [shared[place]._sent_to(client) for place in places]
            held, n = self._sent_to(client), len(chosen)
            given = [[part[k % len(part)] for k in chosen] for part in own]
            asked = [work] * n, [held[k] for k in chosen], [common] * n, [places] * n
            return list(client.map(_done, *asked, *given, pure=False))

    def _sent_to(self, client: Any) -> list[Any]:
        """Return futures of the pieces, which are sent when they are first asked for.

        What is used once goes along with the work.
        """
        if self._once:
            return self._pieces
        if id(client) not in self._held:
            self._held = {id(client): _sent(client, self._pieces)}
        return self._held[id(client)]


def _own(k: int, shared: Iterable[Any]) -> Iterator[Any]:
    """Yield what piece number k gets of shared arguments."""
    for part in shared:
        yield part._pieces[k % len(part)] if isinstance(part, Pieces) else part


def _done(
    work: Callable[..., Any], piece: Any, common: list[Any], places: list[int], *own: Any
) -> Any:
    """Do the work on a piece, whose own arguments stand at some places among the common ones."""
    given = list(common)
    for place, part in zip(places, own, strict=True):
        given[place] = part
    return work(piece, *given)


class Ranges(Pieces):
    """Pieces that belong to ranges of a list, which begin at `starts`."""

    def __init__(
        self, pieces: Iterable[Any], starts: Sequence[int], *, by_threads: bool = False
    ) -> None:
        super().__init__(pieces, by_threads=by_threads)
        self.starts = list(starts)

    def split(self, vector: Any, *, once: bool = False) -> Pieces:
        """Return what belongs to each piece of an array over the list."""
        return Pieces(np.split(vector, self.starts[1:]), once=once)


def _in_pairs(parts: Iterable[Any], add: Callable[[Any, Any], Any]) -> Any:
    """Return the sum of parts: of neighbours first, then of neighbouring sums.

    No more than a few sums are waiting at any time, and far workers can add most of them at once.
    """
    waiting: list[tuple[int, Any]] = []  # sums of fewer and fewer parts
    for part in parts:
        count, whole = 1, part
        while waiting and waiting[-1][0] == count:
            count, whole = 2 * count, add(waiting.pop()[1], whole)
        waiting.append((count, whole))
    whole = waiting.pop()[1]
    while waiting:
        whole = add(waiting.pop()[1], whole)
    return whole


def in_order(
    work: Callable[..., Any],
    given: Sequence[tuple[Any, ...]],
    jobs: int | None,
    *,
    by_threads: bool = False,
) -> Iterator[Any]:
    """Yield work(*arguments) for all given arguments, in order, by as many workers as `jobs` says.

    By default, as many as `joblib.parallel_config(n_jobs=...)` says, and else all cores.
    """
    wanted = get_active_backend()[1] if jobs is None else checks.count(jobs, "jobs")
    workers = -1 if wanted is None else wanted
    backend, _ = get_active_backend(prefer="threads", require="sharedmem" if by_threads else None)
    if not getattr(backend, "uses_threads", False):
        run = Parallel(n_jobs=workers, return_as="generator")
        yield from run(delayed(work)(*arguments) for arguments in given)
        return
    workers = backend.effective_n_jobs(workers)
    if workers == 1:
        yield from starmap(work, given)
        return
    # joblib's own threads are asked every 10 ms whether they are done, which is long beside a pass.
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(lambda arguments: work(*arguments), given)


def limited(jobs: int | None) -> AbstractContextManager[Any]:
    """Return a context in which so many workers are used where nothing else is said."""
    return nullcontext() if jobs is None else parallel_config(n_jobs=jobs)


def _sent(client: Any, pieces: Sequence[Any]) -> list[Any]:
    """Send neighbouring pieces to the same worker; those of one that dies go to another one."""
    workers, n = sorted(client.nthreads()) or [None], len(pieces)
    shares = np.array_split(np.arange(n), len(workers))
    sent: list[Any] = [None] * n
    # To each worker in turn: one that had nothing to do yet would take pieces from the others.
    for turn in zip_longest(*shares):
        for worker, k in zip(workers, turn, strict=True):
            if k is not None:
                sent[k] = client.submit(
                    _same, pieces[k], pure=False, workers=worker, allow_other_workers=bool(worker)
                )
    return sent


def dask_client() -> Any | None:
    """Return the client of the Dask cluster that `joblib.parallel_config` names, if it names one.

    Its workers are asked once whether they run the same version.
    """
    client = getattr(get_active_backend()[0], "client", None)
    if client is not None and client not in _checked:
        _check_versions(client)
        _checked.add(client)
    return client


def _check_versions(client: Any) -> None:
    here = version()
    try:
        found = client.run(version)
    except Exception as problem:
        raise WorkerError(
            f"the workers of the cluster cannot run Bellweight ({type(problem).__name__}: "
            f"{problem}): install version {here[0]} there",
            {},
        ) from problem
    for worker, there in found.items():
        if there != here:
            raise WorkerError(
                f"worker {worker} has Bellweight {there[0]} with Numba {there[1]}, and this "
                f"process {here[0]} with {here[1]}: install the same versions there",
                {},
            )


def version() -> tuple[str, str]:
    """Return the versions that decide what compiled code does: Bellweight's and Numba's."""
    from importlib.metadata import version as of

    import bellweight

    return bellweight.__version__, of("numba")


def _same(piece: Any) -> Any:
    return piece
