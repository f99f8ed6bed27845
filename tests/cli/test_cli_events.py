"""The command line for models that cannot be enumerated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_runs import failure, solved

import bellweight as bw
from bellweight.cli import exits, sources
from bellweight.cli.main import run
from bellweight.cli.progress import Progress
from bellweight.cli.sampling import SampleWords, sample
from bellweight.common.streams import stream_keys
from bellweight.problems import QueueNetwork

NETWORK = ["queue_network", "--states", "150", "--episodes", "30"]

FACTORIES = """
import bellweight as bw


def cost(state):
    return state[0] + 2.0 * state[1]


def tandem():
    # Uncompiled, so that nobody waits for the compiler.
    return bw.EventModel(
        dimension=2,
        actions=["[red]first", "second"],
        events=["arrival", "service 1", "service 2"],
        cost=cost,
        probability=[[0.2, 0.5, 0.0], [0.2, 0.0, 0.6]],
        move=[[1, 0], [-1, 1], [0, -1]],
        discount=0.8,
        initial=bw.models.Geometric(0.7),
        compiled=False,
        name="tandem",
    )


def crowded():
    return bw.EventModel(
        dimension=1,
        actions=["go"],
        events=["up"],
        cost=cost,
        probability=[[1.5]],
        move=[[1]],
        discount=0.8,
        compiled=False,
    )
