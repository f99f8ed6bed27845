"""Pieces of data and work on each of them: by threads here, or on a Dask cluster.

Threads are the default; `joblib.parallel_config` names another backend. On a Dask cluster every
piece is sent once and stays with the workers; when one dies, Dask makes what it held again, from
the scheduler's copy. Which pieces there are does not depend on the workers, and answers come in the
order of the pieces: results are the same for any number of workers.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from itertools import cycle, starmap
from typing import Any

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

from bellweight.common import checks
from bellweight.common.status import WorkerError

_checked: weakref.WeakSet[Any] = weakref.WeakSet()  # clients whose workers were asked


class Pieces:
    """Pieces of data; `map` applies a function to each of them, wherever they are."""

    def __init__(self, pieces: Sequence[Any]) -> None:
        self._pieces = list(pieces)
        self._held: dict[int, list[Any]] = {}  # futures of the pieces, by the client's identity

    def __len__(self) -> int:
        return len(self._pieces)

    def __getstate__(self) -> dict[str, Any]:
        return {"_pieces": self._pieces, "_held": {}}  # a client is its process's own

    def map(
        self,
        work: Callable[..., Any],
        *shared: Any,
        jobs: int | None = None,
        only: Sequence[int] | None = None,
    ) -> list[Any]:
        """Return work(piece, *shared) for every piece, or for those named only, in order."""
        chosen = range(len(self._pieces)) if only is None else only
        if len(chosen) <= 1:
            return [work(self._pieces[k], *shared) for k in chosen]
        client = dask_client()
        if client is not None:
            return self._on_cluster(client, work, shared, chosen)
        try:
            return list(in_order(work, [(self._pieces[k], *shared) for k in chosen], jobs))
        except BrokenExecutor as problem:
            raise WorkerError(
                f"a worker process died in a pass ({type(problem).__name__}): use fewer jobs if "
                "memory ran out, threads, or Dask, which retries",
                {},
            ) from problem

    def _on_cluster(
        self, client: Any, work: Callable[..., Any], shared: tuple[Any, ...], chosen: Sequence[int]
    ) -> list[Any]:
        if id(client) not in self._held:
            # Submitted, not scattered: what a dead worker held is then made again. Dask advises
            # against large pieces in a graph; these are sent once.
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Sending large graph")
                held = _sent_in_turn(client, self._pieces)
            self._held = {id(client): held}
        held = self._held[id(client)]
        given = [client.submit(_same, part, pure=False) for part in shared]
        asked = [client.submit(work, held[k], *given, pure=False) for k in chosen]
        return list(client.gather(asked))


def in_order(
    work: Callable[..., Any], given: Sequence[tuple[Any, ...]], jobs: int | None
) -> Iterator[Any]:
    """Yield work(*arguments) for all given arguments, in order, by as many workers as `jobs` says.

    All cores by default.
    """
    workers = -1 if jobs is None else checks.count(jobs, "jobs")
    backend, _ = get_active_backend(prefer="threads")
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


def _sent_in_turn(client: Any, pieces: Sequence[Any]) -> list[Any]:
    """Send one piece to each worker in turn; a piece of a worker that dies goes to another one."""
    workers = cycle(sorted(client.nthreads()) or [None])
    return [
        client.submit(_same, piece, pure=False, workers=worker, allow_other_workers=bool(worker))
        for piece, worker in zip(pieces, workers, strict=False)
    ]


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
