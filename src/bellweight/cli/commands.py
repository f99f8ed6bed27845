"""The commands solve, convert, problems and demo; auto is in `portfolio.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bellweight.cli import exits, parse, sampling, solving
from bellweight.cli.app import EPILOG, Jobs, JsonFile, Options, Seed, Source, app, prepared
from bellweight.cli.output import check_kept, check_writable, console, say, write_document
from bellweight.cli.parse import BasisWords, Cycles, MethodName, MethodWords
from bellweight.cli.progress import Progress
from bellweight.cli.sampling import SampleWords, StatesFrom


@app.command(epilog=EPILOG)
def solve(
    context: typer.Context,
    source: Source,
    basis: Annotated[
        str | None,
        typer.Option(
            help=f"{parse.BASES}. \\[default: poly:3, event models poly:2, linear models affine]"
        ),
    ] = None,
    nonnegative: Annotated[
        bool,
        typer.Option(
            "--nonnegative", help="affine: no negative coefficient but that of the constant."
        ),
    ] = False,
    method: Annotated[
        MethodName | None, typer.Option(help="How the weights are chosen. \\[default: dia]")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="fixed: initial, uniform or geometric:DECAY.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="dia: random, or fixed:WEIGHTS as in fixed:geometric:0.9."),
    ] = None,
    temperature: Annotated[float | None, typer.Option(help="dia: of the softmax.")] = None,
    smoothing_mass: Annotated[
        float | None, typer.Option(help="dia: pull towards the target.")
    ] = None,
    step_size: Annotated[
        str | None, typer.Option(help="pia, dia: a number in (0, 1], adaptive or anderson.")
    ] = None,
    start: Annotated[
        str | None, typer.Option(help="pia, dia: initial, uniform or geometric:DECAY.")
    ] = None,
    cycles: Annotated[
        Cycles | None,
        typer.Option(help="pia, dia: the phase reported of a cycle. \\[default: best]"),
    ] = None,
    extend: Annotated[
        float | None,
        typer.Option(help="dia: states this near (1-norm) share their dual with each other."),
    ] = None,
    regularisation: Annotated[
        float | None,
        typer.Option(help="Spread the dual: this much times its squared length / 2 is added."),
    ] = None,
    tol: Annotated[
        float | None, typer.Option(help="Stop when weights and occupancy are this close.")
    ] = None,
    max_iterations: Annotated[
        int | None,
        typer.Option(help="At most this many, those before --resume included; 100 more if unset."),
    ] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Stop after this long.")] = None,
    states: Annotated[
        int | None,
        typer.Option(min=1, help="event models: how many constraint states; 5,000 by default."),
    ] = None,
    states_from: Annotated[
        StatesFrom | None,
        typer.Option(
            help="event models: the initial distribution, or the occupancy of the random policy. "
            "\\[default: initial]"
        ),
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option(
            min=2, help="event and linear models: per occupancy estimate; 4,000 by default."
        ),
    ] = None,
    horizon: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="event and linear models: steps per episode; until discount^steps < 0.001.",
        ),
    ] = None,
    option: Options = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE.npz", help="Save the result.")] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="FILE.npz", help="Go on with a saved result, its basis and method."),
    ] = None,
    json: JsonFile = None,
    no_judge: Annotated[
        bool,
        typer.Option("--no-judge", help="Do not compare the policy with acting at random."),
    ] = False,
    seed: Seed = 0,
    jobs: Jobs = None,
) -> int:
    """Choose the weights, solve the program, and say how good the policy is."""
    check_kept(resume, json)
    words = MethodWords(
        method, weights, target, temperature, smoothing_mass, step_size, start, cycles, extend
    )
    features = BasisWords(basis, nonnegative)
    wanted = SampleWords(states, states_from, episodes, horizon)
    limits = solving.Limits(tol, max_iterations, max_seconds)
    with prepared(context, source, option, writes=[save, json]) as (model, progress):
        sample = sampling.sample(wanted, model, seed)
        job = solving.job(model, sample, features, words, limits, resume, regularisation)
        job.check_seed(seed)
        result = job.run(seed, jobs, progress, judge=not no_judge)
    if save is not None:
        result.save(save)
    further = [] if sample is None else [*wanted.flags(), "--seed", seed]
    commands = solving.Commands(source, option or [], save, further)
    screen = console(json)
    say(screen, solving.text(result, job, commands))
    write_document(json, solving.document(result, job, source))
    return exits.of(result.status)


@app.command(epilog=EPILOG)
def convert(
    context: typer.Context,
    source: Source,
    target: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="The file to write: .npz, .csv, .tra (PRISM) or .drn."),
    ],
    option: Options = None,
) -> int:
    """Write a model to a file of another package, or to Bellweight's own, by its ending."""
    with prepared(context, source, option, writes=[target]) as (model, _):
        from bellweight.interchange import write_model

        write_model(model, target)
    say(console(None), f"{model!r}\nwritten to {target}")
    return exits.DONE


@app.command(epilog=EPILOG)
def problems(json: JsonFile = None) -> int:
    """List the problems that come with Bellweight and with other installed packages."""
    check_writable(json)
    found = parse.problem_list()
    screen = console(json)
    for name, about, parameters in found:
        say(screen, f"{name}: {about}")
        for parameter in parameters:
            say(screen, f"    {parameter}")
    say(
        screen,
        f"\nTry: bellweight solve {found[0][0]} --option initial=empty --option capacity=999\n"
        "     bellweight solve queue_network --states 2000 --episodes 1000\n"
        "     bellweight solve scheduling --option size=small --nonnegative",
    )
    listed = [{"name": name, "about": about, "parameters": p} for name, about, p in found]
    write_document(json, {"problems": listed})
    return exits.DONE


@app.command(epilog=EPILOG)
def demo(
    context: typer.Context,
    page: Annotated[
        Path, typer.Option(metavar="PAGE.html", help="Where to write the page that shows it.")
    ] = Path("bellweight-demo.html"),
    json: JsonFile = None,
) -> int:
    """Solve the paper's queue with 50,000 states by every method, in a few seconds."""
    check_writable(page, json)
    from bellweight.display.screen import print_table
    from bellweight.display.table import wrapped
    from bellweight.reproduce.queue import demo as demonstration

    with Progress("one moment", context.obj) as progress:
        found = demonstration.run(progress.tell)
        found.write_page(page)
    screen = console(json)
    print_table(screen, found.table())
    say(screen, "")
    width = screen.width if screen.is_terminal else None
    for sentence in found.sentences():
        say(screen, wrapped(sentence, width))
    for command in demonstration.NEXT:
        say(screen, f"    {command}")
    say(screen, f"\nSee it: open {page} in a browser.")
    write_document(json, found.document())
    return exits.DONE
