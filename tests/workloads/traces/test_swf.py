"""Standard Workload Format: real files, deliberate skips, broken lines."""

from __future__ import annotations

import gzip
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.errors import (
    InvalidWorkloadError,
    TraceFormatError,
    UnknownNameError,
    YardmasterError,
)
from yardmaster.model.workload import Workload
from yardmaster.workloads.traces.formats import import_trace
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.swf import read_swf, read_swf_header

TRACES = Path(__file__).resolve().parents[3] / ".." / "shared/traces"
needs_traces = pytest.mark.skipif(
    not TRACES.exists(), reason="needs shared/traces beside the repository"
)

# file → job lines (as published), lines with run time ≤ 0, processors of the machine
REAL = {
    "swf/KTH-SP2-1996-2.1-cln.swf.gz": (27_992, 0, 100),
    "swf/NASA-iPSC-1993-3.1-cln.swf.gz": (18_239, 173, 128),
    "swf/SDSC-BLUE-2000-4.2-cln.swf.gz": (243_306, 10_770, 1152),
    "swf_lublin/lublin_256.swf": (10_000, 0, 256),
}


def _line(job=1, submit=0, run=60, allocated=4, **others) -> str:
    """Write one job line; fields are named as in `swf.COLUMNS`."""
    cells = [-1] * 18
    cells[0], cells[1], cells[3], cells[4] = job, submit, run, allocated
    places = {
        "wait": 2, "requested": 7, "time": 8, "status": 10, "user": 11, "group": 12,
        "executable": 13,
    }  # fmt: skip
    for key, value in others.items():
        cells[places[key]] = value
    return " ".join(map(str, cells))


def _read(folder: Path, *lines: str, **options):
    path = folder / "test.swf"
    path.write_text("\n".join(lines), encoding="utf-8")
    return read_swf(path, **options)


@needs_traces
@pytest.mark.parametrize("name", REAL)
def test_real_files_give_every_job(name):
    """Every published job line becomes a job or is counted as skipped, in seconds, not minutes."""
    lines, idle, processors = REAL[name]
    began = time.perf_counter()
    workload = read_swf(TRACES / name)
    assert time.perf_counter() - began < 8  # the largest takes 0.7 s alone on a slow core
    assert len(workload) == lines - idle
    skipped = [note for note in workload.notes if note.startswith("skipped")]
    assert skipped == ([f"skipped {idle} lines with run time ≤ 0"] if idle else [])
    assert workload.gpus.max() <= processors
    header = read_swf_header(TRACES / name)
    assert header.processors == processors
    assert header.max_records is not None


@needs_traces
def test_real_columns_are_mapped():
    """The first job of KTH-SP2, read by eye: times, processors, limit, people, status."""
    workload = read_swf(TRACES / "swf/KTH-SP2-1996-2.1-cln.swf.gz")
    assert workload.name == "KTH-SP2-1996-2.1-cln"
    assert (workload.id[0], workload.submit_s[0], workload.duration_s[0]) == (15, 599_850, 3477)
    assert (workload.gpus[0], workload.estimate_s[0]) == (4, 53_940)
    assert workload.user.values()[0] == "user-12"
    assert workload.tenant.values()[0] == "group-12"
    assert workload.status.values()[:3] == ["completed", "completed", "failed"]
    assert workload.kind.values()[0] is None
    header = read_swf_header(TRACES / "swf/KTH-SP2-1996-2.1-cln.swf.gz")
    assert (header.unix_start_s, header.time_zone) == (843_480_031, "Europe/Stockholm")
    assert header.fields["Note"].startswith("uses the EASY scheduler\nTHIS IS A CLEANED")


def test_unknown_values_are_missing(tmp_path):
    """−1 becomes a missing estimate, user, tenant, kind and status."""
    workload = _read(tmp_path, _line(), _line(job=2, time=0))
    assert np.isnan(workload.estimate_s).all()
    for labels in (workload.user, workload.tenant, workload.kind, workload.status):
        assert labels.values() == [None, None]
    assert any("2 jobs without a requested time" in note for note in workload.notes)


def test_processors_fall_back_to_the_other_column(tmp_path):
    """Allocated processors by default, requested ones where none are known, and the reverse."""
    lines = [
        _line(job=1, allocated=4, requested=8),
        _line(job=2, allocated=-1, requested=8),
        _line(job=3, allocated=2, requested=-1),
    ]
    workload = _read(tmp_path, *lines)
    assert workload.gpus.tolist() == [4, 8, 2]
    assert "1 job without allocated processors: took the requested ones" in workload.notes
    assert _read(tmp_path, *lines, gpus_column="requested").gpus.tolist() == [8, 8, 2]
    with pytest.raises(UnknownNameError, match="Did you mean 'allocated'"):
        _read(tmp_path, *lines, gpus_column="alocated")


