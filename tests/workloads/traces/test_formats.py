"""Telling trace formats apart."""

from dataclasses import replace
from pathlib import Path

import pytest

from yardmaster.errors import InvalidWorkloadError, TraceFormatError, UnknownNameError
from yardmaster.workloads.traces.formats import (
    add_trace_format,
    import_trace,
    trace_formats,
)

PROMISED = (
    "philly", "helios", "acme", "alibaba-pai-2020", "alibaba-openb-2023", "alibaba-spot-2026",
    "alibaba-dlrm-2025", "lingjun-2023", "google-2011", "google-2019", "slurm", "swf",
    "rltune-csv", "rlmetadqn-csv", "csv",
)  # fmt: skip


def test_every_promised_format_is_there():
    """Each format has a name, says what it reads and whose trace it is."""
    known = trace_formats()
    assert set(PROMISED) <= set(known)
    for name, entry in known.items():
        assert entry.name == name
        assert entry.reads
        assert entry.source


def test_unknown_formats_get_a_suggestion(tmp_path: Path):
    """A misspelt format is named with what was probably meant."""
    with pytest.raises(UnknownNameError, match="helios"):
        import_trace([tmp_path], "heliso")


def test_files_of_no_format_are_refused(tmp_path: Path):
    """What nobody recognises is not guessed at."""
    path = tmp_path / "notes.txt"
    path.write_text("Dear diary,\ntoday the cluster was slow.\n")
    with pytest.raises(TraceFormatError, match=r"no known trace format.*--map"):
        import_trace([path])


def test_the_wrong_name_gets_a_hint(tmp_path: Path):
    """Who names one format and gives a file of another is told which."""
    path = tmp_path / "cluster_log.csv"
    path.write_text(
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,"
        "queue\n1,u,v,1,1,1,COMPLETED,2020-05-01 00:00:00,2020-05-01 00:00:00,"
        "2020-05-01 00:00:00,0,0\n"
    )
    for wrong in ("philly", "swf"):
        with pytest.raises(TraceFormatError, match=f"Not {wrong}. It looks like helios"):
            import_trace([path], wrong)


def test_files_must_be_named():
    """Nothing to read is an error, not an empty trace."""
    with pytest.raises(InvalidWorkloadError, match="Which files"):
        import_trace([], "helios")


def test_files_of_other_tables_are_mentioned(tmp_path: Path):
    """In a folder, what is not read is said."""
    (tmp_path / "readme.txt").write_text("hello")
    (tmp_path / "cluster_log.csv").write_text(
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,"
        "queue\n1,u,v,1,1,1,COMPLETED,2020-05-01 00:00:00,2020-05-01 00:00:00,"
        "2020-05-01 00:00:00,0,0\n"
    )
    remarks = import_trace([tmp_path]).account.remarks
    assert any("not read" in remark and "readme.txt" in remark for remark in remarks)


def test_formats_of_ones_own_come_first_and_replace_no_others():
    """A user's format is tried before others and may be changed; built-in names are refused."""
    known = trace_formats()
    before = dict(known)

    def read(*_):
        raise AssertionError

    own = replace(known["helios"], name="ours", read=read)
    try:
        add_trace_format(own)
        add_trace_format(own)
        assert list(known) == ["ours", *before]
        with pytest.raises(TraceFormatError, match="built-in"):
            add_trace_format(replace(own, name="philly"))
    finally:
        known.clear()
        known.update(before)
