"""MetaDQN without its parts: which variants there are, and a small study to its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from yardmaster.engine.choosing import places as at
from yardmaster.envs.choosing.episodes import ChoosingEpisodes
from yardmaster.envs.choosing.rewards import choosing_reward_of
from yardmaster.envs.choosing.task import CHOOSING_TASKS
from yardmaster.envs.episodes import FIRST_SEED
from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.experiments.training.tables import read_tables
from yardmaster.experiments.trainings.ablation import (
    WHOLE,
    AblationOptions,
    ablation_plan,
    ablation_suite,
    run_ablation,
    variants_of,
)
from yardmaster.experiments.trainings.running import carry_out
from yardmaster.report.suite.experiment import read_experiment

ONE = ("no replay balancing",)


def options(choosers: Path, **changes) -> AblationOptions:
    small = {"seeds": 1, "steps": 1_024, "test_seeds": 2, "variants": ONE}
    return AblationOptions(**(small | {"tables": read_tables(choosers)} | changes))


def test_each_variant_lacks_one_part(tmp_path: Path):
    """Against the whole, only what the variant is named after differs."""
    plan, notes = ablation_plan(tmp_path, AblationOptions(seeds=2))
    assert notes == ()
    by_variant = {one.variant: one.config for one in plan.trainings if one.seed == 1}
    whole = by_variant.pop(WHOLE)
    task, settings = whole.task, whole.settings
    weights = choosing_reward_of("mixed").weights
    changed = {
        "no regime embedding": (task.changed(past=0), "mlp"),
        "no replay balancing": (task, "regime"),
        "no target network": (task, "regime"),
        "no job ages": (task.changed(ages=False), "regime"),
        "no deadline penalty": (
            task.changed(reward={k: w for k, w in weights.items() if k != "late"}), "regime",
        ),
        "no energy term": (
            task.changed(reward={k: w for k, w in weights.items() if k != "energy"}), "regime",
        ),
        "labels given": (task.changed(labelled=True), "regime"),
    }  # fmt: skip
    assert {name: (one.task, one.settings.network.arch) for name, one in by_variant.items()} == (
        changed
    )
    switches = {name: (one.settings.balanced, one.settings.target_network)
                for name, one in by_variant.items()}  # fmt: skip
    assert switches.pop("no replay balancing") == (False, True)
    assert switches.pop("no target network") == (True, False)
    assert set(switches.values()) == {(True, True)}
    assert {one.train for one in by_variant.values()} == {whole.train}
    assert (whole.train.metric, settings.network.arch) == ("mixed_gap", "regime")


def test_variants_that_make_no_sense_are_left_out(tmp_path: Path):
    """A reward without deadlines cannot lose them; too many labels cannot be told."""
    hard = CHOOSING_TASKS["hard-regimes"]
    found, notes = variants_of(hard)
    assert list(found) == [
        "full", "no regime embedding", "no replay balancing", "no target network", "no job ages",
        "labels given",
    ]  # fmt: skip
    assert [note.partition(" is left out")[0] for note in notes] == [
        "no deadline penalty", "no energy term",
    ]  # fmt: skip
    both = {"families": ["hard", "drift"]}
    found, notes = variants_of(hard.changed(**both))
    assert "labels given" not in found
    assert notes[-1].startswith("labels given is left out: The regimes have 34 labels")
    asked = AblationOptions(family="hard", variants=("labels given",), tables={"task": both})
    with pytest.raises(YardmasterError, match="a chooser can be told 32"):
        ablation_plan(tmp_path, asked)


@pytest.mark.parametrize("family", ["rlmetadqn", "hard", "drift"])
def test_every_family_can_be_told(tmp_path: Path, family: str):
    """Labels tell all regimes of a family apart, within what an observation holds."""
    plan, _ = ablation_plan(tmp_path, AblationOptions(family=family, variants=("labels given",)))
    told = ChoosingEpisodes(plan.trainings[1].config.task, "val")
    assert len(np.unique(told._labels, axis=0)) == len(told.regimes)
    shown = told.prepared(1).facts[at.LABEL_AT : at.LABEL_AT + told.task.sight.labels]
    assert shown.tolist() == told._labels[1].tolist()


def test_choosers_are_tested_on_jobs_that_no_training_saw(tmp_path: Path, choosers: Path):
    """Same regimes, the menu beside the choosers, and seeds of the REPORT set."""
    plan, _ = ablation_plan(tmp_path, options(choosers, variants=()))
    suite = ablation_suite(plan, test_seeds=3)
    task = plan.trainings[0].config.task
    names = [setting.name for setting, _ in suite.settings()]
    assert names == [regime.name for regime in ChoosingEpisodes(task, "val").regimes]
    assert suite.schedulers[:5] == task.sight.menu
    assert len(suite.schedulers) == 5 + 8
    assert suite.first_seed == FIRST_SEED["report"]


def test_bad_options_are_refused(tmp_path: Path, choosers: Path):
    """Unknown families, rewards and variants are told before anything is trained."""
    with pytest.raises(UnknownNameError, match="Did you mean 'drift'"):
        AblationOptions(family="drifts")
    with pytest.raises(UnknownNameError, match="Did you mean 'mixed'"):
        AblationOptions(reward="mixd")
    with pytest.raises(YardmasterError, match="seeds must be at least 1"):
        AblationOptions(seeds=0)
    with pytest.raises(UnknownNameError, match="Did you mean 'no job ages'"):
        ablation_plan(tmp_path, options(choosers, variants=("no job age",)))


def trained_here(folder: Path, asked: AblationOptions) -> None:
    """Train all of a study in this process, which has loaded what two others would load again."""
    run_ablation(folder, asked, only_estimate=True)
    plan, _ = ablation_plan(folder, asked)
    for training in plan.trainings:
        assert carry_out(training.config, plan.path(training))[0] == "finished"


def killed(folder: Path, choosers: Path) -> None:
    """Start the study as a command and kill it, with -9, while it trains."""
    command = [
        sys.executable, "-m", "yardmaster", "experiment", "ablation", "-o", str(folder), "--config",
        str(choosers), "--seeds", "1", "--steps", "1024", "--test-seeds", "2", "--variants", ONE[0],
        "--workers", "1", "--quiet",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 240
    while not any(
        path.read_text().count("\n") >= 3 for path in folder.glob("trainings/*/progress.jsonl")
    ):  # past the checkpoint at 512 steps
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()  # ends once the trainings have let go of its output, too
    assert process.returncode == -signal.SIGKILL


def test_killed_and_resumed_it_ends_the_same(choosers: Path, tmp_path: Path):
    """A study that was killed with -9 goes on to the table of one that never was."""
    asked = options(choosers)
    trained_here(tmp_path / "whole", asked)
    first = run_ablation(tmp_path / "whole", asked, workers=1)
    assert first.is_complete
    assert (first.trainings.known, first.trainings.failures) == (2, ())
    killed(tmp_path / "killed", choosers)
    assert not (tmp_path / "killed" / "results.parquet").exists()
    with pytest.raises(YardmasterError, match="holds other trainings"):
        run_ablation(tmp_path / "killed", options(choosers, steps=2_048))
    resumed = run_ablation(tmp_path / "killed", asked, workers=2)
    assert resumed.is_complete
    assert resumed.trainings.failures == ()
    tables = [pl.read_parquet(tmp_path / name / "results.parquet") for name in ("whole", "killed")]
    assert tables[0].equals(tables[1])
    assert tables[0].height == 2 * 2 * (5 + 2)

    news: list[str] = []
    before = (tmp_path / "whole" / "results.parquet").read_bytes()
    moved = (tmp_path / "whole").rename(tmp_path / "moved")
    again = run_ablation(moved, asked, workers=1, announce=news.append)
    assert again.trainings.known == 2
    assert news == ["All 28 runs are known already; nothing to simulate."]
    assert (moved / "results.parquet").read_bytes() == before

    learned = tables[0].drop_nulls("variant")
    assert set(learned["scheduler"]) == {"meta:full-0", "meta:no-replay-balancing-0"}
    assert set(learned["training_seed"]) == {0}
    found = read_experiment(moved).ablation
    assert found is not None
    assert (found.variants, found.units) == (ONE, 1)
    assert {"mean_jct_s", "jain_jobs", "queue_exploded"} <= set(found.measures)
