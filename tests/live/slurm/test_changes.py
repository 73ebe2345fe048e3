"""Nothing but a SiteFactor, a soft preference and, if asked for, a requeue is ever written."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import yardmaster.live.slurm
from yardmaster.live.slurm.changes import (
    Change,
    Requeue,
    SetFactor,
    SetPrefer,
    apply_changes,
    command_line,
)
from yardmaster.live.slurm.commands import Slurm, SlurmError

FACTOR = re.compile(r"update JobId=[1-9]\d{0,9} SiteFactor=\d{1,10}", re.ASCII)
PREFER = re.compile(r"update JobId=[1-9]\d{0,9} Prefer=[A-Za-z0-9_.-]*", re.ASCII)
REQUEUE = re.compile(r"requeue incomplete [1-9]\d{0,9}", re.ASCII)
FORBIDDEN = ("hold", "release", "priority", "starttime", "timelimit", "reqnodelist", "nice", "\n")
ANYTHING = st.text() | st.from_regex(r"[0-9_\[\]+ ,=\n]*(Priority=0|StartTime=now|\nhold 1)?")
CHANGES = st.builds(
    SetFactor, job=ANYTHING | st.from_regex(r"\A[0-9]{1,12}\Z"), points=st.integers()
) | st.builds(
    SetPrefer, job=st.from_regex(r"\A[0-9]{1,12}\Z"), feature=ANYTHING | st.just("n1")
) | st.builds(Requeue, job=ANYTHING | st.from_regex(r"\A[0-9]{1,12}\Z"))  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(change=CHANGES, may_requeue=st.booleans())
def test_no_other_command_can_be_built(change: Change, *, may_requeue: bool):
    """Whatever the job, the points or the feature say: one such line comes out, or a refusal."""
    try:
        line = command_line(change, may_requeue=may_requeue)
    except SlurmError:
        return
    kinds = {SetFactor: FACTOR, SetPrefer: PREFER, Requeue: REQUEUE}
    assert kinds[type(change)].fullmatch(line)
    assert may_requeue or "requeue" not in line.partition(" Prefer=")[0]
    name = line.partition(" Prefer=")[0].lower()
    assert not any(word in name.replace("sitefactor", "") for word in FORBIDDEN)


@given(st.integers(1, 10**9), st.integers(0, 2**30))
def test_a_factor_in_range_is_written_as_it_is(job: int, points: int):
    """A job's number and points arrive unchanged."""
    line = command_line(SetFactor(str(job), points))
    assert line == f"update JobId={job} SiteFactor={points}"


@given(st.integers(1, 10**9))
def test_no_job_is_requeued_unless_asked_for(job: int):
    """The default refuses, for one line and for a batch, before any program is run."""
    with pytest.raises(SlurmError, match="nobody asked for that"):
        command_line(Requeue(str(job)))
    nowhere = Slurm(environment={"PATH": "/nonexistent"})
    with pytest.raises(SlurmError, match="nobody asked for that"):
        apply_changes(nowhere, [SetFactor("1", 5), Requeue(str(job))])
    assert command_line(Requeue(str(job)), may_requeue=True) == f"requeue incomplete {job}"


def test_many_changes_are_shared_out(tmp_path: Path):
    """Every line reaches one `scontrol`, the first ones first; a refusal is the named job's own."""
    program = tmp_path / "scontrol"
    program.write_text(
        "#!/bin/sh\n"
        f"cat > {tmp_path}/got.$$\n"
        f"if grep -q 'JobId=7 ' {tmp_path}/got.$$; then\n"
        "echo 'Invalid job id specified for job 7' >&2; exit 1; fi\n"
    )
    program.chmod(0o755)
    changes = [SetFactor(str(job), job) for job in range(1, 131)]
    slurm = Slurm(environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    outcomes = apply_changes(slurm, changes)
    got = [path.read_text().splitlines() for path in tmp_path.glob("got.*")]
    assert sorted(len(lines) for lines in got) == [32, 32, 33, 33]
    assert sorted(line for lines in got for line in lines) == sorted(map(command_line, changes))
    assert all(min(int(line.split("=")[2]) for line in lines) <= 4 for lines in got)
    assert [one.job for one in outcomes] == [one.job for one in changes]
    assert [one.job for one in outcomes if one.outcome == "failed"] == ["7"]


def test_scontrol_is_given_input_in_one_place_alone():
    """No other module of ours runs `scontrol` except to show, nor any program that changes jobs."""
    folder = Path(yardmaster.live.slurm.__file__).parent
    for path in folder.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path.name not in {"changes.py", "commands.py"}:
            assert ".run((" not in text.replace("subprocess.run", ""), path
            assert '"scancel"' not in text, path
        uses = [match.end() for match in re.finditer('"scontrol"', text)]
        if path.name != "changes.py":
            assert all(re.match(r', "show"|\s*$', text[end:]) for end in uses), path
