"""The commands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bellweight.cli import exits, parse, reporting, reproducing, sampling, solving
from bellweight.cli.output import (
    Interrupted,
    check_folder,
    check_kept,
    check_writable,
    console,
    say,
    write_document,
)
from bellweight.cli.parse import BasisWords, Cycles, MethodName, MethodWords
from bellweight.cli.progress import Progress
from bellweight.cli.sampling import SampleWords, StatesFrom

EPILOG = "Exit codes: " + "; ".join(f"{code} {text}" for code, text in exits.MEANINGS.items())


class _Group(TyperGroup):
    """The commands; Ctrl-C in any of them is ours to report."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted from None


app = typer.Typer(
    cls=_Group,
    add_completion=False,
    epilog=EPILOG,
    help="Good policies for Markov decision processes too large to solve exactly.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE", help="A shipped problem, an .npz model file, or file.py:factory."
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="KEY=VALUE",
        help="A parameter of a shipped problem, such as capacity=999; repeat for more. "
        "Lists are written 0,0.2,0.4, lists of lists 0,1;2.",
    ),
]
JsonFile = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write the result as JSON; - is stdout."),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Workers; all cores by default.")]


@app.callback()
def common(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    progress: Annotated[
        bool | None,
        typer.Option(help="Show progress, or not; by default on a terminal after two seconds."),
    ] = None,
) -> None:
    """Take the options that every command has."""
    context.obj = progress
    if version:
        from bellweight import __version__

        print(f"bellweight {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit


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
    check_writable(save, json)
    check_kept(parse.source_file(source), save, json)
    check_kept(resume, json)
    words = MethodWords(
        method, weights, target, temperature, smoothing_mass, step_size, start, cycles, extend
    )
    features = BasisWords(basis, nonnegative)
    wanted = SampleWords(states, states_from, episodes, horizon)
    limits = solving.Limits(tol, max_iterations, max_seconds)
    with Progress("preparing the model", context.obj) as progress:
        model = parse.model(source, parse.options(option or []))
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
def problems(json: JsonFile = None) -> int:
    """List the problems that come with Bellweight."""
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
def evaluate(
    context: typer.Context,
    result: Annotated[Path, typer.Argument(metavar="RESULT.npz", help="A saved result.")],
    model: Annotated[
        str, typer.Option(help="The model it was solved for, as in bellweight solve.")
    ],
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
    check_writable(json)
    for read in (result, parse.source_file(model)):
        check_kept(read, json)
    from bellweight.evaluation.evaluate import evaluate as simulate
    from bellweight.report.document import plain
    from bellweight.solve import Result

    with Progress("preparing the model", context.obj) as progress:
        built = parse.model(model, parse.options(option or []))
        saved = Result.load(result, model=built)
        # A policy must not be judged on the episodes that shaped it.
        usual = 0 if saved.is_exact else saved.seed + 1
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
    say(screen, f"simulated  {found}")
    exact = saved.cost if saved.is_exact else None
    if exact is not None:
        say(screen, f"exact      {exact:,.4f} over all time")
    write_document(json, {"evaluation": plain(found), "exact_cost": plain(exact)})
    return exits.DONE


@app.command(epilog=EPILOG)
def certify(
    context: typer.Context,
    result: Annotated[Path, typer.Argument(metavar="RESULT.npz", help="A saved result.")],
    model: Annotated[str, typer.Option(help="The model it was solved for, as in solve.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Write the certificate there.")
    ] = None,
    episodes: Annotated[
        int, typer.Option(min=2, help="Where states cannot be listed: how many to simulate.")
    ] = 10_000,
    option: Options = None,
    seed: Annotated[int | None, typer.Option(min=0, help="One the run did not use.")] = None,
    jobs: Jobs = None,
) -> int:
    """Say how far from optimal a saved result's policy can be, and what is proven."""
    check_writable(out)
    for read in (result, parse.source_file(model)):
        check_kept(read, out)
    from bellweight.certificates.certificate import certify as certified
    from bellweight.solve import Result

    with Progress("preparing the model", context.obj) as progress:
        built = parse.model(model, parse.options(option or []))
        saved = Result.load(result, model=built)
        progress.tell("computing the certificate")
        found = certified(built, saved, episodes=episodes, seed=seed, jobs=jobs)
    if out is not None:
        found.save(out)
    say(console(None), str(found))
    return exits.DONE


@app.command(epilog=EPILOG)
def compare(
    context: typer.Context,
    results: Annotated[list[Path], typer.Argument(metavar="RESULT.npz...", help="Saved results.")],
    model: Annotated[str, typer.Option(help="The model they were solved for, as in solve.")],
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
        typer.Option(metavar="FILE.npz", help="Save the comparison, for bellweight report."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="By default one that no run has used.")
    ] = None,
    jobs: Jobs = None,
    json: JsonFile = None,
) -> int:
    """Simulate the policies of saved results on the same random numbers."""
    check_writable(save, json)
    for read in (*results, parse.source_file(model)):
        check_kept(read, save, json)
    from bellweight.display.screen import print_table
    from bellweight.report.document import plain

    with Progress("preparing the model", context.obj) as progress:
        built = parse.model(model, parse.options(option or []))
        loaded = reporting.load(results, built)
        progress.tell(f"simulating {len(loaded)} policies")
        found = reporting.compared(loaded, built, episodes, horizon, seed, jobs, random=random)
    if save is not None:
        found.save(save)
    print_table(console(json), found.table())
    write_document(json, {"comparison": plain(found)})
    return exits.DONE


@app.command(epilog=EPILOG)
def report(
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE.npz...", help="A saved result, comparison or league, or results."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="PAGE.html", help="The page to write.")],
    model: Annotated[
        str | None,
        typer.Option(help="The model of the results, as in solve: for pictures and bounds."),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="A saved certificate of the result.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The heading of the page.")] = None,
    episodes: Annotated[
        int, typer.Option(min=2, help="Where states cannot be listed: how many to simulate.")
    ] = 2_000,
    option: Options = None,
    jobs: Jobs = None,
) -> int:
    """Write one web page about a result, a comparison, or several results; it opens offline."""
    check_writable(out)
    for read in (*files, certificate, None if model is None else parse.source_file(model)):
        check_kept(read, out)
    from bellweight.report import report as write

    with Progress("reading", context.obj) as progress:
        built = None if model is None else parse.model(model, parse.options(option or []))
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


