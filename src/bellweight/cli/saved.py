"""The commands on saved files: evaluate, certify, verify, compare, report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bellweight.cli import exits, parse, reporting
from bellweight.cli.app import (
    FILES,
    Jobs,
    JsonFile,
    ModelOfResults,
    Options,
    SavedResult,
    command,
    prepared,
)
from bellweight.cli.output import console, say, write_document


@command(
    "bellweight evaluate queue.npz --model single_queue",
    "bellweight evaluate queue.npz --model single_queue --half-width 0.5",
    short="Simulate the policy of a saved result",
)
def evaluate(
    context: typer.Context,
    result: SavedResult,
    model: ModelOfResults,
    episodes: Annotated[int | None, typer.Option(help="How many; 10,000 by default.")] = None,
    half_width: Annotated[
        float | None, typer.Option(help="Instead: simulate until the interval is this narrow.")
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(help="Steps per episode; until discount^steps < 0.001.")
    ] = None,
    option: Options = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="0 by default; for simulated models one that the run did not use."
        ),
    ] = None,
    jobs: Jobs = None,
    json: JsonFile = None,
) -> int:
    """Simulate the policy of a saved result, with a 95 % confidence interval."""
    if episodes is not None and half_width is not None:
        raise parse.usage("give --episodes or --half-width, not both")
    from bellweight.display import facts_text, number_text
    from bellweight.evaluation.evaluate import evaluate as simulate
    from bellweight.report.document import plain

    with prepared(context, model, option, reads=[result], writes=[json]) as (built, progress):
        saved = reporting.load_one(result, built)
        usual = 0 if saved.is_exact else saved.fresh_seed
        progress.tell("simulating")
        found = simulate(
            built,
            saved.policy,
            episodes,
            half_width=half_width,
            horizon=horizon,
            seed=usual if seed is None else seed,
            jobs=jobs,
        )
    screen = console(json)
    say(screen, facts_text("", [("simulated", str(found))]))
    exact = saved.cost.mean if saved.is_exact and saved.cost is not None else None
    if exact is not None:
        say(screen, facts_text("", [("exact", f"{number_text(exact)} over all time")]))
    write_document(json, {"evaluation": plain(found), "exact_cost": plain(exact)})
    return exits.DONE


@command(
    "bellweight certify queue.npz --model single_queue --out queue.json",
    short="Prove how far from optimal a saved policy can be",
)
def certify(
    context: typer.Context,
    result: SavedResult,
    model: ModelOfResults,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json", help="Write the certificate there.", rich_help_panel=FILES
        ),
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Where states cannot be listed: how many to simulate; 10,000 by default, fewer "
            "where they are long.",
        ),
    ] = None,
    paths: Annotated[
        int,
        typer.Option(min=0, help="Also a lower bound by information relaxation, on so many paths."),
    ] = 0,
    option: Options = None,
    seed: Annotated[int | None, typer.Option(min=0, help="One the run did not use.")] = None,
    jobs: Jobs = None,
) -> int:
    """Say how far from optimal a saved result's policy can be, and what is proven."""
    from bellweight.certificates.certifying import certify as certified

    with prepared(context, model, option, reads=[result], writes=[out]) as (built, progress):
        saved = reporting.load_one(result, built)
        if paths > 0:
            progress.tell("relaxing what is known of the future")
            relaxed = saved.gap(built, episodes=episodes, paths=paths, seed=seed, jobs=jobs)
        progress.tell("computing the certificate")
        found = certified(built, saved, episodes=episodes, seed=seed, jobs=jobs)
        if out is not None:
            found.save(out)
    say(console(None), str(found))
    if paths > 0:
        say(console(None), f"with {paths:,} paths\n{relaxed}")
    return exits.DONE


@command(
    "bellweight verify queue.json --model single_queue",
    short="Check a certificate by other means",
)
def verify(
    context: typer.Context,
    certificate: Annotated[
        Path, typer.Argument(metavar="CERTIFICATE.json", help="A saved certificate.")
    ],
    model: ModelOfResults,
    option: Options = None,
    json: JsonFile = None,
) -> int:
    """Compute a certificate again from the model, by other means, and say pass or fail."""
    from bellweight.certificates.verification import verify as verified
    from bellweight.report.document import plain

    with prepared(context, model, option, reads=[certificate], writes=[json]) as (built, progress):
        progress.tell("computing the certificate again")
        found = verified(built, certificate)
    say(console(json), str(found))
    write_document(json, {"passed": found.passed, **plain(found)})
    return exits.DONE if found.passed else exits.NOT_VERIFIED


@command(
    "bellweight compare kinks.npz cubic.npz --model single_queue --random",
    short="Compare saved policies on the same random numbers",
)
def compare(
    context: typer.Context,
    results: Annotated[list[Path], typer.Argument(metavar="RESULT.npz", help="Saved results.")],
    model: ModelOfResults,
    episodes: Annotated[int, typer.Option(min=2, help="How many.")] = 10_000,
    horizon: Annotated[
        int | None, typer.Option(min=1, help="Steps per episode; until discount^steps < 0.001.")
    ] = None,
    random: Annotated[
        bool, typer.Option("--random", help="Also the policy that acts at random.")
    ] = False,
    option: Options = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npz",
            help="Save the comparison, for bellweight report.",
            rich_help_panel=FILES,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="By default one that no run has used.")
    ] = None,
    jobs: Jobs = None,
    json: JsonFile = None,
) -> int:
    """Simulate the policies of saved results on the same random numbers."""
    from bellweight.display.screen import print_table
    from bellweight.report.document import plain

    with prepared(context, model, option, reads=results, writes=[save, json]) as (built, progress):
        loaded = reporting.load(results, built)
        progress.tell(f"simulating {len(loaded)} policies")
        found = reporting.compared(loaded, built, episodes, horizon, seed, jobs, random=random)
    if save is not None:
        found.save(save)
    screen = console(json)
    print_table(screen, found.table())
    if save is not None:
        page = f"{str(save).removesuffix('.npz')}.html"
        say(screen, f"saved to {save}: bellweight report {save} --out {page} shows it")
    write_document(json, {"comparison": plain(found)})
    return exits.DONE


@command(
    "bellweight report queue.npz --model single_queue --out queue.html",
    short="Write a web page about saved results",
)
def report(
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE.npz", help="A saved result, comparison or race, or results."),
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="PAGE.html", help="The page to write.", rich_help_panel=FILES),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="The model of the results, as in solve: for pictures and bounds.",
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json", help="A saved certificate of the result.", rich_help_panel=FILES
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="The heading of the page.")] = None,
    episodes: Annotated[
        int, typer.Option(min=2, help="Where states cannot be listed: how many to simulate.")
    ] = 2_000,
    option: Options = None,
    jobs: Jobs = None,
) -> int:
    """Write one web page about a result, a comparison, or several results; it opens offline."""
    from bellweight.report import report as write

    reads = [*files, certificate]
    with prepared(context, model, option, reads=reads, writes=[out]) as (built, progress):
        subject = reporting.subject(files, built)
        proven = reporting.certificate(certificate, subject)
        progress.tell("writing the report")
        write(
            subject,
            out,
            model=built,
            certificate=proven,
            title=title,
            episodes=episodes,
            jobs=jobs,
        )
    say(console(None), f"written to {out}: open it in a browser")
    return exits.DONE
