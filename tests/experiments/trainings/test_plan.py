"""Which trainings a study has, and whose folder it is."""

from __future__ import annotations

import json

import pytest

from yardmaster.errors import InvalidConfigError, YardmasterError
from yardmaster.experiments.training.folder import RunFolder
from yardmaster.experiments.training.tables import to_toml

VARIANTS = {"plain": {}, "wide & deep": {"learner": {"network": {"hidden": [8, 8]}}}}


def pretend(plan, training, status: str, steps: int = 0) -> RunFolder:
    """Write what a training run leaves that stands like this."""
    folder = RunFolder(plan.path(training))
    folder.create()
    folder.config.write_text(to_toml(training.config.tables()))
    folder.about.write_text(json.dumps({"status": status, "steps": steps}))
    return folder


def test_every_variant_from_every_seed(plan):
    """All variants of a seed come before the next seed, each with its own configuration."""
    found = plan(VARIANTS, seeds=2).trainings
    assert [one.name for one in found] == ["plain-0", "wide---deep-0", "plain-1", "wide---deep-1"]
    assert [one.config.train.seed for one in found] == [0, 0, 1, 1]
    assert found[1].config.settings.network.hidden == (8, 8)
    with pytest.raises(InvalidConfigError, match=r"odd: 1 mistake"):
        plan({"odd": {"learner": {"clipp": 1}}})


def test_how_far_trainings_are(plan):
    """What was finished or stopped early is done; what was killed is not."""
    study = plan({name: {} for name in ("a", "b", "c", "d")})
    for one, status in zip(study.trainings, ("finished", "stopped early", "running"), strict=False):
        pretend(study, one, status, steps=128)
    assert [study.is_finished(one) for one in study.trainings] == [True, True, False, False]
    assert [study.steps_done(one) for one in study.trainings] == [128, 128, 128, 0]


def test_a_folder_is_of_one_study(plan):
    """Other trainings are refused, or take the place of those that differ and of no others."""
    study = plan(VARIANTS)
    study.folder.mkdir()
    study.refuse_others()
    study.take_up()
    kept = [pretend(study, one, "finished") for one in study.trainings]
    study.refuse_others()
    study.take_up()
    other = plan({"plain": {}, "wide & deep": {"learner": {"network": {"hidden": [16]}}}})
    with pytest.raises(YardmasterError, match="holds other trainings"):
        other.refuse_others()
    other.refuse_others(overwrite=True)
    other.take_up()
    assert [folder.path.exists() for folder in kept] == [True, False]
    other.refuse_others()
