"""`bellweight auto`: a portfolio of methods, raced."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bellweight.cli import exits, parse, reporting, sampling
from bellweight.cli.app import (
    FILES,
    LIMITS,
    SAMPLE,
    Jobs,
    JsonFile,
    Options,
    Seed,
    Source,
    command,
    prepared,
)
from bellweight.cli.output import console, say, write_document
from bellweight.cli.parse import BasisWords
from bellweight.cli.sampling import SampleWords, StatesFrom
from bellweight.common.status import BellweightWarning

if TYPE_CHECKING:
    from bellweight.models import Model
    from bellweight.plans.auto import Auto
    from bellweight.plans.race_result import RaceResult


@command(
    "bellweight auto single_queue",
    "bellweight auto my_model.py --with mine.npz --save race.npz",
    short="Try many settings, keep the policy that costs least",
)
def auto(
    context: typer.Context,
    source: Source,
    basis: Annotated[
        str | None, typer.Option(metavar="BASIS", help=f"{parse.BASES}, as in solve.")
    ] = None,
    nonnegative: Annotated[
        bool, typer.Option("--nonnegative", help="affine: as in solve.")
    ] = False,
    brought: Annotated[
        list[Path] | None,
        typer.Option(
            "--with", metavar="RESULT.npz", help="A saved result that takes part; repeat for more."
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            min=1, help="Episodes of all races and of the judgement; 200,000 on compiled models."
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="How sure it must be before it drops a policy.")
    ] = 0.95,
    max_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Stop the search after about this long.",
            rich_help_panel=LIMITS,
        ),
    ] = None,
    rounds: Annotated[
        int,
        typer.Option(
            min=0, help="Rounds of states drawn where the best policy goes.", rich_help_panel=SAMPLE
        ),
    ] = 1,
    states: Annotated[
        int | None,
        typer.Option(min=1, help="How many states have rows, as in solve.", rich_help_panel=SAMPLE),
    ] = None,
    states_from: Annotated[
        StatesFrom | None,
        typer.Option(
            metavar="WHERE", help="initial or random, as in solve.", rich_help_panel=SAMPLE
        ),
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option(
            min=2, help="Simulated per estimate of where a policy goes.", rich_help_panel=SAMPLE
        ),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(min=1, help="Steps per episode.", rich_help_panel=SAMPLE)
    ] = None,
    option: Options = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npz", help="Save the result of the race.", rich_help_panel=FILES
        ),
    ] = None,
    json: JsonFile = None,
    seed: Seed = 0,
    jobs: Jobs = None,
) -> int:
    """Try many methods, race their policies, and judge the winner on fresh random numbers."""
    from bellweight.display.screen import print_table
    from bellweight.plans.auto import Auto
    from bellweight.report.document import plain

    wanted = SampleWords(states, states_from, episodes, horizon)
    own = brought or []
    with prepared(context, source, option, reads=own, writes=[save, json]) as (model, progress):
        plan = Auto(
            brought=reporting.load(brought, model) if brought else None,
            budget=budget, confidence=confidence, rounds=rounds, max_seconds=max_seconds,
            watch=progress.tell,
        )  # fmt: skip
        words = BasisWords(basis, nonnegative)
        found = _run(plan, model, words, wanted, seed, jobs)
    if save is not None:
        found.save(save)
    screen = console(json)
    print_table(screen, found.short_table())
    if save is not None:
        say(screen, f"saved to {save}: bellweight report {save} --out race.html shows it")
    write_document(json, {"source": source, "race": plain(found.table().rows),
                          "winner": found.winner, "cost": found.cost.mean,
                          "half_width": found.cost.half_width})  # fmt: skip
    return exits.DONE


def _run(
    plan: Auto,
    model: Model,
    basis: BasisWords,
    wanted: SampleWords,
    seed: int,
    jobs: int | None,
) -> RaceResult:
    from bellweight.solve import solve

    sample = sampling.sample(wanted, model, seed)
    with warnings.catch_warnings():
        # Candidates that end badly are told in its table.
        warnings.simplefilter("ignore", BellweightWarning)
        return solve(
            model, parse.basis(basis, model), plan,
            rows=None if sample is None else sample.rows,
            simulation=None if sample is None else sample.simulation,
            seed=seed, jobs=jobs,
        )  # fmt: skip