@app.command(epilog=EPILOG)
def verify(
    context: typer.Context,
    certificate: Annotated[Path, typer.Argument(metavar="CERTIFICATE.json")],
    model: Annotated[str, typer.Option(help="The model that it is about, as in solve.")],
    option: Options = None,
    json: JsonFile = None,
) -> int:
    """Compute a certificate again from the model, by other means, and say pass or fail."""
    check_writable(json)
    for read in (certificate, parse.source_file(model)):
        check_kept(read, json)
    from bellweight.certificates.verification import verify as verified
    from bellweight.report.document import plain

    with Progress("computing the certificate again", context.obj):
        found = verified(parse.model(model, parse.options(option or [])), certificate)
    say(console(json), str(found))
    write_document(json, {"passed": found.passed, **plain(found)})
    return exits.DONE if found.passed else exits.NOT_VERIFIED


@app.command(epilog=EPILOG)
def reproduce(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Of the paper: all, table1 to table5, figure-queue, figure-occupancy, "
            "figure-network or figure-convergence. Ours: beyond.",
        ),
    ],
    episodes: Annotated[
        int | None, typer.Option(min=2, help="Per policy (table2: and sample), or per estimate.")
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="table1, table5: exact values only, no simulation.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version of it; all in a few minutes.")
    ] = False,
    samples: Annotated[
        int | None,
        typer.Option(min=1, help="table2, beyond: samples of states; 5 and 10 by default."),
    ] = None,
    states: Annotated[
        str | None,
        typer.Option(help="How many constraint states, as in 5000,20000."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write NAME.json, .csv, .txt and .tex there, pictures and index.html; all, "
            "table2 and beyond go on from there. all: reproduction, or reproduction-quick, by "
            "default.",
        ),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    json: JsonFile = None,
) -> int:
    """Compute a table or figure of the paper again, or all, beside the paper's own numbers."""
    check_writable(json)
    check_folder(out)
    words: dict[str, Any] = {
        "episodes": episodes,
        "samples": samples,
        "states": parse.whole_numbers(states, "--states"),
        "exact": exact,
        "quick": quick,
        "seed": seed,
        "jobs": jobs,
    }
    compute = reproducing.everything if name == "all" else reproducing.one
    with Progress(name, context.obj) as progress:
        outcome = compute(name, out, words, progress)
    outcome.show(console(json))
    write_document(json, outcome.document)
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
