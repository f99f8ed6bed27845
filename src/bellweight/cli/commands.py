"""The commands solve, new, convert, problems and demo; auto is in `portfolio.py`."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from bellweight.cli import exits, parse, sampling, solving, sources
from bellweight.cli.app import (
    BASIS,
    FILES,
    LIMITS,
    METHOD,
    SAMPLE,
    Jobs,
    JsonFile,
    Options,
    Seed,
    Source,
    command,
    prepared,
)
from bellweight.cli.output import check_kept, check_writable, console, say, write_document
from bellweight.cli.parse import BasisWords, Cycles, MethodName, MethodWords
from bellweight.cli.progress import Progress
from bellweight.cli.sampling import SampleWords, StatesFrom
from bellweight.cli.starting import Kind, write_starter
from bellweight.common.status import ModelError


@command(
    "bellweight solve single_queue",
    "bellweight solve single_queue --basis kinks:1,2,4,8,16,32 --save queue.npz",
    "bellweight solve queue_network --states 2000 --episodes 1000",
    "bellweight solve my_model.py",
    short="Choose the weights, solve, say how good the policy is",
)
def solve(
    context: typer.Context,
    source: Source,
    basis: Annotated[
        str | None,
        typer.Option(
            metavar="BASIS",
            help=f"{parse.BASES}. [default: poly:3, event models poly:2, step models kinks:10, "
            "linear models affine, factored models kinks:3, or affine if all values are 0 and 1]",
            rich_help_panel=BASIS,
        ),
    ] = None,
    nonnegative: Annotated[
        bool,
        typer.Option(
            "--nonnegative",
            help="affine: no negative coefficient but that of the constant.",
            rich_help_panel=BASIS,
        ),
    ] = False,
    method: Annotated[
        MethodName | None,
        typer.Option(
            metavar="METHOD",
            help="How the weights are chosen: fixed (as given), random (where acting at random "
            "leads), pia (primal iterative algorithm: where the greedy policy leads), dia (dual "
            "iterative algorithm: where the dual solution leads). [default: dia]",
            rich_help_panel=METHOD,
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            help="fixed: initial, uniform or geometric:DECAY.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            help="dia: random, or fixed:WEIGHTS as in fixed:geometric:0.9.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="dia: how far its policy spreads over actions with dual mass.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    smoothing_mass: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="dia: how strongly its policy is pulled to the target.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    step_size: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="pia, dia: a number in (0, 1], adaptive or anderson.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            help="pia, dia: initial, uniform or geometric:DECAY.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    cycles: Annotated[
        Cycles | None,
        typer.Option(
            metavar="WORD",
            help="pia, dia: the phase reported of a cycle. [default: best]",
            rich_help_panel=METHOD,
        ),
    ] = None,
    extend: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="dia: states this near (1-norm) share their dual with each other.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    regularisation: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="Spread the dual: this much times its squared length / 2 is added.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="Stop when weights and occupancy are this close.",
            rich_help_panel=LIMITS,
        ),
    ] = None,
    max_iterations: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="At most this many, those before --resume included; 100 more if unset.",
            rich_help_panel=LIMITS,
        ),
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Stop after this long.", rich_help_panel=LIMITS),
    ] = None,
    states: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many states have rows (not for linear models). Without this and the next at "
            "most 2,000 that acting at random meets, and for step models all over the box.",
            rich_help_panel=SAMPLE,
        ),
    ] = None,
    states_from: Annotated[
        StatesFrom | None,
        typer.Option(
            metavar="WHERE",
            help="Where they come from: initial (the initial distribution, also with --states "
            "alone) or random (where acting at random leads; 5,000 states with this alone).",
            rich_help_panel=SAMPLE,
        ),
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Simulated per estimate of where a policy goes; 4,000 by default.",
            rich_help_panel=SAMPLE,
        ),
    ] = None,
    horizon: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Steps per episode; by default until discount^steps < 0.001.",
            rich_help_panel=SAMPLE,
        ),
    ] = None,
    option: Options = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE.npz", help="Save the result.", rich_help_panel=FILES),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npz",
            help="Go on with a saved result, its basis and method.",
            rich_help_panel=FILES,
        ),
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


@command(
    "bellweight new event my_model.py",
    "bellweight solve my_model.py",
    short="Write a commented model to begin with",
)
def new(
    kind: Annotated[
        Kind,
        typer.Argument(
            metavar="KIND",
            help="tabular (states can be listed), event (counts, a few events per step), step (a "
            "simulator, real or whole numbers), linear (linear costs and constraints).",
        ),
    ],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="The file to write; KIND_model.py by default."),
    ] = None,
) -> int:
    """Write a small model with comments, which solves as it is and is there to be changed."""
    path = file or Path(f"{kind}_model.py")
    write_starter(kind, path)
    say(console(None), f"written to {path}; it solves as it is:\n    bellweight solve {path}")
    return exits.DONE


@command(
    "bellweight convert single_queue queue.npz",
    "bellweight convert queue.drn queue.csv --option discount=0.95",
    "bellweight convert continuous_inventory stock.csv --grid 51",
    short="Write a model to a file of another package",
)
def convert(
    context: typer.Context,
    source: Source,
    target: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="The file to write: .npz, .csv, .tra (PRISM) or .drn."),
    ],
    option: Options = None,
    tabular: Annotated[
        bool,
        typer.Option(
            "--tabular",
            help="List the states of an event, step, factored or linear model first: other "
            "packages know only states that are listed.",
        ),
    ] = False,
    grid: Annotated[
        str | None,
        typer.Option(
            "--grid",
            metavar="N[,N...]",
            help="List the states of a step model on a grid with so many points along each "
            "coordinate; 101 with --tabular alone.",
        ),
    ] = None,
) -> int:
    """Write a model to a file of another package, or to Bellweight's own, by its ending."""
    with prepared(context, source, option, writes=[target]) as (built, _):
        from bellweight.interchange import write_model

        model = _tabular(built, grid) if tabular or grid is not None else built
        try:
            write_model(model, target)
        except ModelError as problem:
            if not hasattr(model, "to_tabular"):
                raise
            raise ModelError(f"{problem}; here that is --tabular") from None
    say(console(None), f"{model!r}\nwritten to {target}")
    return exits.DONE


