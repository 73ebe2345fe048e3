"""`sacct --json`: both generations of the document, and damaged ones."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.formats import import_trace
from yardmaster.workloads.traces.reading.draft import ImportedTrace
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.slurm import sacct_json

RECORDED = Path(__file__).parent / "slurm" / "sacct.json.gz"


def document() -> dict[str, Any]:
    """What Slurm 22.05 wrote."""
    with gzip.open(RECORDED, "rt") as stream:
        return dict(json.load(stream))


def wrapped(number: Any) -> dict[str, Any]:
    """A number as later versions write it."""
    return {"set": number is not None, "infinite": False, "number": number or 0}


def renewed(old: dict[str, Any]) -> dict[str, Any]:
    """The document as later versions write it: wrapped numbers, lists of states, jobs first."""
    jobs = copy.deepcopy(old["jobs"])
    for job in jobs:
        job["time"]["limit"] = wrapped(job["time"]["limit"])
        job["time"]["start"] = job["time"]["start"] or 0
        job["priority"] = wrapped(job["priority"])
        job["array"]["task_id"] = wrapped(job["array"]["task_id"])
        job["het"]["job_offset"] = wrapped(job["het"]["job_offset"])
        job["state"]["current"] = [job["state"]["current"]]
        job["required"] = {"CPUs": job["required"]["CPUs"], "memory_per_node": wrapped(100)}
    return {"jobs": jobs, "meta": {"slurm": {"version": {"major": "24"}}}, "errors": []}


def read(folder: Path, content: Any, **options: Any) -> ImportedTrace:
    path = folder / "jobs.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
    return import_trace([path], options=ImportOptions(**options))


def test_old_and_new_documents_tell_the_same(tmp_path):
    """Wrapped or bare, one state or a list of them."""
    old, new = import_trace([RECORDED]), read(tmp_path, renewed(document()))
    assert new.frame.equals(old.frame)
    assert new.account.stages == tuple(
        stage if place else type(stage)("rows of jobs.json", stage.read, stage.kept, stage.dropped)
        for place, stage in enumerate(old.account.stages)
    )


def test_unlimited_and_infinite_are_no_estimates(tmp_path):
    """A limit that is infinite, or not set."""
    text = renewed(document())
    for job in text["jobs"]:
        job["time"]["limit"] = {"set": True, "infinite": True, "number": 0}
    assert "estimate_s" not in read(tmp_path, text).frame.columns


def test_records_larger_than_a_piece(tmp_path, monkeypatch):
    """However small the pieces in which the document is read, it is the same document."""
    monkeypatch.setattr(sacct_json, "CHUNK_CHARACTERS", 1000)
    monkeypatch.setattr(sacct_json, "CHUNK_RECORDS", 3)
    pieces = read(tmp_path, renewed(document())).frame
    monkeypatch.undo()
    assert pieces.equals(import_trace([RECORDED]).frame)


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("start", "soon", "time.start is 'soon', not a date and time"),
        ("submission", -5, "time.submission is '-5'"),
        ("elapsed", 1e300, "time.elapsed is '1e+300'"),
        ("limit", [], None),
        ("end", {"set": True, "infinite": False, "number": 5}, "time.end is before time.start"),
    ],
)
def test_senseless_values_are_named(tmp_path, key, value, complaint):
    """The message names the line of the record and the key as it is in the document."""
    text = document()
    text["jobs"][3]["time"][key] = value
    if complaint is None:  # an empty list says nothing, which a limit may
        assert read(tmp_path, text).account.jobs == 25
        return
    lines = json.dumps(text, indent=2).splitlines()
    line = [number for number, content in enumerate(lines, 1) if content == "    {"][3]
    with pytest.raises(TraceFormatError) as caught:
        read(tmp_path, text)
    assert f"line {line}: {complaint}" in str(caught.value)
    assert read(tmp_path, text, skip_bad_rows=True).account.stages[0].kept == 32


@pytest.mark.parametrize(
    "stranger",
    [5, "x", None, [], {"job_id": 5, "submit_time": 7}, {"time": {}}, {"job_id": 4, "time": 3}],
)
def test_strangers_among_the_records(tmp_path, stranger):
    """Anything but a record of a job is a mistake; `squeue --json` has no times either."""
    text = document()
    text["jobs"].insert(1, stranger)
    with pytest.raises(TraceFormatError, match="1 record cannot be read"):
        read(tmp_path, text)
    skipped = read(tmp_path, text, skip_bad_rows=True)
    assert skipped.frame.equals(import_trace([RECORDED]).frame)


def test_damage_is_refused_wherever_it_is(tmp_path):
    """Cut off, or with a bracket too many or too few: no job may be lost without a word."""
    text = json.dumps(document(), indent=1)
    middle = text.index('"job_id": 8')
    for damaged in (
        text[:middle], text[:-1], text[:-4], text[:middle] + "]" + text[middle:],
        text[:middle] + "{" + text[middle:], text.replace("},\n  {", "}\n  {", 1),
        text.replace('"jobs": [', '"jobs": [,', 1), text + "]",
    ):  # fmt: skip
        with pytest.raises(TraceFormatError, match=r"jobs\.json"):
            read(tmp_path, damaged)


def test_bytes_that_are_no_text(tmp_path):
    """A document that is not UTF-8 is refused."""
    (tmp_path / "jobs.json").write_bytes(
        json.dumps(document()).replace("alice", "alicX").encode().replace(b"alicX", b"alic\xeb")
    )
    with pytest.raises(TraceFormatError, match="not UTF-8"):
        import_trace([tmp_path / "jobs.json"])


def test_half_letters_are_replaced(tmp_path):
    """JSON can write half of a letter; the job is kept."""
    text = document()
    text["jobs"][1]["user"] = "HALF"
    frame = read(tmp_path, json.dumps(text).replace("HALF", "\\ud800")).frame
    assert len(frame) == 25
