"""Sweeps on a toy: they search, give up early, go on after a stop, and write the best."""

from __future__ import annotations

import csv
import os
import signal
from pathlib import Path

import pytest

from yardmaster.agents.learners import LEARNERS
from yardmaster.agents.ppo import PPO
from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.experiments.training import read_config
from yardmaster.experiments.training.spaces import SPACES, Between, OneOf, space_of
from yardmaster.experiments.training.tables import to_toml
from yardmaster.experiments.training.tuning import tune

pytest.importorskip("optuna")
VARY = ("learning_rate", "epochs", "network.hidden")


@pytest.fixture
def short(small):
    return small(train={"steps": 512, "eval_every": 256})


@pytest.mark.usefixtures("toy")
def test_a_sweep_writes_the_best(short, out: Path):
    """The best trial is that with the best score, and its file is ready for training."""
    heard = []
    result = tune(short, out=out, trials=3, vary=VARY, on_trial=heard.append)
    assert result.is_complete
    assert [trial.number for trial in result.trials] == [0, 1, 2]
    assert heard == list(result.trials)
    assert result.best is not None
    assert result.best.score == max(trial.score or -99 for trial in result.trials)
    best = read_config(out / "best.toml")
    assert best.settings.learning_rate == result.best.values["learning_rate"]
    assert best.settings.epochs == result.best.values["epochs"]
    assert "x".join(map(str, best.settings.network.hidden)) == result.best.values["network.hidden"]
    assert best.train == short.train
    with (out / "trials.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["learning_rate"]) for row in rows] == [
        trial.values["learning_rate"] for trial in result.trials
    ]


@pytest.mark.usefixtures("toy")
def test_a_sweep_goes_on(short, out: Path):
    """A second call adds trials to those of the first, and draws other values."""
    first = tune(short, out=out, trials=2, vary=VARY)
    said: list[str] = []
    second = tune(short, out=out, trials=3, vary=VARY, announce=said.append)
    assert second.trials[:2] == first.trials
    assert len(second.trials) == 3
    assert len({trial.values["learning_rate"] for trial in second.trials}) == 3
    assert said[0].endswith("2 trials so far.")


@pytest.mark.usefixtures("toy")
def test_an_interrupted_trial_is_run_again(short, out: Path):
    """Ctrl-C ends the sweep; its trial does not count, and the next one has its values."""

    def press(_progress):
        os.kill(os.getpid(), signal.SIGINT)

    stopped = tune(short, out=out, trials=2, vary=VARY, on_progress=press)
    assert not stopped.is_complete
    assert stopped.trials == ()
    interrupted = read_config(out / "trials" / "0000" / "config.toml").settings
    again = tune(short, out=out, trials=1, vary=VARY)
    assert again.trials[0].number == 1
    assert again.trials[0].values["learning_rate"] == interrupted.learning_rate


@pytest.mark.usefixtures("toy")
def test_bad_trials_are_given_up(short, out: Path, monkeypatch: pytest.MonkeyPatch):
    """After some trials, one that is worse than their median at the same moment is pruned."""
    scores = iter([10.0] * 15 + [1.0] * 15)

    def scored(self, choose, **moment):
        found = honest(self, choose, **moment)
        means = dict(found.means) | {"returns": next(scores)}
        return type(found)(
            found.updates, found.steps, found.seconds, found.metric, means, {}, found.is_best
        )

    from yardmaster.experiments.training.referee import Referee

    honest = Referee.evaluate
    monkeypatch.setattr(Referee, "evaluate", scored)
    result = tune(short, out=out, trials=6, vary=VARY)
    assert [trial.state for trial in result.trials] == ["finished"] * 5 + ["pruned"]
    assert result.trials[-1].steps < 512


@pytest.mark.usefixtures("toy")
def test_failed_trials_are_counted(short, out: Path, monkeypatch: pytest.MonkeyPatch):
    """A trial whose loss becomes NaN fails, and the sweep goes on without it."""
    honest = PPO.update
    monkeypatch.setattr(PPO, "update", lambda self: honest(self) | {"loss": float("nan")})
    result = tune(short, out=out, trials=1, vary=VARY)
    assert [trial.state for trial in result.trials] == ["failed"]
    assert result.best is None
    assert not (out / "best.toml").exists()


@pytest.mark.usefixtures("toy")
def test_other_folders_are_left_alone(short, small, out: Path):
    """A folder of something else, or of another sweep, is refused."""
    out.mkdir()
    (out / "mine.txt").write_text("x")
    with pytest.raises(YardmasterError, match="is not a sweep"):
        tune(short, out=out, trials=1, vary=VARY)
    other = out.with_name("other")
    tune(short, out=other, trials=1, vary=VARY)
    with pytest.raises(YardmasterError, match="another configuration"):
        tune(small(train={"seed": 9}), out=other, trials=1, vary=VARY)


class Extreme:
    """A trial that always suggests one end of what it is offered."""

    def __init__(self, place: int) -> None:
        self.place = place

    def suggest_int(self, _name, low, high, *, log):
        """Return the end of a range."""
        assert not log or low > 0
        return (low, high)[self.place]

    suggest_float = suggest_int

    def suggest_categorical(self, _name, labels):
        """Return the first or the last."""
        return labels[self.place]


@pytest.mark.parametrize("place", [0, -1], ids=["least", "most"])
@pytest.mark.parametrize("learner", list(LEARNERS))
def test_spaces_fit_their_learners(learner: str, place: int, tmp_path: Path):
    """Both ends of every range are settings that the learner takes, and that files can hold."""
    table: dict = {"name": learner, "network": {}}
    for name, part in SPACES[learner].items():
        group, _, key = name.rpartition(".")
        (table[group] if group else table)[key] = part.suggested(name, Extreme(place))
    config = read_config(None, {"learner": table})
    path = tmp_path / "config.toml"
    path.write_text(to_toml(config.tables()))
    assert read_config(path) == config


def test_spaces_are_told_in_words():
    """What is varied can be printed."""
    assert Between(1e-4, 3e-3, log=True).words() == "0.0001 … 0.003, by factors"
    assert OneOf(((16, 16), (32,))).words() == "16x16, 32"


def test_only_known_settings_are_varied():
    """A name outside the learner's space is met with suggestions."""
    assert list(space_of("ppo", ["clip"])) == ["clip"]
    with pytest.raises(UnknownNameError, match="Did you mean 'clip'"):
        space_of("ppo", ["clipp"])
