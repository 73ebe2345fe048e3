"""Sweeps: many short training runs, each with settings that the ones before suggest.

The folder of a sweep:

```
config.toml     what all trials have in common
study.db        the trials so far (Optuna, SQLite): a sweep that was stopped goes on from it
trials.csv      the same as a table
trials/0000/ …  the folder of each trial's training run
best.toml       the configuration of the best trial, for `train --config`
```
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from yardmaster.errors import YardmasterError
from yardmaster.experiments.training.config import Layer, TrainConfig, config_from
from yardmaster.experiments.training.evaluation import ANY_HIGHER_IS_BETTER, Evaluation
from yardmaster.experiments.training.folder import write_whole
from yardmaster.experiments.training.run import train
from yardmaster.experiments.training.spaces import Space, space_of
from yardmaster.experiments.training.standing import Progress, TrainResult
from yardmaster.experiments.training.tables import to_toml
from yardmaster.experiments.training.watch import TrainingFailedError

TrialState = Literal["finished", "pruned", "failed"]
STARTUP_TRIALS = 5
"""Trials before any is given up for being worse than the median, and guesses are educated."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One training run of a sweep."""

    number: int
    state: TrialState
    """`pruned`: given up early, being worse than most at the same moment."""
    score: float | None
    """Best score on the validation episodes."""
    steps: int
    seconds: float
    values: Mapping[str, Any]
    """What was varied."""


@dataclass(frozen=True, slots=True)
class TuneResult:
    """What came of a sweep."""

    folder: Path
    metric: str
    trials: tuple[Trial, ...]
    """In the order in which they ran."""
    best: Trial | None
    is_complete: bool
    """False if somebody pressed Ctrl-C."""


def tune(
    config: TrainConfig,
    *,
    out: Path,
    trials: int,
    vary: Sequence[str] = (),
    announce: Callable[[str], None] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_trial: Callable[[Trial], None] | None = None,
) -> TuneResult:
    """Search for good settings of a learner.

    Args:
        config: what all trials have in common; `train.steps` is the length of one.
        out: the sweep's folder; a sweep that is there already goes on.
        trials: how many there will be in all, earlier ones included.
        vary: names of settings to vary; by default all of the learner's space.
        announce: told in sentences what happens.
        on_progress: told how far the trial at hand is.
        on_trial: told of every trial that ended.

    Raises:
        YardmasterError: if Optuna is missing, a name is unknown, or the folder belongs to a sweep
            with another configuration.
    """
    sweep = _Sweep(config, out, space_of(config.learner, vary), announce or _nothing)
    is_complete = True
    while len(sweep.trials()) < trials and is_complete:
        is_complete = sweep.run_one(on_progress)
        if is_complete and on_trial is not None:
            on_trial(sweep.trials()[-1])
        sweep.write_down()
    return TuneResult(
        folder=out,
        metric=config.train.metric,
        trials=tuple(sweep.trials()),
        best=sweep.best(),
        is_complete=is_complete,
    )


def _nothing(_news: str) -> None:
    """Tell nobody."""


