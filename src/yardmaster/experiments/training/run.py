"""Training a learner, with evaluations, checkpoints and early warnings."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.experiments.training.about import now, provenance
from yardmaster.experiments.training.config import Layer, TrainConfig, completed, config_from
from yardmaster.experiments.training.curve import write_curve
from yardmaster.experiments.training.evaluation import Evaluation, evaluation_of
from yardmaster.experiments.training.folder import (
    RunFolder,
    add_line,
    cut_back,
    read_json,
    read_lines,
    write_json,
    write_whole,
)
from yardmaster.experiments.training.interruption import asked_to_stop
from yardmaster.experiments.training.referee import Referee
from yardmaster.experiments.training.scalars import TensorBoard, event_library
from yardmaster.experiments.training.sources import refuse_changed, sources_of
from yardmaster.experiments.training.standing import Progress, Standing, Status, TrainResult
from yardmaster.experiments.training.tables import to_toml
from yardmaster.experiments.training.warm_start import refuse_impossible, warm_start
from yardmaster.experiments.training.watch import UNHELPED, Watch, refuse_non_finite, untrained

Announce = Callable[[str], None]


def train(
    config: TrainConfig,
    *,
    out: Path,
    resume: bool = False,
    overwrite: bool = False,
    announce: Announce | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    stop_when: Callable[[Evaluation], bool] | None = None,
) -> TrainResult:
    """Train a learner in a run folder.

    Ctrl-C finishes the update at hand and writes a checkpoint. On the CPU, a run that was
    interrupted or killed and then resumed ends with the same weights, scalars and evaluations as
    one that never was.

    Args:
        config: what to do.
        out: the run's folder; see `yardmaster.experiments.training.folder`.
        resume: go on from the last checkpoint of a run in that folder.
        overwrite: replace an earlier run in that folder.
        announce: told in sentences what happens.
        on_progress: told after every update how far the run is.
        stop_when: asked after every evaluation whether to stop early.

    Raises:
        TrainingFailedError: if losses or weights become NaN or infinite; the last good checkpoint
            is kept.
        YardmasterError: if the configuration cannot be carried out.
    """
    folder = RunFolder(out)
    if resume:
        folder.refuse_if_not_run()
    say = announce or _nothing
    training = _Training(config, folder, say, on_progress or _nothing, stop_when)
    if not resume:
        folder.create(overwrite=overwrite)
    with folder.held(), asked_to_stop(say) as is_asked:
        return training.carry_out(is_asked, resume=resume)


def _nothing(_news: Any) -> None:
    """Tell nobody."""


class _Training:
    """One process working on a run."""

    def __init__(
        self,
        config: TrainConfig,
        folder: RunFolder,
        announce: Announce,
        on_progress: Callable[[Progress], None],
        stop_when: Callable[[Evaluation], bool] | None,
    ) -> None:
        """Build everything that can fail before anything is written."""
        from yardmaster.agents.learners import LEARNERS, use_threads

        self.config = config
        self.kind = config.kind
        self.folder = folder
        self.announce = announce
        self.on_progress = on_progress
        self.stop_when = stop_when
        settings = config.train
        self.kind.refuse(config)
        self.event_library = event_library(wanted=settings.tensorboard)
        threads = settings.threads or len(os.sched_getaffinity(0))
        use_threads(threads)
        self.sources = sources_of(config.task)  # before they are read
        self.task = self.kind.laid_out(config.task, announce)
        self.batch = self.kind.open_batch(
            self.task,
            size=settings.envs,
            seed=settings.seed,
            threads=threads,
            device=settings.device,
            learner=config.learner,
            announce=announce,
        )
        self.learner = LEARNERS[config.learner].build(
            self.batch, config.settings, settings.seed, device=settings.device
        )
        refuse_impossible(config, self.learner)
        self.referee = self._referee()
        self.heuristics = self.referee.heuristic_means()
        self.scenes = self.referee.scene_means()
        self.standing = Standing()
        self.watch = Watch()
        self.about = provenance()
        self.is_asked_to_end = False
        """Whether an evaluation gave a reason to stop."""
        self._begun = time.monotonic()
        self._seconds_before = 0.0
        self._paced_from: tuple[int, float] | None = None
        """Steps and time after this process's first update, which waits for compilers."""
        self._checkpoint = (0, self._begun)
        """Steps and time at the last one."""

    def _referee(self) -> Referee:
        """Let the heuristics play the validation episodes."""
        settings, task = self.config.train, self.task
        return Referee(
            self.kind.validation(task, episodes=settings.eval_episodes, size=settings.envs),
            metric=settings.metric,
            higher_is_better=self.kind.higher_is_better[settings.metric],
            against=self.kind.opponents(task) if settings.against is None else settings.against,
        )

    def carry_out(self, is_asked: Callable[[], bool], *, resume: bool) -> TrainResult:
        """Train to the end, or until somebody asks to stop."""
        status: Status = "failed"
        if resume:
            self._take_up()
        write_whole(self.folder.config, to_toml(self.config.tables()))
        self.board = TensorBoard(
            self.event_library, self.folder.tensorboard, from_step=self.standing.steps
        )
        try:
            self._note("running")
            if self.standing.evaluated < 0:
                self._begin()
            while not self._is_over() and not is_asked():
                self._advance()
            status = self._status()
            self._save()
        except KeyboardInterrupt:  # a second one: nobody waits for the update to end
            status = "interrupted"
            raise
        finally:
            self.board.close()
            self._note(status)
        return self._result(status)

    def _is_over(self) -> bool:
        patience = self.config.train.patience
        is_stale = patience is not None and self.standing.stale >= patience
        return self.standing.steps >= self.config.train.steps or is_stale or self.is_asked_to_end

    def _status(self) -> Status:
        if self.standing.steps >= self.config.train.steps:
            return "finished"
        return "stopped early" if self._is_over() else "interrupted"

    def _begin(self) -> None:
        """Warm the policy up, and look how good it is before it has learned anything."""
        heuristic = self.config.train.warm_start
        if heuristic is not None:
            scalars = warm_start(self.config, self.task, self.learner, heuristic, self.announce)
            self.about["warm_start"] = scalars
        self._evaluate()
        self._save()

    def _take_up(self) -> None:
        """Go on from the last checkpoint, and forget what was written after it."""
        from yardmaster.agents.checkpoint import read_checkpoint

        self.about["resumed"] = self.about.pop("started")
        self.about = read_json(self.folder.about) | self.about
        updates = -1
        if self.folder.last.is_file():
            saved = read_checkpoint(self.folder.last)
            standing = dict(saved.standing)
            self._refuse_other(saved.config, standing.pop("environment"))
            # Checkpoints of earlier versions do not say what they were trained on.
            before = standing.pop("sources", {})
            refuse_changed(before, self.sources, self.config.task, self.folder.path)
            self.learner.load(saved.state)
            self.watch = Watch(standing.pop("watch"))
            self.standing = Standing.of(standing)
            updates = self.standing.updates
        for journal in (self.folder.progress, self.folder.evaluations):
            cut_back(journal, updates)
        self._seconds_before = self.standing.seconds
        self._checkpoint = (self.standing.steps, self._begun)

    def _refuse_other(self, config: Mapping[str, Any], environment: str) -> None:
        """Complain about a checkpoint of other environments, or of another configuration."""
        if environment != self.kind.environment(self.batch):
            # Their state is raw memory to the compiled core: in another layout, it would crash.
            raise YardmasterError(
                f"{self.folder.last} was written by another version of yardmaster, or with its"
                " environments on the GPU where they are now on the CPU, or the other way round:"
                " they cannot be continued. Begin again, or use what was used then."
            )
        different = _different(self.config.tables(), config)
        if different:  # what an earlier version could not say was as it is by default
            with suppress(YardmasterError):
                whole = completed(config, type(self.config.settings))
                before = config_from([Layer(whole, str(self.folder.last))])
                different = _different(self.config.tables(), before.tables())
        if different:
            names = ", ".join(f"[{name}]" for name in different)
            raise YardmasterError(
                f"{self.folder.path} was begun with another configuration ({names} differ); a"
                " resumed run can only be made longer."
            )

    def _advance(self) -> None:
        """Let the learner make one update; write down, warn, evaluate and save as due."""
        before = self.standing.steps
        scalars = self.learner.update()
        self.standing.steps += int(scalars.pop("steps"))
        self.standing.updates += 1
        self.standing.seconds = self._seconds()
        self._write_down(scalars)
        self._look_for_trouble(scalars)
        every = self.config.train.eval_every
        if self.standing.steps // every > before // every or self._is_over():
            self._evaluate()
        if self._is_save_due():
            self._save()
        self._tell(scalars)

    def _seconds(self) -> float:
        return self._seconds_before + time.monotonic() - self._begun

    def _write_down(self, scalars: Mapping[str, float]) -> None:
        standing = self.standing
        place = {"updates": standing.updates, "steps": standing.steps}
        add_line(self.folder.progress, place | {"seconds": standing.seconds} | dict(scalars))
        self.board.add("train", scalars, standing.steps)

    def _look_for_trouble(self, scalars: Mapping[str, float]) -> None:
        from yardmaster.agents.learners import weights_are_finite

        refuse_non_finite(
            scalars,
            weights_are_finite=weights_are_finite(self.learner.network),
            when=f"at {self.standing.steps:,} steps",
        )
        for text in self.watch.look(scalars):
            self._warn(text)

    def _warn(self, text: str) -> None:
        self.standing.warnings.append({"steps": self.standing.steps, "text": text})
        self.announce(f"Warning at {self.standing.steps:,} steps: {text}")

    def _evaluate(self) -> None:
        """Play the validation episodes; keep the network if it is the best so far."""
        from yardmaster.agents.learners import greedy

        standing = self.standing
        found = self.referee.evaluate(
            greedy(self.learner.network),
            updates=standing.updates,
            steps=standing.steps,
            seconds=standing.seconds,
            best=standing.best,
        )
        standing.evaluated = standing.updates
        standing.latest = found.score
        standing.stale = 0 if found.is_best else standing.stale + 1
        if found.is_best:
            standing.best, standing.best_steps = found.score, found.steps
            self._keep_best(found)
        add_line(self.folder.evaluations, found.record())
        self.board.add("val", found.means, standing.steps)
        write_curve(self.folder, self.heuristics)
        if standing.stale == UNHELPED and standing.best_steps == 0:
            self._warn(untrained(self.config.train.warm_start))
        if self.stop_when is not None and self.stop_when(found):
            self.is_asked_to_end = True

    def _keep_best(self, found: Evaluation) -> None:
        """Write the network as a checkpoint, and as a policy that schedulers can use."""
        from yardmaster.agents.learners import weights

        network: Any = self.learner.network
        self._write(self.folder.best, {"network": weights(network)})
        about = {
            "learner": self.config.learner,
            "steps": found.steps,
            found.metric: found.score,
            **self.config.about_task(),
        }
        self.kind.write_policy(self.folder.policy, network, self.batch, about)

    def _is_save_due(self) -> bool:
        steps, moment = self._checkpoint
        every, every_s = self.config.train.checkpoint_steps, self.config.train.checkpoint_s
        if every is not None:
            return self.standing.steps - steps >= every
        return time.monotonic() - moment >= (every_s or 0.0)

    def _save(self) -> None:
        self.standing.seconds = self._seconds()
        self._write(self.folder.last, self.learner.state())
        self._checkpoint = (self.standing.steps, time.monotonic())

    def _write(self, path: Path, state: Mapping[str, Any]) -> None:
        from yardmaster.agents.checkpoint import Checkpoint, write_checkpoint

        more = {
            "watch": self.watch.state(),
            "environment": self.kind.environment(self.batch),
            "sources": self.sources,
        }
        standing = self.standing.plain() | more
        config = self.config.tables()
        write_checkpoint(path, Checkpoint(self.config.learner, config, state, standing))

    def _tell(self, scalars: Mapping[str, float]) -> None:
        standing, train_ = self.standing, self.config.train
        if self._paced_from is None:
            self._paced_from = (standing.steps, time.monotonic())
        steps, moment = self._paced_from
        is_first = steps == standing.steps
        rate = math.nan
        if not is_first:
            rate = (standing.steps - steps) / max(time.monotonic() - moment, 1e-9)
        self.on_progress(
            Progress(
                steps=standing.steps,
                total_steps=train_.steps,
                steps_per_s=rate,
                eta_s=max(train_.steps - standing.steps, 0) / rate,
                metric=train_.metric,
                best=standing.best,
                latest=standing.latest,
                heuristics={name: means[train_.metric] for name, means in self.heuristics.items()},
                scalars=scalars,
            )
        )

    def _note(self, status: Status) -> None:
        """Write down how the run stands, for people and programs that look at the folder."""
        standing = self.standing
        write_json(
            self.folder.about,
            self.about
            | {
                "updated": now(),
                "status": status,
                "steps": standing.steps,
                "seconds": standing.seconds,
                "metric": self.config.train.metric,
                "best": standing.best,
                "best_steps": standing.best_steps,
                "heuristics": self.heuristics,
                "warnings": standing.warnings,
            }
            | ({"scenes": self.scenes} if self.scenes else {}),
        )

    def _result(self, status: Status) -> TrainResult:
        evaluations = [evaluation_of(record) for record in read_lines(self.folder.evaluations)]
        best = [one for one in evaluations if one.is_best]
        return TrainResult(
            folder=self.folder.path,
            status=status,
            steps=self.standing.steps,
            seconds=self.standing.seconds,
            best=best[-1] if best else None,
            last=evaluations[-1] if evaluations else None,
            heuristics=self.heuristics,
            warnings=tuple(one["text"] for one in self.standing.warnings),
            scenes=self.scenes,
        )


def _different(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Return the tables in which two configurations differ; one may be longer than the other."""

    def told(tables: Mapping[str, Any], name: str) -> Any:
        table = tables.get(name)
        if name == "train" and isinstance(table, Mapping):
            return {key: value for key, value in table.items() if key != "steps"}
        return table

    return [name for name in mine if told(mine, name) != told(theirs, name)]