def test_lines_that_are_no_jobs_are_counted_by_reason(tmp_path):
    """Every line is a job or stands in the notes with its reason."""
    workload = _read(
        tmp_path,
        "; MaxProcs: 16",
        _line(job=1),
        _line(job=2, run=0),
        _line(job=3, run=-1),
        _line(job=4, allocated=0),
        _line(job=5, submit=-7),
    )
    assert workload.id.tolist() == [1]
    assert workload.notes[:4] == (
        "the machine had 16 processors",
        "skipped 2 lines with run time ≤ 0",
        "skipped 1 line without processors",
        "skipped 1 line with a negative submit time",
    )


def test_broken_lines_are_counted_and_named(tmp_path):
    """Too few fields, words and infinities are skipped; the notes give their line numbers."""
    lines = ["; Version: 2.2"]
    lines += [_line(job=number, submit=number) for number in range(2, 21)]
    lines[3] = "1 2 3"
    lines[6] = _line(job="seven")
    lines[9] = _line(job=10, run="inf")
    lines[12] = _line(job=13, allocated=2.5)
    workload = _read(tmp_path, *lines)
    assert "skipped 4 broken lines: 4, 7, 10, 13" in workload.notes
    assert set(workload.id.tolist()) == set(range(2, 21)) - {4, 7, 10, 13}


def test_a_file_that_is_mostly_broken_is_refused(tmp_path):
    """More than half broken lines, or no job lines at all, is not this format."""
    with pytest.raises(TraceFormatError, match=r"test\.swf.*2 of 3 lines.*lines 1, 2"):
        _read(tmp_path, "a,b,c", "1,2,3", _line())
    with pytest.raises(TraceFormatError, match="no job lines"):
        _read(tmp_path, "; MaxJobs: 0", "", "   ")
    with pytest.raises(TraceFormatError, match="no job lines"):
        _read(tmp_path)


def test_a_file_without_a_usable_job_says_why(tmp_path):
    """If every line is skipped, the error repeats the reasons."""
    with pytest.raises(InvalidWorkloadError, match=r"no job is left: skipped 1 line with run time"):
        _read(tmp_path, _line(run=-1))


def test_repeated_job_numbers_are_renumbered_and_counted(tmp_path):
    """No job is lost when two share a number, and the notes say which was renamed."""
    workload = _read(
        tmp_path,
        _line(job=5),
        _line(job=9, submit=1),
        _line(job=5, submit=2),
        _line(job=5, submit=3),
    )
    assert workload.id.tolist() == [5, 9, 10, 11]
    assert "renumbered 2 jobs whose number was taken (first: 5 became 10)" in workload.notes


def test_pieces_of_an_interrupted_job_are_not_counted_twice(tmp_path):
    """Partial records of a job with its own line are skipped; without one they are kept."""
    workload = _read(
        tmp_path,
        _line(job=1, run=100, status=1),
        _line(job=1, run=60, status=2),
        _line(job=1, run=40, status=3),
        _line(job=2, submit=5, run=70, status=2),
        _line(job=2, submit=9, run=10, status=4),
    )
    assert workload.duration_s.tolist() == [100, 70, 10]
    assert workload.status.values() == ["completed", "partial", "partial"]
    assert "skipped 2 lines for a piece of another line's job" in workload.notes


