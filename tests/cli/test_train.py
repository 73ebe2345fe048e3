"""`yardmaster train` as a user meets it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from yardmaster.cli.app import main
from yardmaster.cli.train import LearningOptions, words
from yardmaster.experiments.training import Progress

# The commands are run in this process, as if from a terminal: torch takes seconds to load.
pytestmark = pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens")
TINY = (
    "--cluster", "pool:8", "--jobs", "24", "--window", "4", "--steps", "256", "--envs", "8",
    "--eval-every", "128", "--eval-episodes", "2", "--threads", "1", "--no-tensorboard",
)  # fmt: skip
LEARNER = """
[learner]
steps_per_update = 128
epochs = 1
minibatches = 1
[learner.network]
hidden = [4]
[task]
episodes = 4
[train]
warm_start_steps = 512
"""


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Return a function that runs `yardmaster …` and returns code, output and remarks."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(LEARNER)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["yardmaster", *arguments])
        code = 0
        try:
            main()
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        out, error = capsys.readouterr()
        return code, out, error

    return run


def test_training_prints_and_writes(command, tmp_path: Path):
    """A run says how good its best policy is against heuristics, and leaves its folder."""
    code, out, error = command(
        "train", "--config", "mine.toml", *TINY, "--against", "fifo,sjf", "--warm-start", "sjf",
        "-o", "run",
    )  # fmt: skip
    assert code == 0, error
    assert "run: finished after 256 steps" in out
    assert "best policy on validation: returns" in out
    assert "  sjf+skip: " in out
    assert "It reads true run times: for a live cluster train with --information estimate." in out
    assert "The network decides as sjf in" in error
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names >= {
        "config.toml", "run.json", "progress.jsonl", "evaluations.jsonl", "curve.csv", "curve.png",
        "checkpoints", "policy.npz",
    }  # fmt: skip
    code, _, error = command("train", "--config", "mine.toml", *TINY, "-o", "run")
    assert code == 2
    assert "run already exists; choose another place with --out. --resume run goes on" in error


def test_training_for_programs(command, tmp_path: Path):
    """With --json the result is one document; a resumed run may only be longer."""
    code, out, error = command("train", "--config", "mine.toml", *TINY, "-o", "run", "--json", "-q")
    assert (code, error) == (0, "")
    document = json.loads(out)
    assert (document["status"], document["steps"]) == ("finished", 256)
    assert set(document["best"]["means"]) >= {"returns", "jct_s", "unfinished"}
    assert 'information = "clairvoyant"' in (tmp_path / "run/config.toml").read_text()
    code, out, error = command("train", "--resume", "run", "--steps", "384", "-q")
    assert code == 0, error
    assert "run: finished after 384 steps" in out
    code, _, error = command("train", "--resume", "run", "--seed", "3")
    assert code == 2
    assert "beside --resume, only --steps can be given" in error
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--learner", "pppo"], "Unknown learner 'pppo'. Did you mean 'ppo'?"),
        (["--task", "gpuoptimizer"], "Unknown task 'gpuoptimizer'. Did you mean 'gpu-optimizer'"),
        (["--preset", "baseline"], "Unknown preset of ppo 'baseline'"),
        (["--policy-arch", "kernle"], "Unknown network architecture 'kernle'. Did you mean"),
        (["--lookahead", "cfd"], "Unknown lookahead 'cfd'. Did you mean 'cdf'"),
        (["--reward", "waitt"], "Unknown reward 'waitt'. Did you mean 'wait'"),
        (["--metric", "jct"], "Did you mean 'jct_s'"),
        (["--against", "sjff"], "Did you mean 'sjf'"),
        (["--warm-start", "sjff"], "Did you mean 'sjf'"),
        (["--learner", "d3qn", "--warm-start", "sjf"], "d3qn learns values of actions"),
        (["--steps", "0"], "train.steps: must be at least 1, got 0"),
        (["--checkpoint-every", "soon"], "train.checkpoint_every: must be a number of steps"),
        (["--config", "none.toml"], "none.toml: 1 mistake\n  - there is no such file"),
        (["--device", "cuda"], "no CUDA device"),
        (["--resume", "nowhere"], "nowhere is not the folder of a training run"),
    ],
    ids=[
        "learner", "task", "preset", "arch", "lookahead", "reward", "metric", "against", "warm",
        "values", "steps", "interval", "file", "device", "resume",
    ],
)  # fmt: skip
def test_mistakes_are_told(command, arguments: list[str], complaint: str, tmp_path: Path):
    """A mistake ends with code 2 and a hint, and leaves nothing behind."""
    small = () if "--resume" in arguments else ("--jobs", "4", "--window", "4", "--envs", "2")
    code, out, error = command("train", *small, *arguments)
    assert (code, out) == (2, "")
    assert complaint in error
    assert not (tmp_path / "runs").exists()


def test_mistakes_in_a_file_name_it(command, tmp_path: Path):
    """A wrong key in a file is told with the file's name and the key's place."""
    (tmp_path / "bad.toml").write_text("[learner]\nclipp = 0.1\n[train]\nstep = 5\n")
    code, _, error = command("train", "--config", "bad.toml")
    assert code == 2
    assert "bad.toml: 2 mistakes" in error
    assert "learner.clipp: unknown key. Did you mean 'clip'" in error
    assert "train.step: unknown key. Did you mean 'steps'" in error


def test_options_become_tables():
    """Only what was given stands in the tables."""
    assert LearningOptions().tables() == {}
    options = LearningOptions(
        task="default", information="blind", policy_arch="mlp", against="a, b+easy", seed=0
    )
    assert options.tables() == {
        "task": {"preset": "default", "information": "blind"},
        "learner": {"network": {"arch": "mlp"}},
        "train": {"seed": 0, "against": ["a", "b+easy"]},
    }


def test_progress_in_words():
    """One line tells steps, pace, time left, and the best against the heuristics."""
    progress = Progress(
        steps=120_000, total_steps=1_000_000, steps_per_s=43_210.4, eta_s=75.2, metric="jct_s",
        best=1071.25, latest=1102.5, heuristics={"sjf": 1160.0, "sjf+easy": 1101.0}, scalars={},
    )  # fmt: skip
    assert words(progress) == (
        "120,000/1,000,000 steps, 43,210/s, 1:15 left; jct_s 1102 now, 1071 at best"
        " (sjf+skip 1160, sjf+easy 1101)"
    )
    first = replace(progress, steps=8192, total_steps=8000, eta_s=math.nan, best=None)
    assert words(first) == "8,000/8,000 steps"


def test_a_best_policy_that_never_trained_is_told(command):
    """When nothing beat the network of step 0, the end of the run says so and what to try."""
    Path("mine.toml").write_text(LEARNER.replace("epochs = 1", "epochs = 1\nlearning_rate = 1e-12"))
    code, out, error = command(
        "train", "--config", "mine.toml", *(part if part != "256" else "512" for part in TINY),
        "--information", "estimate", "-o", "run",
    )  # fmt: skip
    assert code == 0, error
    assert "at 0 steps" in out
    assert "The best policy is the untrained network: training has not helped yet. Try" in out
    assert "Warning at 384 steps: The best policy is the untrained network" in error
    assert "true run times" not in out


def test_training_a_chooser(command, tmp_path: Path):
    """Regimes and menu are options; the result is a scheduler for `meta:`."""
    (tmp_path / "mine.toml").write_text("[learner]\nsteps_per_update = 128\nepochs = 1\n")
    code, out, error = command(
        "train", "--config", "mine.toml", "--task", "regimes", "--learner", "ppo", "--regimes",
        "base-low-2", "--menu", "srpt+skip,edf+skip", "--reward", "p95", "--metric", "p95_gap",
        "--steps", "256", "--envs", "4", "--eval-episodes", "2", "--threads", "1",
        "--no-tensorboard", "-o", "run",
    )  # fmt: skip
    assert code == 0, error
    assert "best policy on validation: p95_gap" in out
    assert "  edf+skip: " in out
    assert (tmp_path / "run" / "curve.png").is_file()
    code, out, error = command("simulate", "-s", "meta:run", "--jobs", "40", "--json")
    assert code == 0, error
    code, _, error = command("evaluate", "run")
    assert code == 2
    assert "yardmaster compare --schedulers srpt+skip,meta:run" in error
    code, _, error = command("evaluate", "run", "--task", "regimes")
    assert code == 2