def _tabular(model: Any, grid: str | None) -> Any:
    """Return a model with its states listed, a step model on a grid."""
    lists: Any = getattr(model, "to_tabular", lambda: model)
    if grid is None:
        return lists()
    if "grid" not in inspect.signature(lists).parameters:
        raise parse.usage(f"--grid is for step models, and this is {type(model).__name__}")
    points = grid.split(",")
    if not all(point.isdecimal() for point in points):
        raise parse.usage(f"--grid is {grid}, expected numbers of points such as 51 or 21,11")
    counts = [int(point) for point in points]
    return lists(counts[0] if len(counts) == 1 else counts)


@command(
    "bellweight problems",
    "bellweight problems single_queue",
    "bellweight problems --json -",
    short="List the problems that come with it",
)
def problems(
    problem: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="One of them: its parameters, as --option of other commands takes them.",
            autocompletion=sources.complete_source,
        ),
    ] = None,
    json: JsonFile = None,
) -> int:
    """List the problems that come with Bellweight and with other installed packages."""
    check_writable(json)
    found = dict(sources.problem_list())
    screen = console(json)
    if problem is None:
        say(screen, _listed(found))
    else:
        parameters = sources.problem_parameters(problem)
        say(screen, "\n".join([f"{problem}: {found[problem]}", *parameters]))
        one = f" --option {parameters[0]}" if parameters else ""
        say(screen, f"\nSolve it: bellweight solve {problem}{one}")
    if json is not None:
        listed = [
            {"name": name, "about": about, "parameters": sources.problem_parameters(name)}
            for name, about in found.items()
        ]
        write_document(json, {"problems": listed})
    return exits.DONE


def _listed(found: Mapping[str, str]) -> str:
    """Return names and what they are, none wider than a screen, and what to do with them."""
    margin = max(map(len, found)) + 2
    lines = [
        textwrap.fill(f"{name:{margin}}{about}", 80, subsequent_indent=" " * margin)
        for name, about in found.items()
    ]
    first = next(iter(found))
    lines += ["", f"Solve one:      bellweight solve {first}"]
    lines += [f"Its parameters: bellweight problems {first}"]
    return "\n".join(lines)


@command(
    "bellweight demo",
    "bellweight demo --page demo.html",
    short="See what it does, in a minute",
)
def demo(
    context: typer.Context,
    page: Annotated[
        Path, typer.Option(metavar="PAGE.html", help="Where to write the page that shows it.")
    ] = Path("bellweight-demo.html"),
    json: JsonFile = None,
) -> int:
    """Solve a queue and prove it, then a network that nobody can list; under a minute."""
    check_writable(page, json)
    from bellweight.display.screen import print_table
    from bellweight.display.table import wrapped
    from bellweight.reproduce import demo as demonstration

    with Progress("one moment", context.obj) as progress:
        found = demonstration.run(progress.tell)
        found.write_page(page)
    screen = console(json)
    width = min(80, screen.width) if screen.is_terminal else 80
    for part in found.parts:
        print_table(screen, part.table())
        for sentence in part.sentences():
            say(screen, "\n" + wrapped(sentence, width))
        say(screen, "")
    say(screen, wrapped(demonstration.NEXT_WORDS, width))
    for line in demonstration.NEXT:
        say(screen, f"    {line}")
    say(screen, f"\nSee it: open {page} in a browser.")
    write_document(json, found.document())
    return exits.DONE
