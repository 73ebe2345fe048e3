"""Workload files of real commands."""

from __future__ import annotations

import math

import pytest

from yardmaster.errors import InvalidWorkloadError
from yardmaster.live.local.commands import read_commands

TOML = """
name = "evening"
[defaults]
estimate_s = 60
[[job]]
id = "late"
command = "echo hi"
submit_s = 5
[[job]]
id = "early"
command = ["sleep", "1"]
gpus = 2
timeout_s = 9.5
retries = 2
environment = { A = "1" }
"""


def test_toml_and_csv_say_the_same(tmp_path):
    """The same jobs from either format, by submission, with defaults filled in."""
    (tmp_path / "jobs.toml").write_text(TOML)
    found = read_commands(tmp_path / "jobs.toml")
    assert found.name == "evening"
    early, late = found.jobs
    assert early.command == ("sleep", "1")
    assert (early.gpus, early.timeout_s, early.retries, early.estimate_s) == (2, 9.5, 2, 60.0)
    assert early.environment == (("A", "1"),)
    assert late.command == ("/bin/sh", "-c", "echo hi")
    (tmp_path / "jobs.csv").write_text(
        "id,command,submit_s,gpus,estimate_s\nlate,echo hi,5,,60\nearly,sleep 1,0,2,60\n"
    )
    rows = read_commands(tmp_path / "jobs.csv").jobs
    assert [(job.id, job.gpus, job.estimate_s) for job in rows] == [
        ("early", 2, 60.0),
        ("late", 1, 60.0),
    ]


def test_what_is_believed_of_run_times(tmp_path):
    """The estimate, else the time-out, else an hour; and what is not said is null in the record."""
    path = tmp_path / "jobs.csv"
    path.write_text("id,command,estimate_s,timeout_s\na,x,5,9\nb,x,,9\nc,x,,\n")
    jobs = read_commands(path).jobs
    assert [job.believed_s for job in jobs] == [5.0, 9.0, 3600.0]
    assert math.isinf(jobs[2].timeout_s)
    assert jobs[2].record()["timeout_s"] is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[[job]]\nid='../x'\ncommand='x'", "letters, digits"),
        ("[[job]]\nid='.hidden'\ncommand='x'", "letters, digits"),
        ("[[job]]\nid='a'\ncommand='x'\n[[job]]\nid='a'\ncommand='x'", "second job"),
        ("[[job]]\nid='a'", "command must be"),
        ("[[job]]\nid='a'\ncommand='x'\ngpu=1", "Did you mean 'gpus'"),
        ("[[job]]\nid='a'\ncommand='x'\ngpus=0", "at least 1"),
        ("[[job]]\nid='a'\ncommand='x'\nestimate_s='soon'", "not a number"),
        ("[[job]]\nid='a'\ncommand='x'\nsubmit_s=-1", "out of bounds"),
        ("[[jobs]]\nid='a'", "Did you mean 'job'"),
        ("name='x'", "no jobs"),
        ('[[job]]\nid="a"\ncommand=["x", "a\\u0000b"]', "command holds a character"),
        ('[[job]]\nid="a"\ncommand="x \\u0000"', "command holds a character"),
        ('[[job]]\nid="a"\ncommand="x"\nfolder="\\u0000"', "folder holds a character"),
        ("[[job]]\nid='a'\ncommand='x'\nenvironment={'A=B'='1'}", "can be given 'A=B'"),
        ("[[job]]\nid='a'\ncommand='x'\nenvironment={''='1'}", "can be given ''"),
        ("[[job", "jobs.toml"),
    ],
)
def test_mistakes_are_named(tmp_path, text, sentence):
    """A mistake ends with a sentence that says where and what."""
    path = tmp_path / "jobs.toml"
    path.write_text(text)
    with pytest.raises(InvalidWorkloadError, match=sentence):
        read_commands(path)


def test_a_row_with_too_many_cells_is_named(tmp_path):
    """A comma in an unquoted command does not silently cut it."""
    path = tmp_path / "jobs.csv"
    path.write_text("id,command\na,echo 1,2\n")
    with pytest.raises(InvalidWorkloadError, match="line 2"):
        read_commands(path)
