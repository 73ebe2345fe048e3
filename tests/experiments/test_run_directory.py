"""Run directories hold everything, appear only when complete, and reproduce themselves."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from yardmaster.errors import InvalidConfigError, YardmasterError
from yardmaster.experiments.execution import run_comparison, run_simulation
from yardmaster.experiments.plan import Plan
from yardmaster.experiments.run_directory import (
    default_path,
    differences,
    is_run_directory,
    new_run_directory,
    read_inputs,
)
from yardmaster.model.documents import validate
from yardmaster.schedulers.simulation import simulate

SIMULATE = Plan(
    command="simulate", workload="lognormal", cluster="2x V100:8", schedulers=("sjf+easy",), jobs=80
)
COMPARE = Plan(
    command="compare",
    workload="lognormal",
    cluster="2x V100:8",
    schedulers=("fifo", "random-feasible@random"),
    jobs=60,
    seeds=2,
)


def carry_out(plan: Plan, path: Path) -> None:
    workloads = plan.make_workloads(plan.make_cluster())
    with new_run_directory(path) as folder:
        if plan.command == "simulate":
            run_simulation(plan, workloads[0], folder)
        else:
            run_comparison(plan, workloads, folder)


@pytest.mark.parametrize("plan", [SIMULATE, COMPARE], ids=["simulate", "compare"])
def test_a_run_made_again_is_identical(plan: Plan, tmp_path: Path):
    """Reading a run's inputs and running them again gives the same bytes."""
    carry_out(plan, tmp_path / "one")
    again, workloads = read_inputs(tmp_path / "one")
    assert again == plan
    with new_run_directory(tmp_path / "two") as folder:
        if plan.command == "simulate":
            run_simulation(again, workloads[0], folder)
        else:
            run_comparison(again, workloads, folder)
    assert differences(tmp_path / "one", tmp_path / "two") == []


def test_differences_are_found(tmp_path: Path):
    """A changed or missing file is named."""
    carry_out(SIMULATE, tmp_path / "one")
    carry_out(SIMULATE.model_copy(update={"seed": 1}), tmp_path / "two")
    (tmp_path / "two" / "segments.parquet").unlink()
    found = differences(tmp_path / "one", tmp_path / "two")
    assert {"segments.parquet", "summary.json", "jobs/0.parquet", "config.toml"} <= set(found)


def test_jobs_and_segments_say_what_happened(tmp_path: Path):
    """The saved tables equal the schedule."""
    carry_out(SIMULATE, tmp_path / "run")
    cluster = SIMULATE.make_cluster()
    (workload,) = SIMULATE.make_workloads(cluster)
    schedule = simulate(workload, cluster, "sjf+easy")
    jobs = pl.read_parquet(tmp_path / "run" / "jobs" / "0.parquet")
    assert jobs["start_s"].to_list() == schedule.start_s.tolist()
    assert set(jobs["outcome"]) == {"finished"}
    segments = pl.read_parquet(tmp_path / "run" / "segments.parquet")
    assert segments["gpus"].list.len().sum() == int(workload.gpus.sum())
    meta = json.loads((tmp_path / "run" / "meta.json").read_text())
    assert list(meta["schedules"].values()) == [schedule.fingerprint()]


def test_an_interrupted_run_leaves_nothing(tmp_path: Path):
    """If the work fails, neither a result nor a partial folder remains."""

    def interrupted() -> None:
        with new_run_directory(tmp_path / "run"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_results_are_never_overwritten_by_accident(tmp_path: Path):
    """An existing folder is kept unless it is a run directory and replacing was asked for."""
    carry_out(SIMULATE, tmp_path / "run")
    with (
        pytest.raises(YardmasterError, match="already exists"),
        new_run_directory(tmp_path / "run"),
    ):
        pass
    (tmp_path / "precious").mkdir()
    with (
        pytest.raises(YardmasterError, match="not a run directory"),
        new_run_directory(tmp_path / "precious", overwrite=True),
    ):
        pass
    with new_run_directory(tmp_path / "run", overwrite=True) as folder:
        (folder / "new").touch()
    assert (tmp_path / "run" / "new").exists()


def test_a_cluster_file_travels_with_the_run(tmp_path: Path):
    """The run can be made again after the user's cluster file is gone."""
    source = tmp_path / "mine.toml"
    source.write_text('name = "mine"\n[[nodes]]\ncount = 2\ngpu_type = "T4"\ngpus = 8\n')
    carry_out(SIMULATE.model_copy(update={"cluster": str(source)}), tmp_path / "run")
    source.unlink()
    plan, _ = read_inputs(tmp_path / "run")
    assert plan.make_cluster().name == "mine"


def test_other_folders_are_refused(tmp_path: Path):
    """A folder that is no run directory, and a damaged plan, are explained."""
    with pytest.raises(YardmasterError, match="not a run directory"):
        read_inputs(tmp_path)
    carry_out(SIMULATE, tmp_path / "run")
    assert is_run_directory(tmp_path / "run")
    (tmp_path / "run" / "config.toml").write_text('command = "simulat"\njobs = -3\n')
    with pytest.raises(InvalidConfigError) as caught:
        read_inputs(tmp_path / "run")
    assert len(caught.value.mistakes) >= 4


def test_default_paths_do_not_collide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Two runs within one second get two names."""
    monkeypatch.chdir(tmp_path)
    first = default_path(SIMULATE)
    first.mkdir(parents=True)
    assert default_path(SIMULATE) != first


def test_plan_reports_all_mistakes_at_once():
    """A bad plan lists every mistake with its place."""
    bad = {
        "command": "compare",
        "workload": "lognormal",
        "cluster": "demo",
        "schedulers": ["fifo"],
        "jobs": 0,
        "load": -1.0,
        "engine": "fast",
        "seed": -1,
        "objectiv": "x",
    }
    with pytest.raises(InvalidConfigError) as caught:
        validate(Plan, bad, "plan")
    text = str(caught.value)
    assert len(caught.value.mistakes) == 5
    assert "Did you mean 'objective'" in text


def test_seeds_of_a_file_are_refused(tmp_path: Path):
    """A file holds one workload; asking several seeds of it is a mistake."""
    path = tmp_path / "jobs.csv"
    path.write_text("submit_s,duration_s,gpus\n0,5,1\n")
    plan = COMPARE.model_copy(update={"workload": str(path)})
    with pytest.raises(YardmasterError, match="one workload"):
        plan.make_workloads(plan.make_cluster())