def test_plain_and_gzipped_files_are_equal_whatever_their_name(tmp_path):
    """Compression is recognised by content; line ends may be those of any system."""
    lines = [_line(job=number, submit=3 * number, user=number % 2) for number in range(1, 6)]
    (tmp_path / "unix.swf").write_bytes("\n".join(lines).encode())
    (tmp_path / "windows.swf").write_bytes("\r\n".join(lines).encode())
    (tmp_path / "packed.swf.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (tmp_path / "misnamed.swf").write_bytes(gzip.compress("\n".join(lines).encode()))
    prints = {read_swf(path).fingerprint() for path in tmp_path.iterdir()}
    assert len(prints) == 1


def test_damaged_and_missing_files_are_user_errors(tmp_path):
    """A cut gzip file and a misspelt name give a clear message."""
    packed = gzip.compress((_line() + "\n").encode() * 100)
    (tmp_path / "cut.swf.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(TraceFormatError, match=r"cut\.swf\.gz is a damaged gzip file"):
        read_swf(tmp_path / "cut.swf.gz")
    with pytest.raises(InvalidWorkloadError, match=r"No such file.*Did you mean 'cut\.swf\.gz'"):
        read_swf(tmp_path / "cat.swf.gz")
    with pytest.raises(InvalidWorkloadError, match="Cannot read"):
        read_swf(tmp_path)


def test_unreadable_header_values_are_none(tmp_path):
    """A header that makes no sense does not stop the jobs from being read."""
    path = tmp_path / "odd.swf"
    path.write_bytes(
        b"; MaxProcs: many\n;MaxNodes:12 (of 14)\n; caf\xe9: \xff\n" + _line().encode()
    )
    header = read_swf_header(path)
    assert (header.max_procs, header.processors) == (None, 12)
    assert len(read_swf(path)) == 1


def _workload_or_error(path: Path) -> Workload | YardmasterError:
    try:
        return read_swf(path)
    except YardmasterError as error:
        return error


numberish = st.one_of(
    st.integers(-2, 10**6).map(str),
    st.floats().map(str),
    st.sampled_from(["-1", "nan", "1e400", "1_0", "0x1", "--3", "٣", "1e20", "\x1c", "\xa0"]),
    st.text(max_size=4),
)
garbage = st.one_of(
    st.text(max_size=60),
    st.lists(numberish, min_size=16, max_size=20).map(" ".join),
    st.builds(_line, job=st.integers(-3, 5), submit=st.integers(-5, 50), run=st.integers(-2, 9)),
)


@settings(max_examples=150, deadline=None)
@given(lines=st.lists(garbage, max_size=12), good=st.integers(0, 12))
def test_garbage_gives_jobs_or_a_clear_error(lines, good):
    """Whatever the file holds, reading it ends in a valid workload or a YardmasterError."""
    lines = [*lines, *(_line(job=100 + number) for number in range(good))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "garbage.swf"
        path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
        result = _workload_or_error(path)
    if isinstance(result, YardmasterError):
        assert "garbage.swf" in str(result)
    else:
        assert len(result) >= good
        assert len(set(result.id.tolist())) == len(result)


@settings(max_examples=50, deadline=None)
@given(content=st.binary(max_size=200), packed=st.booleans())
def test_bytes_give_jobs_or_a_clear_error(content, packed):
    """Even random bytes, gzipped or pretending to be, never end in another error."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bytes.swf"
        path.write_bytes(gzip.compress(content) if packed else b"\x1f\x8b" + content)
        with pytest.raises(YardmasterError):
            read_swf(path)


# --- the import with its account ------------------------------------------------------------------

# file → local date and time of second 0, as its header's StartTime says
BEGINNINGS = {
    "swf/KTH-SP2-1996-2.1-cln.swf.gz": "1996-09-23T14:00:31",
    "swf/NASA-iPSC-1993-3.1-cln.swf.gz": "1993-10-01T00:00:03",
    "swf/SDSC-BLUE-2000-4.2-cln.swf.gz": "2000-04-25T15:00:03",
    "swf_lublin/lublin_256.swf": "",
}


@needs_traces
@pytest.mark.parametrize("name", REAL)
def test_importing_a_real_file_gives_the_same_jobs_and_an_account(name):
    """Detection alone finds the format; lines read = jobs + reasons; the clock begins as said."""
    lines, idle, _ = REAL[name]
    found = import_trace([TRACES / name])
    assert found.account.format == "swf"
    (stage,) = found.account.stages
    assert (stage.read, stage.kept) == (lines, lines - idle)
    assert [entry.count for entry in stage.dropped] == ([idle] if idle else [])
    plain = read_swf(TRACES / name)
    assert found.workload().fingerprint() == plain.fingerprint()
    assert found.account.begins == plain.begins == BEGINNINGS[name]


@needs_traces
def test_the_account_names_what_a_log_does_not_know():
    """NASA's log has neither waits nor limits nor statuses; its zone is the header's."""
    account = import_trace([TRACES / "swf/NASA-iPSC-1993-3.1-cln.swf.gz"]).account
    assert account.missing_columns == ("wait time", "requested time", "status")
    assert account.time_zone == "US/Pacific"
    assert any("every processor of 128 is one slot" in remark for remark in account.remarks)


def test_the_beginning_needs_a_zone_or_an_offset(tmp_path):
    """A zone nobody knows falls back to the offset; the user's zone wins; else it is unknown."""
    start, job = "; UnixStartTime: 86400", _line(wait=5)
    for header, option, begins in (
        (["; TimeZoneString: Asia/Tokyo"], None, "1970-01-02T09:00:00"),
        (["; TimeZoneString: Mars/Base", "; TimeZone: -3600"], None, "1970-01-01T23:00:00"),
        (["; TimeZoneString: Mars/Base"], None, ""),
        (["; TimeZone: soon"], None, ""),
        (["; TimeZoneString: Asia/Tokyo"], "UTC", "1970-01-02T00:00:00"),
    ):
        path = tmp_path / "log.swf"
        path.write_text("\n".join([start, *header, job]))
        found = import_trace([path], options=ImportOptions(time_zone=option))
        assert found.account.begins == begins
        assert found.workload().recorded_wait_s.tolist() == [5]
    path.write_text(f"; UnixStartTime: 0\n; TimeZoneString: UTC\n{job}")
    assert read_swf(path).begins == ""


def test_processors_become_slots_of_several(tmp_path):
    """With --slot-cores so many processors are one slot, rounded up, and the account says so."""
    path = tmp_path / "log.swf"
    path.write_text("\n".join(["; MaxProcs: 1152", _line(allocated=1), _line(job=2, allocated=17)]))
    found = import_trace([path], options=ImportOptions(slot_cores=8))
    assert found.workload().gpus.tolist() == [1, 3]
    assert any("the machine has 144" in remark for remark in found.account.remarks)


def test_broken_and_early_lines_are_mistakes_in_an_import(tmp_path):
    """The account refuses what it cannot explain, naming lines; skipping them is a choice."""
    path = tmp_path / "log.swf"
    lines = ["; Version: 2", *(_line(job=n, submit=n) for n in range(1, 8))]
    lines[2], lines[4], lines[6] = "1 2 3", _line(job=4, submit=-7, run=-1), _line(run="x")
    lines.append(_line(job=9, status=2) + " 19")
    path.write_text("\n".join(lines))
    with pytest.raises(TraceFormatError) as caught:
        import_trace([path])
    shown = str(caught.value).split("\n")
    assert "4 lines cannot be read" in shown[0]
    assert [line.strip() for line in shown[1:]] == [
        "- line 3: 3 numbers, not 18",
        "- line 5: submitted at second -7, before second 0",
        "- line 7: field 4 (run) is 'x', not a number",
        "- line 9: 19 numbers, not 18",
    ]
    found = import_trace([path], options=ImportOptions(skip_bad_rows=True))
    (stage,) = found.account.stages
    assert (stage.read, stage.kept, stage.dropped[0].count) == (8, 4, 4)
    assert found.workload().id.tolist() == [1, 3, 5, 7]


def test_every_reason_is_counted_once(tmp_path):
    """Pieces, unknown run times and unknown processors each have their reason."""
    path = tmp_path / "log.swf"
    path.write_text(
        "\n".join(
            [
                _line(job=1, status=1),
                _line(job=1, status=2),
                _line(job=2, run=0),
                _line(job=3, run=-1, allocated=-1),
                _line(job=4, allocated=0),
                _line(job=5, allocated=-1, requested=6),
                _line(job=5),
            ]
        )
    )
    found = import_trace([path])
    (stage,) = found.account.stages
    assert [entry.count for entry in stage.dropped] == [1, 2, 1]
    assert found.workload().id.tolist() == [1, 5, 6]
    assert found.workload().gpus.tolist() == [4, 6, 4]
    assert sorted(found.account.changed.values()) == [1, 1]


def test_logs_without_header_and_ending_are_recognised(tmp_path):
    """Lines of 18 numbers are enough; other numbers are not; two logs have two clocks."""
    path = tmp_path / "RICC-2010"
    path.write_text("\n".join(_line(job=n, submit=n) for n in range(5)))
    assert import_trace([path]).account.format == "swf"
    other = tmp_path / "numbers.txt"
    other.write_text("1 2 3 4\n" * 5)
    with pytest.raises(TraceFormatError, match="no known trace format"):
        import_trace([other])
    second = tmp_path / "second.swf"
    second.write_bytes(path.read_bytes())
    with pytest.raises(InvalidWorkloadError, match="clock of its own"):
        import_trace([path, second])