class _Sweep:
    """A study of Optuna, and the folder it lives in."""

    def __init__(
        self, config: TrainConfig, out: Path, space: Space, announce: Callable[[str], None]
    ) -> None:
        try:
            import optuna
        except ImportError:
            raise YardmasterError("Sweeps need Optuna: pip install 'optuna>=4'.") from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.optuna = optuna
        self.config = config
        self.out = out
        self.space = space
        self.announce = announce
        self._refuse_other_folder()
        (out / "trials").mkdir(parents=True, exist_ok=True)
        is_new = not (out / "study.db").exists()
        self.study = self._opened()
        if is_new:
            write_whole(out / "config.toml", to_toml(config.tables()))
        else:
            self._take_up()

    def _refuse_other_folder(self) -> None:
        out, file = self.out, self.out / "config.toml"
        if not out.exists():
            return
        if not (out / "study.db").is_file() and (not out.is_dir() or any(out.iterdir())):
            raise YardmasterError(f"{out} exists and is not a sweep; choose another --out.")
        if file.is_file() and file.read_text(encoding="utf-8") != to_toml(self.config.tables()):
            raise YardmasterError(
                f"{out} is a sweep with another configuration (see its config.toml); choose"
                " another --out."
            )

    def _opened(self) -> Any:
        optuna = self.optuna
        higher = ANY_HIGHER_IS_BETTER[self.config.train.metric]
        storage = f"sqlite:///{(self.out / 'study.db').resolve()}"
        study = optuna.create_study(
            study_name="sweep",
            storage=storage,
            load_if_exists=True,
            direction="maximize" if higher else "minimize",
            pruner=optuna.pruners.MedianPruner(n_startup_trials=STARTUP_TRIALS),
        )
        # Not the seed alone: a sweep that goes on must not draw the same values again.
        study.sampler = optuna.samplers.TPESampler(
            n_startup_trials=STARTUP_TRIALS, seed=self.config.train.seed + len(study.trials)
        )
        return study

    def _take_up(self) -> None:
        """Run again, first of all, what an earlier process could not finish."""
        states = self.optuna.trial.TrialState
        for trial in self.study.get_trials(deepcopy=False, states=(states.RUNNING,)):
            self.study.tell(trial.number, state=states.FAIL)
            self.study.enqueue_trial(trial.params)
        if done := len(self.trials()):
            self.announce(f"Going on with the sweep in {self.out}: {done} trials so far.")

    def run_one(self, on_progress: Callable[[Progress], None] | None) -> bool:
        """Run one trial; return False if it was interrupted."""
        states = self.optuna.trial.TrialState
        trial = self.study.ask()
        values = {name: part.suggested(name, trial) for name, part in self.space.items()}
        try:
            result = self._trained(trial, values, on_progress)
        except TrainingFailedError as error:
            self.announce(f"Trial {trial.number}: {error}")
            trial.set_user_attr("reason", str(error))
            self.study.tell(trial, state=states.FAIL)
            return True
        if result.status == "interrupted":
            self.study.tell(trial, state=states.FAIL)
            self.study.enqueue_trial(trial.params)
            return False
        trial.set_user_attr("steps", result.steps)
        trial.set_user_attr("seconds", result.seconds)
        trial.set_user_attr("score", result.best.score if result.best else None)
        if result.best is None or trial.should_prune():
            self.study.tell(trial, state=states.PRUNED)
        else:
            self.study.tell(trial, result.best.score)
        return True

    def _trained(
        self,
        trial: Any,
        values: Mapping[str, Any],
        on_progress: Callable[[Progress], None] | None,
    ) -> TrainResult:
        def is_hopeless(found: Evaluation) -> bool:
            # By how far it is, not by which evaluation: that is what trials have in common.
            trial.report(found.score, found.steps // self.config.train.eval_every)
            return bool(trial.should_prune())

        result = train(
            self.with_values(values),
            out=self.out / "trials" / f"{trial.number:04}",
            overwrite=True,
            announce=self.announce,
            on_progress=on_progress,
            stop_when=is_hopeless,
        )
        # Trials are not resumed, and with a memory in it this file is large.
        (result.folder / "checkpoints" / "last.pt").unlink(missing_ok=True)
        return result

    def with_values(self, values: Mapping[str, Any]) -> TrainConfig:
        """Return the common configuration with the values of a trial."""
        learner: dict[str, Any] = {"network": {}}
        for name, value in values.items():
            table, _, key = name.rpartition(".")
            (learner[table] if table else learner)[key] = value
        common = self.config.tables()
        return config_from([Layer(common, "the sweep"), Layer({"learner": learner}, "the trial")])

    def trials(self) -> list[Trial]:
        """Return the trials that ended; those that were interrupted do not count."""
        found = [self._trial(trial) for trial in self.study.get_trials(deepcopy=False)]
        return [trial for trial in found if trial is not None]

    def _trial(self, trial: Any) -> Trial | None:
        attributes = trial.user_attrs
        states: dict[str, TrialState] = {"COMPLETE": "finished", "PRUNED": "pruned"}
        if "reason" in attributes:
            states["FAIL"] = "failed"
        if trial.state.name not in states:
            return None
        return Trial(
            number=trial.number,
            state=states[trial.state.name],
            score=attributes.get("score"),
            steps=attributes.get("steps", 0),
            seconds=attributes.get("seconds", 0.0),
            values=dict(trial.params),
        )

    def best(self) -> Trial | None:
        """Return the best trial that was trained to its end."""
        done = [one for one in self.trials() if one.state == "finished" and one.score is not None]
        if not done:
            return None
        sign = 1.0 if ANY_HIGHER_IS_BETTER[self.config.train.metric] else -1.0
        return max(done, key=lambda trial: sign * (trial.score or 0.0))

    def write_down(self) -> None:
        """Write the table of trials, and the configuration of the best."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["trial", "state", "score", "steps", "seconds", *self.space])
        for trial in self.trials():
            values = [trial.values.get(name) for name in self.space]
            writer.writerow(
                [trial.number, trial.state, trial.score, trial.steps, trial.seconds, *values]
            )
        write_whole(self.out / "trials.csv", text.getvalue())
        best = self.best()
        if best is not None:
            config = self.out / "trials" / f"{best.number:04}" / "config.toml"
            write_whole(self.out / "best.toml", config.read_text(encoding="utf-8"))
