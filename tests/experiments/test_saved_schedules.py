"""Schedules of runs made before: read back or made again, the same to the last bit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from yardmaster.errors import YardmasterError
from yardmaster.experiments.execution import run_comparison, run_simulation
from yardmaster.experiments.plan import Plan
from yardmaster.experiments.run_directory import new_run_directory, read_inputs
from yardmaster.experiments.saved_schedules import list_simulations, read_schedule
from yardmaster.metrics.summary import summarise
from yardmaster.schedulers.simulation import simulate

ROUGH = """
name = "rough"
[[nodes]]
count = 3
gpu_type = "A100"
gpus = 4
[[nodes]]
count = 2
gpu_type = "T4"
gpus = 4
sharing = "mps"
[checkpoints]
every_s = 600
restore_s = 30
[failures]
mtbf_h = 60
mttr_h = 3
retries = 2
"""


def made(folder: Path, command: str, *schedulers: str, **options: object) -> Path:
    """Make a run as the commands do."""
    usual = {"workload": "venus-like", "cluster": "demo"}
    plan = Plan.model_validate(usual | options | {"command": command, "schedulers": schedulers})
    jobs = plan.make_workloads(plan.make_cluster())
    with new_run_directory(folder / "run") as path:
        if command == "simulate":
            run_simulation(plan, jobs[0], path)
        else:
            run_comparison(plan, jobs, path)
    return folder / "run"


@pytest.fixture(scope="module")
def rough(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("rough")
    (folder / "rough.toml").write_text(ROUGH)
    workload = "venus-like:kinds=measured,fractions=0.3"
    cluster = str(folder / "rough.toml")
    return made(folder, "simulate", "srpt+preemptive", workload=workload, cluster=cluster, jobs=200)


@pytest.fixture(scope="module")
def compared(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    return made(folder, "compare", "fifo+easy", "sjf+skip@random", jobs=80, seeds=2)


def test_a_stored_schedule_is_the_one_that_was_made(rough):
    """Segments, outages, horizon and thus every metric come back as they were written."""
    saved = read_schedule(rough)
    assert saved.is_stored
    assert saved.is_same
    plan, (workload,) = read_inputs(rough)
    again = simulate(workload, plan.make_cluster(), plan.schedulers[0], seed=plan.seed)
    assert saved.schedule.outages == again.outages
    assert len(again.outages) > 0
    assert saved.schedule.horizon_s == again.horizon_s
    (row,) = json.loads((rough / "summary.json").read_text())
    for name, value in summarise(saved.schedule).items():
        assert row[name] == (value if np.isfinite(value) else None), name


def test_a_cut_simulation_ends_at_its_cut(tmp_path):
    """The measured span of a cut simulation is the one asked for."""
    path = made(tmp_path, "simulate", "fifo+easy", jobs=50, until_s=5000.0)
    saved = read_schedule(path)
    assert saved.is_same
    assert saved.schedule.horizon_s[1] == 5000


def test_a_comparison_is_made_again(compared):
    """Every simulation of a comparison is the recorded one, whichever is asked for."""
    known = list_simulations(compared)
    assert [(one.number, one.scheduler) for one in known] == [
        (0, "fifo+easy"), (1, "fifo+easy"), (2, "sjf+skip@random"), (3, "sjf+skip@random"),
    ]  # fmt: skip
    import polars as pl

    for one in known:
        saved = read_schedule(compared, one.number)
        assert saved.is_same
        assert not saved.is_stored
        jobs = pl.read_parquet(compared / "jobs" / f"{one.number}.parquet")
        assert np.array_equal(saved.schedule.start_s, jobs["start_s"].to_numpy())


@pytest.mark.parametrize("number", [-1, 4, 10_000])
def test_other_numbers_are_refused(compared, number):
    """There are as many simulations as there are."""
    with pytest.raises(YardmasterError, match="no simulation"):
        read_schedule(compared, number)


def test_tampering_is_noticed(rough, tmp_path):
    """Another start in the tables gives another fingerprint."""
    import polars as pl

    path = tmp_path / "copy"
    shutil.copytree(rough, path)
    segments = pl.read_parquet(path / "segments.parquet")
    segments.with_columns(pl.col("start_s") + 1).write_parquet(path / "segments.parquet")
    assert not read_schedule(path).is_same


@pytest.mark.parametrize("name", ["segments.parquet", "jobs/0.parquet", "summary.json"])
def test_damage_is_a_sentence(rough, tmp_path, name):
    """A table cut short is the user's to know, without a traceback."""
    path = tmp_path / "copy"
    shutil.copytree(rough, path)
    (path / name).write_bytes((path / name).read_bytes()[:50])
    with pytest.raises(YardmasterError, match="damaged"):
        read_schedule(path)


def test_who_only_looks_reads_no_files_from_elsewhere(rough, compared, tmp_path):
    """A cluster or policy outside of the run's folder is refused by name; copies inside are not."""
    assert read_schedule(rough, runs_code=False).is_same
    elsewhere = tmp_path / "elsewhere.toml"
    shutil.copy(rough / "cluster" / "rough.toml", elsewhere)
    for place in (elsewhere, tmp_path / "elsewhere"):
        path = tmp_path / f"cluster-{place.suffix}"
        shutil.copytree(rough, path)
        config = (path / "config.toml").read_text()
        (path / "config.toml").write_text(config.replace("cluster/rough.toml", str(place)))
        with pytest.raises(YardmasterError, match=r"elsewhere.*not lie in its folder"):
            read_schedule(path, runs_code=False)
    path = tmp_path / "policy"
    shutil.copytree(compared, path)
    rows = json.loads((path / "summary.json").read_text())
    rows[0]["scheduler"] = f"policy:{tmp_path / 'secret.npz'}"
    (path / "summary.json").write_text(json.dumps(rows))
    with pytest.raises(YardmasterError, match=r"secret\.npz.*not lie in its folder"):
        read_schedule(path, 0, runs_code=False)
