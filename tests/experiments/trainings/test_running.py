"""Trainings in processes of their own: finished, lost, failed, stopped."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from yardmaster.experiments.training.folder import RunFolder, read_lines
from yardmaster.experiments.trainings.running import carry_out, estimate, train_all


def die_at_first(place: Path, _path: Path, _config: object) -> None:
    """End the process as if it had been killed, the first time only."""
    if not place.exists():
        place.touch()
        os._exit(9)


def never() -> bool:
    return False


def test_lost_and_failed_trainings(plan, tmp_path: Path):
    """A process that dies is replaced; what cannot be trained is told; the others go on."""
    study = plan({"good": {}, "bad": {"learner": {"learning_rate": 1e38}}})
    news: list[str] = []
    steps: list[int] = []
    result = train_all(
        study, workers=2, is_stopped=never, after=partial(die_at_first, tmp_path / "died"),
        announce=news.append, progress=lambda _name, done, _total: steps.append(done),
    )  # fmt: skip
    assert result.is_complete
    assert [name for name, _ in result.failures] == ["bad-0"]
    assert "Training failed at" in result.failures[0][1]
    assert any("good-0: its process died (exit code 9)" in text for text in news)
    good, bad = study.trainings
    assert (study.is_finished(good), study.is_finished(bad)) == (True, False)
    assert not RunFolder(study.path(good)).last.exists()
    assert steps[-1] >= 512
    more = plan({"good": {}, "new": {}})
    assert estimate(more, 2, news.append) > 0
    assert "1 training of 2 (1 are finished already), 512 steps each: about" in news[-1]


def test_trainings_that_came_to_nothing_are_named(plan):
    """One whose steps are too small to change anything ends with the network it began with."""
    study = plan(
        {
            "still": {"learner": {"learning_rate": 1e-30}},
            "bad": {"learner": {"learning_rate": 1e38}},
        }
    )
    result = train_all(study, workers=2, is_stopped=never)
    assert result.untrained == ("still-0",)


def test_a_stop_is_no_failure(plan):
    """Nothing is begun once somebody asked to stop."""
    study = plan({"one": {}})
    result = train_all(study, workers=1, is_stopped=lambda: True)
    assert (result.is_complete, result.failures) == (False, ())
    assert not study.path(study.trainings[0]).exists()


def test_what_a_killed_process_leaves_is_taken_up(plan):
    """Killed in its first moments or between checkpoints, a training ends like any other."""
    study = plan({"one": {}})
    training = study.trainings[0]
    path = study.path(training)
    (path / "checkpoints").mkdir(parents=True)  # nothing but an empty folder was made
    status, said = carry_out(training.config, path)
    assert status == "finished"
    assert said.startswith("returns ")
    assert [one["steps"] for one in read_lines(RunFolder(path).progress)] == [128, 256, 384, 512]
    seen: list[Path] = []
    carry_out(training.config, path, after=lambda place, _config: seen.append(place))
    assert seen == [path]
    assert len(read_lines(RunFolder(path).progress)) == 4  # it was not trained again
