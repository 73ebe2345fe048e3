"""What is assumed of a record whose policy or machine nobody names."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from yardmaster.experiments.fidelity.assumptions import (
    CANDIDATES,
    FOR_PRIORITIES,
    FOR_TENANTS,
    candidates_for,
    recorded_machine,
)
from yardmaster.workloads.sources import load_workload
from yardmaster.workloads.tables import read_table, write_table


def test_candidates_fit_the_workload(jobs):
    """Priorities and tenants bring candidates; without estimates, none reads them."""
    assert set(FOR_PRIORITIES) <= set(candidates_for(jobs))
    assert not set(FOR_TENANTS) & set(candidates_for(jobs))
    flat = jobs.with_columns(priority=np.zeros(len(jobs)))
    assert candidates_for(flat) == CANDIDATES
    owned = flat.with_columns(tenant=jobs.user)
    assert set(FOR_TENANTS) <= set(candidates_for(owned))
    blind = flat.with_columns(estimate_s=None)
    assert not any("~estimate" in name for name in candidates_for(blind))


def test_the_machine_is_read_from_an_swf_header(tmp_path: Path):
    """MaxProcs of the header becomes a pool, also from a saved table; without one there is none."""
    line = " ".join(["1", "0", "5", "60", "2", "-1", "-1", "2", "100", *["-1"] * 9])
    for header, gpus in (("; MaxProcs: 48\n", 48), ("", None)):
        path = tmp_path / "x.swf.gz"
        path.write_bytes(gzip.compress(f"{header}{line}\n".encode()))
        jobs = load_workload(path)
        write_table(jobs, tmp_path / "x.parquet", overwrite=True)
        for each in (jobs, read_table(tmp_path / "x.parquet")):
            machine = recorded_machine(each)
            assert (machine and machine.gpus) == gpus