"""
TANDEM = ["--states", "30", "--episodes", "20", "--horizon", "40"]


@pytest.fixture
def tandem(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(FACTORIES, encoding="utf-8")
    return f"{tmp_path / 'mine.py'}:tandem"


@pytest.fixture(scope="module")
def network() -> bw.EventModel:
    return bw.problems.queue_network()


def drawn(document: dict[str, Any], model: bw.EventModel) -> Any:
    """The states that a document says were drawn."""
    facts = document["sample"]
    return bw.sample_states(model, facts["states"], seed=facts["seed"])


@pytest.mark.parametrize(
    ("words", "method"),
    [
        ([], bw.DIA()),
        (["--method", "fixed"], bw.Fixed()),
        (["--method", "random"], bw.FromPolicy()),
        (["--method", "pia", "--max-iterations", "2"], bw.PIA()),
        (["--method", "dia", "--target", "fixed:initial"], bw.DIA(target=bw.Fixed())),
    ],
)
def test_methods_are_those_of_the_library(
    words: list[str], method: bw.weights.Method, tmp_path: Path, network: bw.EventModel
) -> None:
    limited = "--max-iterations" in words
    code = exits.NOT_CONVERGED if limited else exits.DONE
    document = solved([*NETWORK, "--seed", "4", *words], tmp_path, code)
    result = bw.solve(
        network,
        bw.Polynomial(2),
        method,
        rows=bw.SampledRows(drawn(document, network)),
        simulation=bw.Simulation(30),
        stop=bw.Stop(max_iterations=2) if limited else None,
        seed=4,
    )
    assert document["method"] == type(method).__name__
    assert document["status"] == result.status.name
    assert document["coef"] == pytest.approx(result.coef, rel=1e-9)
    assert document["moments"] == pytest.approx(result.moments, rel=1e-12)
    assert len(document["basis"]) == 45


def test_solve_says_which_states_and_what_next(
    tmp_path: Path, network: bw.EventModel, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = str(tmp_path / "run.npz")
    document = solved([*NETWORK, "--save", saved], tmp_path)
    text = capsys.readouterr().out
    states = drawn(document, network)
    totals = f"largest total {states.sum(axis=1).max()}, largest coordinate {states.max()}"
    assert f"states 150 from the initial distribution; {totals}" in " ".join(text.split())
    assert "occupancy   30 episodes of 1,379 steps" in text
    assert "policy  " not in text
    assert f"next        bellweight evaluate {saved} --model queue_network" in text
    assert document["sample"]["horizon"] == 1_379
    assert document["support"][0]["action_label"].startswith("serve ")
    assert len(document["support"][0]["state"]) == 8


def test_rows_and_episodes_share_no_random_numbers(network: bw.EventModel) -> None:
    found = sample(SampleWords(states=150), network, seed=0)
    assert found is not None
    rows = {tuple(state) for state in found.rows.states.tolist()}
    first = network.sample_initial(0, 150, stream_keys(0)[0])
    assert len(rows & {tuple(state) for state in first.tolist()}) < 3
    other = sample(SampleWords(states=150), network, seed=1)
    assert other is not None
    assert not np.array_equal(found.rows.states, other.rows.states)


def test_evaluate_a_saved_result(
    tmp_path: Path, network: bw.EventModel, capsys: pytest.CaptureFixture[str]
) -> None:
    saved, target = str(tmp_path / "run.npz"), tmp_path / "cost.json"
    assert run(["solve", *NETWORK, "--seed", "4", "--save", saved]) == exits.DONE
    capsys.readouterr()
    words = ["evaluate", saved, "--model", "queue_network", "--episodes", "50"]
    assert run([*words, "--jobs", "1", "--json", str(target)]) == exits.DONE
    text = capsys.readouterr().out
    assert "(50 episodes of 1379 steps" in text
    assert "exact" not in text
    found = json.loads(target.read_text(encoding="utf-8"))["evaluation"]
    # Not the seed of the run, whose episodes shaped the policy.
    assert found["seed"] == 5
    policy = bw.Result.load(saved, model=network).policy
    assert found["mean"] == bw.evaluate(network, policy, 50, seed=5).mean
    assert run([*words, "--seed", "0", "--json", str(target)]) == exits.DONE
    assert json.loads(target.read_text(encoding="utf-8"))["evaluation"]["seed"] == 0


def test_a_result_of_another_network_is_refused(
    tmp_path: Path, tandem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = str(tmp_path / "run.npz")
    assert run(["solve", tandem, *TANDEM, "--save", saved]) == exits.DONE
    capsys.readouterr()
    code, line = failure(["evaluate", saved, "--model", "queue_network"], capsys)
    assert code == exits.BAD_INPUT
    assert "belongs to another model" in line


def test_factories_may_return_event_models(
    tmp_path: Path, tandem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    document = solved([tandem, *TANDEM, "--states-from", "random", "--basis", "affine"], tmp_path)
    assert document["model"] == "tandem"
    assert len(document["coef"]) == 3
    assert document["sample"]["from"] == "the occupancy of the uniform policy"
    assert {entry["action_label"] for entry in document["support"]} <= {"[red]first", "second"}
    assert "30 from the occupancy of the uniform policy" in capsys.readouterr().out


def test_a_run_resumes_to_the_same_answer(
    tmp_path: Path, tandem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = str(tmp_path / "run.npz")
    words = [tandem, *TANDEM, "--seed", "3"]
    method = ["--method", "pia", "--step-size", "0.3"]
    exact = ["--tol", "1e-12"]  # not the noise of so few episodes
    halfway = [*method, *exact, "--max-iterations", "2", "--save", saved]
    solved([*words, *halfway], tmp_path, exits.NOT_CONVERGED)
    text = capsys.readouterr().out
    again = f"bellweight solve {' '.join(words)} --resume {saved} --save {saved}"
    assert f"next        {again}" in text
    most = ["--max-iterations", "4"]
    code = exits.NOT_CONVERGED
    resumed = solved([*words, "--resume", saved, *most], tmp_path, code)
    straight = solved([*words, *method, *exact, *most], tmp_path, code)
    assert resumed["iterations"] == straight["iterations"] == 4
    assert resumed["moments"] == pytest.approx(straight["moments"], rel=1e-10)
    capsys.readouterr()
    code, line = failure(["solve", *words[:-1], "4", "--resume", saved], capsys)
    assert code == exits.WRONG_USAGE
    assert "--seed is 4, the saved run's is 3" in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["solve", "single_queue", "--states", "9"], "--states does not go with a tabular model"),
        (["solve", "single_queue", "--states-from", "random"], "--states-from does not go with"),
        (
            ["solve", "single_queue", "--episodes", "9"],
            "--episodes does not go with a tabular model",
        ),
        (["solve", *NETWORK, "--method", "fixed", "--weights", "uniform"], "expected initial"),
        (["solve", *NETWORK, "--start", "geometric:0.5"], "expected initial for an event"),
        (["solve", *NETWORK, "--states-from", "nowhere"], "expected initial or random"),
        (["solve", "queue_network", "--states", "0"], "--states"),
        (["solve", "queue_network", "--episodes", "1"], "--episodes"),
        (["solve", "queue_network", "--option", "speed=1"], "expected arrivals,"),
        (["reproduce", "table1", "--samples", "3"], "--samples does not go with table1"),
        (["reproduce", "all", "--episodes", "9"], "--episodes does not go with all"),
        (["reproduce", "table2", "--exact"], "--exact does not go with table2"),
        (["reproduce", "table2", "--states", "many"], "such as 5000,20000"),
        (["reproduce", "table2", "--states", "5000,0"], "such as 5000,20000"),
        (["reproduce", "figure-convergence", "--states", "9,8"], "takes one number"),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = failure(arguments, capsys)
    assert code == exits.WRONG_USAGE
    assert words in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--option", "discount=2"], "discount is 2"),
        (["--option", "initial=full"], "'geometric', 'empty'"),
        (["--option", "arrivals=0.1,0.1"], "services is missing"),
        (["--horizon", "10"], "horizon 10 leaves out 95 %"),
        (["--option", "initial=empty", "--states", "2"], "distinct states"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = failure(["solve", "queue_network", *arguments], capsys)
    assert code == exits.BAD_INPUT
    assert words in line


def test_a_bad_factory_is_one_line(tandem: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, line = failure(["solve", tandem.replace("tandem", "crowded")], capsys)
    assert code == exits.BAD_INPUT
    assert "sum to 1.5" in line


FEW = ["solve", "queue_network", "--method", "fixed", "--states"]


def test_too_few_states_are_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    code, line = failure([*FEW, "3"], capsys)
    assert code == exits.SOLVER_ERROR
    assert "3 sampled states do not tell the 45 basis functions apart" in line
    assert "add constraint states" in line


def test_few_states_whose_program_is_bounded_are_warned_of(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run([*FEW, "30"]) == exits.DONE
    told = " ".join(capsys.readouterr().out.split())
    assert "warning 30 sampled states do not tell the 45 basis functions apart" in told
    assert "add constraint states" in told


def test_networks_can_be_written_on_the_command_line() -> None:
    words = ["arrivals=0.1,0", "services=0.3,0.2", "routes=1,none", "groups=0;1", "decay=0.5"]
    made = sources.model("queue_network", sources.options(words))
    assert isinstance(made, bw.EventModel)
    network = QueueNetwork([0.1, 0], [0.3, 0.2], [1, None], [[0], [1]])
    assert made.digest == network.model(decay=0.5).digest
    assert sources.options(["groups=0,1;2", "upper=none", "compiled=false", "initial=3,4"]) == {
        "groups": [[0, 1], [2]],
        "upper": None,
        "compiled": False,
        "initial": [3, 4],
    }


def test_every_shipped_problem_is_listed_with_its_defaults(
    tmp_path: Path, network: bw.EventModel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["problems", "--json", str(tmp_path / "p.json")]) == exits.DONE
    text = capsys.readouterr().out
    assert "queue_network         The paper's eight queues with shared servers" in text
    listed = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))["problems"]
    assert [problem["name"] for problem in listed] == [
        "single_queue",
        "queue_network",
        "scheduling",
        "ageing_stock",
        "continuous_inventory",
        "lost_sales",
        "perishable_inventory",
        "computer_network",
        "computer_ring",
        "computer_star",
        "machine_maintenance",
    ]
    parameters = listed[1]["parameters"]
    assert "groups=0,2,7;1,5;3,4,6" in parameters
    assert "routes=1,2,none,4,5,6,7,none" in parameters
    # What is listed can be typed: the default data give the default network, up to printed digits.
    whole = [word for word in parameters if word.split("=")[0] in ("routes", "groups", "upper")]
    rates = {"arrivals": QueueNetwork().arrivals, "services": QueueNetwork().services}
    made = sources.model("queue_network", {**sources.options(whole), **rates})
    assert made.digest == network.digest


def test_progress_speaks_of_noise_while_it_is_simulated(
    tandem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(Progress, "tell", lambda _, text, share=0.0: told.append(text))
    assert run(["solve", tandem, *TANDEM]) == exits.DONE
    assert any("standard errors" in text for text in told)
