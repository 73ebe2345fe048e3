"""Slurm: what a real cluster wrote of known jobs, in every dialect (see slurm/record.sh)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import yardmaster as ym
from yardmaster.errors import InvalidWorkloadError, TraceFormatError
from yardmaster.workloads.traces.formats import import_trace, trace_formats
from yardmaster.workloads.traces.reading.draft import ImportedTrace
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import opened

RECORDED = Path(__file__).parent / "slurm"
DIALECTS = {
    "sacct -D": ["sacct_duplicates.txt"],
    "sacct --json": ["sacct.json.gz"],
    "jobcomp": ["jobcomp.txt"],
    "database": ["yard_job_table.tsv", "tres_table.tsv"],
}
SKIPPING = ImportOptions(skip_bad_rows=True)


@dataclass(frozen=True)
class Submitted:
    """What `sbatch` was told, and what became of it."""

    gpus: int
    user: str
    limit_s: float | None
    types: str | None = None
    status: str = "completed"
    sleeps_s: float = 0.0
    cpus: int = 1
    ids: tuple[str, ...] = ()


CASES = {
    "untyped": Submitted(2, "alice", 300, sleeps_s=4, cpus=4),
    "typed": Submitted(1, "alice", 120, "V100", sleeps_s=3, cpus=2),
    "gpus-flag": Submitted(2, "bob", 86_400, "A100", sleeps_s=3),
    "two-nodes": Submitted(4, "bob", 600, sleeps_s=3, cpus=2),
    "no-limit": Submitted(1, "alice", None, sleeps_s=2),
    "default-limit": Submitted(1, "alice", 600, sleeps_s=2),
    "failed": Submitted(1, "bob", 180, status="failed", sleeps_s=2),
    "instant": Submitted(1, "bob", 180),
    "steps": Submitted(1, "alice", 180, sleeps_s=2),
    "pipe-name": Submitted(1, "alice", 180, sleeps_s=1),
    "array": Submitted(1, "bob", 180, sleeps_s=3, ids=("_0", "_1", "_2", "_3")),
    "dependency": Submitted(1, "alice", 180, sleeps_s=2),
    "begin-later": Submitted(1, "bob", 180, sleeps_s=2),
    "timeout": Submitted(1, "bob", 60, "V100", status="timeout", sleeps_s=60),
    "cancelled-running": Submitted(1, "alice", 300, "V100", status="cancelled", sleeps_s=3),
    "requeued": Submitted(1, "bob", 300, "V100", sleeps_s=12),
    "suspended-gpu": Submitted(1, "alice", 300, "V100", sleeps_s=5),
    "scavenged": Submitted(4, "bob", 300, "A100", status="preempted", sleeps_s=5),
    "preemptor": Submitted(4, "alice", 300, "A100", sleeps_s=3),
    "still-running": Submitted(2, "alice", 3600, status="running", sleeps_s=5),
}
"""Jobs with GPUs that started; the two parts of `het` differ and come below."""

NUMBERS = {"alice": "1001", "bob": "1002"}
"""Users as the database knows them."""

NEVER_ENDED_IN_LOG = {"still-running"}
"""What `jobcomp`, which writes when a job ends, cannot know."""


def ids() -> dict[str, str]:
    lines = (RECORDED / "jobs.tsv").read_text().splitlines()
    return dict(line.split("\t") for line in lines)


def imported(*names: str, options: ImportOptions | None = None) -> ImportedTrace:
    return import_trace([RECORDED / name for name in names], options=options)


def by_id(trace: ImportedTrace) -> dict[str, dict[str, object]]:
    return {str(row["id"]): row for row in trace.frame.iter_rows(named=True)}


def dropped(trace: ImportedTrace) -> dict[str, int]:
    return {entry.reason: entry.count for stage in trace.account.stages for entry in stage.dropped}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_tells_what_was_submitted(dialect):
    """GPUs, types, account, user, limit, cores and end of each job are those of its submission."""
    jobs = by_id(imported(*DIALECTS[dialect]))
    numbers = ids()
    for case, told in CASES.items():
        if dialect == "jobcomp" and case in NEVER_ENDED_IN_LOG:
            continue
        for suffix in told.ids or ("",):
            job = jobs.pop(numbers[case] + suffix)
            user = NUMBERS[told.user] if dialect == "database" else told.user
            assert (job["gpus"], job["gpu_types"]) == (told.gpus, told.types), case
            assert job["tenant"] == ("vision" if told.user == "alice" else "language"), case
            assert (job["user"], job["estimate_s"]) == (user, told.limit_s), case
            assert (job["status"], job["cpus"]) == (told.status, told.cpus), case
            assert told.sleeps_s <= job["duration_s"] <= told.sleeps_s + 25, case
    het = numbers["het"]
    assert {name: (job["gpus"], job["gpu_types"]) for name, job in jobs.items()} == {
        f"{het}+0": (1, "V100"),
        f"{het}+1": (2, "A100"),
    }


def test_all_dialects_agree():
    """The same jobs, times, waits, memory and priorities from each, where it knows them."""
    first = imported("sacct_duplicates.txt").frame.sort("id")
    for dialect, files in DIALECTS.items():
        other = imported(*files).frame.sort("id")
        expected = first.filter(pl.col("id").is_in(other["id"].implode()))
        assert len(first) - len(other) == (len(NEVER_ENDED_IN_LOG) if dialect == "jobcomp" else 0)
        for column in ("id", "submit_s", "gpus", "memory_gib", "recorded_wait_s", "priority"):
            if column in other.columns:
                assert other[column].equals(expected[column]), (dialect, column)
        done = expected["status"] != "running"
        if dialect == "jobcomp":  # knows nothing of suspension
            done &= expected["id"] != ids()["suspended-gpu"]
        assert other.filter(done)["duration_s"].equals(expected.filter(done)["duration_s"])


def test_the_account_explains_every_row():
    """Each submission that is no job is dropped for the reason known from its script."""
    trace = imported("sacct_duplicates.txt")
    assert dropped(trace) == {
        "its job has a later record (requeued, or exported twice)": 1,  # requeued
        "was waiting in the queue when the log was written": 2,  # waiting, waiting-array
        "never started": 1,  # waiting-cancelled
        "asked for no GPU (CPU job)": 4,  # cpu-only, suspended, node-failed, running-unlimited
    }
    assert trace.account.censored == {"were still running when the log was written": 1}
    changed = {what.partition(" (")[0]: count for what, count in trace.account.changed.items()}
    assert changed["were suspended for a while, which their run times leave out"] == 1
    assert changed["are parts of heterogeneous jobs, taken as jobs of their own"] == 2
    assert changed["could not start at once"] >= 4  # dependency, begin, requeue, two of the array
    assert trace.account.missing_columns == ()


def test_the_database_also_knows_jobs_that_never_became_eligible():
    """`sacct` hides held jobs; the table has them: held, half of an array, not yet begun."""
    reasons = dropped(imported("yard_job_table.tsv", "tres_table.tsv"))
    assert reasons["was waiting in the queue when the log was written"] == 2 + 3
    assert reasons["never started"] == 1 + 1


def test_steps_are_counted_and_change_nothing():
    """`sacct` without -X tells the same of the jobs, besides rows of steps."""
    steps = imported("sacct_steps.txt", options=SKIPPING)
    plain = imported("sacct.txt", options=SKIPPING)
    assert steps.frame.equals(plain.frame)
    lines = (RECORDED / "sacct_steps.txt").read_text().splitlines()[1:]
    counted = sum("." in line.split("|")[0] for line in lines)
    assert dropped(steps)["a step of a job, which has a row of its own"] == counted > 20


def test_a_bar_in_a_name_is_a_mistake_that_names_its_line():
    """JobName `a|b` makes a cell too many; the message says where, and what to leave out."""
    lines = (RECORDED / "sacct.txt").read_text().splitlines()
    number = next(n for n, line in enumerate(lines, 1) if "|a|b|" in line)
    with pytest.raises(TraceFormatError) as caught:
        imported("sacct.txt")
    assert f"line {number}: 26 cells, but there are 25 columns" in str(caught.value)
    assert "JobName" in str(caught.value)
    skipped = imported("sacct.txt", options=SKIPPING)
    assert dropped(skipped)["cannot be read"] == 1
    assert ids()["pipe-name"] not in by_id(skipped)


def test_a_job_waits_from_when_it_may_start():
    """What waits for a dependency or a begin time is submitted, for us, when that is over."""
    numbers, jobs = ids(), by_id(imported("sacct_duplicates.txt"))
    first = jobs[numbers["untyped"]]
    ends = first["submit_s"] + first["recorded_wait_s"] + first["duration_s"]
    assert jobs[numbers["dependency"]]["submit_s"] >= ends
    assert jobs[numbers["begin-later"]]["submit_s"] == first["submit_s"] + 15
    assert jobs[numbers["begin-later"]]["recorded_wait_s"] <= 2


def test_suspension_is_no_run_time():
    """A sleep of 12 s that was suspended for about half of it ran for the other half."""
    job = by_id(imported("sacct_duplicates.txt"))[ids()["suspended-gpu"]]
    assert 4 <= job["duration_s"] <= 9


def test_running_jobs_have_run_until_the_log_was_written():
    """`sacct` says how long; in the database it is until the last second that it knows of."""
    number = ids()["still-running"]
    written = by_id(imported("sacct_duplicates.txt"))[number]
    stored = by_id(imported("yard_job_table.tsv", "tres_table.tsv"))[number]
    assert abs(written["duration_s"] - stored["duration_s"]) <= 10
    assert stored["duration_s"] > 0


def test_numbered_resources_without_names_count_as_gpus_once():
    """Without `tres_table`, totals and types are told apart by their sums, and the user is told."""
    named = imported("yard_job_table.tsv", "tres_table.tsv")
    bare = imported("yard_job_table.tsv")
    assert bare.frame["gpus"].to_list() == named.frame["gpus"].to_list()
    assert "gpu_types" not in bare.frame.columns
    assert any("tres_table" in remark for remark in bare.account.remarks)
    assert not any("tres_table" in remark for remark in named.account.remarks)


def test_unix_times_are_put_on_the_clock_of_the_zone():
    """SLURM_TIME_FORMAT=%s: UTC unless a zone is named, and the account says which."""
    plain = imported("sacct_unix.txt", options=SKIPPING)
    local = imported("sacct.txt", options=SKIPPING)  # recorded under TZ=UTC
    ended = pl.col("status") != "running"  # the others went on running between the two
    assert plain.frame.filter(ended).equals(local.frame.filter(ended))
    assert plain.account.time_zone.startswith("UTC")
    berlin = imported(
        "sacct_unix.txt", options=ImportOptions(skip_bad_rows=True, time_zone="Europe/Berlin")
    )
    assert (berlin.frame["submit_s"] - plain.frame["submit_s"]).unique().to_list() == [3600.0]


def test_two_exports_are_one_log():
    """Jobs that both hold are counted once; what the later one knows of a job wins."""
    trace = imported("sacct_p.txt", "sacct_duplicates.txt")
    assert len(trace.frame) == len(imported("sacct_p.txt").frame)
    assert dropped(trace)["its job has a later record (requeued, or exported twice)"] == 33


def test_cores_are_slots_on_request():
    """With slot_cores, CPU jobs stay: 3 cores are two slots of 2."""
    numbers = ids()
    jobs = by_id(imported("sacct_duplicates.txt", options=ImportOptions(slot_cores=2)))
    assert jobs[numbers["cpu-only"]]["gpus"] == 2
    assert jobs[numbers["untyped"]]["gpus"] == 2  # its GPUs, not its 4 cores
    assert jobs[numbers["node-failed"]]["status"] == "node failure"


def test_tables_without_columns_are_refused_with_the_command_to_run(tmp_path):
    """Output for the eye, or without its header, cannot be read; the message says what can."""
    rows = (RECORDED / "sacct_p.txt").read_text().splitlines(keepends=True)[1:]
    (tmp_path / "headless.txt").write_text("".join(rows))
    for path in (RECORDED / "sacct_for_eyes.txt", tmp_path / "headless.txt"):
        with pytest.raises(TraceFormatError, match=r"sacct -a -X -P .*--format=JobIDRaw"):
            import_trace([path])


def test_only_slurm_claims_what_slurm_wrote():
    """No other format takes one of the recorded files for its own."""
    for path in sorted(RECORDED.glob("*.txt")) + sorted(RECORDED.glob("*.gz")):
        with opened([path]) as files:
            claimed = [e.name for e in trace_formats().values() if e.recognises(files[0])]
        assert claimed == ["slurm"], path


def test_imported_jobs_simulate():
    """The recorded jobs run on a cluster like the recorded one."""
    jobs = imported("sacct_duplicates.txt").workload()
    schedule = ym.simulate(jobs, ym.Cluster.of("1x V100:4", "1x A100:4"), "fifo+easy")
    assert np.isfinite(schedule.end_s).all()
    assert len(schedule.end_s) == len(jobs) == 25


def test_nothing_but_names_of_resources_is_no_log():
    """`tres_table` alone is refused: the jobs are in another table."""
    with pytest.raises(TraceFormatError, match="which file has the jobs"):
        imported("tres_table.tsv")


def test_a_log_without_jobs_is_refused(tmp_path):
    """A header and nothing else: no job is left."""
    header = (RECORDED / "sacct_p.txt").read_text().splitlines(keepends=True)[0]
    (tmp_path / "empty.txt").write_text(header)
    with pytest.raises(InvalidWorkloadError, match="no job is left"):
        import_trace([tmp_path / "empty.txt"])
