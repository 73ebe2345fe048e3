"""One name for every source of jobs: presets and files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from yardmaster.errors import InvalidWorkloadError, UnknownNameError
from yardmaster.model.workload import Workload
from yardmaster.workloads.sources import (
    DEFAULT_JOBS,
    DEFAULT_LOAD,
    is_generated,
    load_workload,
    with_load,
)
from yardmaster.workloads.synthetic import PRESETS, generate
from yardmaster.workloads.tables import write_table


@pytest.fixture
def trace(tmp_path) -> Path:
    """Return the path of a CSV file with ten 2-GPU jobs of 100 s, one per minute."""
    minutes = 60.0 * np.arange(10)
    workload = Workload.of(
        submit_s=minutes + 500, duration_s=np.full(10, 100.0), gpus=np.full(10, 2),
        deadline_s=minutes + 900,
    )  # fmt: skip
    write_table(workload, tmp_path / "trace.csv")
    return tmp_path / "trace.csv"


def test_presets_are_generated_and_files_are_not(trace):
    """Only names of presets depend on a seed; a Path is always a file."""
    assert all(is_generated(name) for name in PRESETS)
    assert not is_generated(trace)
    assert not is_generated(str(trace))
    assert not is_generated(Path("venus-like"))
    assert not is_generated("venus")


def test_a_preset_is_generated_with_the_given_numbers():
    """Jobs, seed, GPUs and load reach the generator; without them documented defaults do."""
    ours = load_workload("lognormal", jobs=50, seed=3, gpus=16, load=0.7)
    assert (
        ours.fingerprint()
        == generate("lognormal", jobs=50, seed=3, gpus=16, load=0.7).fingerprint()
    )
    default = load_workload("lognormal", gpus=16)
    assert len(default) == DEFAULT_JOBS
    assert default.load(16) == pytest.approx(DEFAULT_LOAD, rel=1e-4)


def test_a_recipe_is_generated_and_every_seed_is_another_workload(tmp_path):
    """A recipe file is no trace: jobs, load and seed reach it, its own numbers are its defaults."""
    path = tmp_path / "mine.toml"
    path.write_text('arrivals = "sine:period_s=3600"\n')
    assert is_generated(path)
    assert is_generated(str(path))
    one, other = (load_workload(str(path), gpus=16, seed=seed) for seed in (1, 2))
    assert one.fingerprint() != other.fingerprint()
    assert len(one) == DEFAULT_JOBS
    assert one.load(16) == pytest.approx(DEFAULT_LOAD, rel=1e-3)
    assert len(load_workload(path, gpus=16, jobs=30, load=0.2)) == 30
    path.write_text("jobs = 25\nrate_per_h = 60\n")
    own = load_workload(path)
    assert len(own) == 25
    assert any("60 jobs/h" in note for note in own.notes)
    with pytest.raises(InvalidWorkloadError, match=r"Did you mean 'mine\.toml'"):
        load_workload(str(tmp_path / "mien.toml"), gpus=4)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".swf", ".SWF"])
def test_files_are_read_by_their_ending(ending, tmp_path):
    """Each known ending finds its reader, given as text or as a path."""
    path = tmp_path / f"jobs{ending}"
    if ending.lower() == ".swf":
        path.write_text("1 5 -1 60 2" + " -1" * 13)
    else:
        write_table(Workload.of(submit_s=[5], duration_s=[60], gpus=[2]), path)
    for source in (path, str(path)):
        workload = load_workload(source, gpus=8)
        assert (workload.submit_s[0], workload.duration_s[0], workload.gpus[0]) == (5, 60, 2)


def test_a_file_keeps_its_own_times_by_default(trace):
    """Without a load nothing is stretched, and the seed does not matter."""
    first, other = (load_workload(trace, seed=seed, gpus=8) for seed in (1, 2))
    assert first.fingerprint() == other.fingerprint()
    assert first.submit_s[0] == 500


def test_the_first_jobs_of_a_file_are_kept(trace):
    """`jobs` keeps the earliest; asking for more than there are is said, not hidden."""
    few = load_workload(trace, jobs=3, gpus=8)
    assert few.submit_s.tolist() == [500, 560, 620]
    assert "the first 3 of 10 jobs" in few.notes
    all_ = load_workload(trace, jobs=99, gpus=8)
    assert len(all_) == 10
    assert "99 jobs were asked for, but the file has 10" in all_.notes


def test_a_load_stretches_the_time_axis(trace):
    """Submissions and deadlines move together, durations stay, and the notes say so."""
    slow = load_workload(trace, gpus=8, load=0.25)
    assert slow.load(8) == pytest.approx(0.25, rel=1e-3)
    assert (slow.duration_s == 100).all()
    assert slow.submit_s[0] == 500
    assert (slow.deadline_s - slow.submit_s == 400).all()
    assert (slow.submit_s == np.round(slow.submit_s)).all()
    assert any("submit times were stretched" in note for note in slow.notes)


def test_a_load_needs_a_span():
    """Jobs that all come at once cannot be stretched to a load."""
    workload = Workload.of(submit_s=[5, 5], duration_s=[10, 10], name="burst")
    with pytest.raises(InvalidWorkloadError, match="burst: load cannot be set"):
        with_load(workload, gpus=4, load=0.5)


@pytest.mark.parametrize(
    ("argument", "value"), [("jobs", 0), ("jobs", 1.5), ("load", -1), ("load", float("nan"))]
)
def test_bad_numbers_for_files_are_named(trace, argument, value):
    """Files refuse the same nonsense as presets."""
    with pytest.raises(InvalidWorkloadError, match=argument):
        load_workload(trace, gpus=8, **{argument: value})


def test_a_misspelt_preset_gets_a_suggestion():
    """A name that is neither preset nor file lists what there is."""
    with pytest.raises(UnknownNameError, match=r"'venuslike'\. Did you mean 'venus-like'.*Known:"):
        load_workload("venuslike", gpus=8)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tracee.csv", r"No such file: .*tracee\.csv\. Did you mean 'trace\.csv'"),
        ("folder/trace.csv", "There is no folder"),
        ("trace.txt", "No such file"),
    ],
)
def test_missing_files_are_named(trace, name, message):
    """The error names the path, and a file that has nearly that name."""
    with pytest.raises(InvalidWorkloadError, match=message):
        load_workload(str(trace.parent / name), gpus=8)


def test_files_of_unknown_kinds_list_the_known_endings(tmp_path):
    """An existing file or folder with another ending is refused."""
    (tmp_path / "jobs.txt").write_text("1 2 3")
    for path in (tmp_path / "jobs.txt", tmp_path):
        with pytest.raises(InvalidWorkloadError, match=r"Known endings: \.swf, \.swf\.gz, \.csv"):
            load_workload(path, gpus=8)


def test_publishers_files_are_imported_on_the_fly(tmp_path):
    """A trace is known by its content, packed or not, whatever its ending; its account is noted."""
    text = "job_id,arrival_s,service_sec,gpu_count\n1#0,5.0,60.0,2\n"
    (tmp_path / "log.csv").write_text(text)
    (tmp_path / "log").write_text(text)
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("log.csv", "log", "log.csv.gz"):
        jobs = load_workload(str(tmp_path / name))
        assert (jobs.submit_s[0], jobs.duration_s[0], jobs.gpus[0]) == (5, 60, 2)
        assert any(note.startswith("import: 1 rows of") for note in jobs.notes)


def test_tables_with_other_columns_are_refused_with_a_hint(tmp_path):
    """A misspelt column is named, and so is the command that reads any table."""
    (tmp_path / "own.csv").write_text("submit_s,duration_s,gpuz\n0,5,1\n")
    with pytest.raises(InvalidWorkloadError, match=r"'gpuz'\. Did you mean 'gpus'.*\n.*import csv"):
        load_workload(tmp_path / "own.csv")
