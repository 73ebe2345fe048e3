"""RLTune's tables: −1 for what is absent, names in columns that nobody agrees on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.formats import import_trace
from yardmaster.workloads.traces.reading.options import ImportOptions


def row(job, submit, run, gpus, *, tail, wait=-1, limit=-1, status=1, user=3) -> str:
    """Write one row: 16 columns as documented, then the columns of `tail`."""
    cpus = 4 * gpus if gpus > 0 else -1
    cells = [
        job, submit, wait, run, gpus, -1, -1, cpus, limit, -1, status, user, -1, -1, -1, -1,
        *tail,
    ]  # fmt: skip
    return ",".join(map(str, cells))


def table(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


DOCUMENTED = (-1, "vcA", "V100")


def test_documented_columns_are_read(tmp_path):
    """Users, clusters, types, waits, statuses and cores come out; −1 is missing."""
    path = table(
        tmp_path / "helios.csv",
        row(1, 0, 60, 8, tail=DOCUMENTED, wait=5, limit=100),
        row(2, 7, 30, 1, tail=(-1, "vcB", "T4"), status=0, user=-1, limit=40),
        row(3, 9, 0, 1, tail=DOCUMENTED, status=5),
    )
    found = import_trace([path])
    assert found.account.format == "rltune-csv"
    jobs = found.workload()
    assert jobs.id.tolist() == [1, 2, 3]
    assert jobs.submit_s.tolist() == [0, 7, 9]
    assert jobs.duration_s.tolist() == [60, 30, 0]
    assert jobs.gpus.tolist() == [8, 1, 1]
    assert jobs.cpus.tolist() == [32, 4, 4]
    assert jobs.tenant.values() == ["vcA", "vcB", "vcA"]
    assert jobs.gpu_types.values() == ["V100", "T4", "V100"]
    assert jobs.user.values() == ["3", None, "3"]
    assert jobs.status.values() == ["completed", "failed", "cancelled"]
    np.testing.assert_array_equal(jobs.recorded_wait_s, [5, np.nan, np.nan])
    np.testing.assert_array_equal(jobs.estimate_s, [100, 40, np.nan])


@pytest.mark.parametrize(
    ("tail", "tenant", "kind", "told"),
    [
        ((-1, "vcA", "V100"), "vcA", "V100", "column 18 is the virtual cluster and column 19"),
        (("vcA", "V100", -1), "vcA", "V100", "column 17 is the virtual cluster and column 18"),
        ((-1, -1, "vcA", "P100"), "vcA", "P100", "column 19 is the virtual cluster and column 20"),
        ((-1, "vcA", -1), "vcA", None, "column 18 is the virtual cluster"),
        ((-1, -1, "V100M32"), None, "V100M32", "column 19 is the GPU type"),
        ((-1, "T4", -1), None, "T4", "column 18 is the GPU type"),
        ((-1, "vc30", -1), "vc30", None, "column 18 is the virtual cluster"),
        ((-1, -1, "MISC"), None, "MISC", "column 19 is the GPU type"),
        ((-1, 12, 100), "12", "100", "as documented"),
        ((-1, -1, -1), None, None, "as documented"),
    ],
)
def test_names_are_found_where_they_are(tmp_path, tail, tenant, kind, told):
    """The columns that hold names are used, and the account says which these are."""
    found = import_trace(
        [table(tmp_path / "t.csv", *(row(n, n, 9, 1, tail=tail) for n in range(9)))]
    )
    jobs = found.workload()
    assert set(jobs.tenant.values()) == {tenant}
    assert set(jobs.gpu_types.values()) == {kind}
    assert any(told in remark for remark in found.account.remarks)


def test_absent_run_times_and_gpus_are_reasons(tmp_path):
    """−1 GPUs or seconds, and 0 GPUs, are dropped and counted; other negatives are mistakes."""
    lines = [
        row(1, 0, 60, 8, tail=DOCUMENTED), row(2, 1, -1, 8, tail=DOCUMENTED),
        row(3, 2, 60, -1, tail=DOCUMENTED), row(4, 3, 60, 0, tail=DOCUMENTED),
    ]  # fmt: skip
    found = import_trace([table(tmp_path / "t.csv", *lines)])
    assert [entry.count for entry in found.account.stages[0].dropped] == [1, 1, 1]
    assert found.workload().id.tolist() == [1]
    for bad in (row(5, -1, 60, 1, tail=DOCUMENTED), row(5, 1, -60, 1, tail=DOCUMENTED)):
        path = table(tmp_path / "t.csv", *lines, bad)
        with pytest.raises(TraceFormatError, match="line 5"):
            import_trace([path])
        skipped = import_trace([path], options=ImportOptions(skip_bad_rows=True))
        assert skipped.workload().fingerprint() == found.workload().fingerprint()


def test_requested_times_that_repeat_run_times_are_no_estimates(tmp_path):
    """An oracle is not an estimate: it is left out and said."""
    lines = [row(n, n, 60 + n, 1, tail=DOCUMENTED, limit=60 + n) for n in range(5)]
    found = import_trace([table(tmp_path / "t.csv", *lines)])
    assert np.isnan(found.workload().estimate_s).all()
    assert any("no estimates" in remark for remark in found.account.remarks)


@pytest.mark.parametrize(
    "line",
    [
        ",".join(["-1"] * 18),  # one column less
        ",".join(["x", *["1"] * 18]),  # nothing is absent
        ",".join(["x"] * 18 + ["-1"]),  # no times
        ",".join(["5"] * 19 + ["-1"]),  # 20 numbers, no names
        ",".join(f"c{n}" for n in range(19)),  # a header
    ],
)
def test_other_tables_are_not_taken_for_it(tmp_path, line):
    """Width, times and −1 tell these tables from others."""
    with pytest.raises(TraceFormatError, match="no known trace format"):
        import_trace([table(tmp_path / "t.dat", line, line)])
