"""Workloads of the user's own are settings like any regime."""

from __future__ import annotations

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.experiments.suite.settings import OwnWorkload
from yardmaster.workloads.synthetic import simple
from yardmaster.workloads.tables import write_table


def test_jobs_follow_from_the_seed():
    """Equal seeds give equal jobs, for as many as were asked for, on the machines named."""
    own = OwnWorkload("mine", "lognormal", "2x V100:8", count=30, load=0.7)
    assert own.machines().gpus == 16
    first, again, other = own.jobs(1), own.jobs(1), own.jobs(2)
    assert len(first) == 30
    assert (first.duration_s == again.duration_s).all()
    assert (first.duration_s != other.duration_s).any()
    assert own.is_drawn
    assert own.changes_s == ()


def test_a_file_counts_with_its_content(tmp_path):
    """The same path with other jobs is another setting."""
    file = tmp_path / "jobs.parquet"
    write_table(simple(jobs=20, seed=0, gpus=8, load=0.5), file)
    own = OwnWorkload("mine", str(file), "pool:8")
    before = own.table()
    assert own.table() == before
    write_table(simple(jobs=20, seed=1, gpus=8, load=0.5), file)
    assert own.table() != before
    assert not own.is_drawn


def test_a_folder_is_refused(tmp_path):
    """A folder has no content to go by."""
    with pytest.raises(YardmasterError, match="is a folder"):
        OwnWorkload("mine", str(tmp_path), "pool:8").table()
