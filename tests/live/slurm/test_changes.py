"""Nothing but a SiteFactor and a soft preference can ever be written to Slurm."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import yardmaster.live.slurm
from yardmaster.live.slurm.changes import SetFactor, SetPrefer, command_line
from yardmaster.live.slurm.commands import SlurmError

FACTOR = re.compile(r"update JobId=[1-9]\d{0,9} SiteFactor=\d{1,10}", re.ASCII)
PREFER = re.compile(r"update JobId=[1-9]\d{0,9} Prefer=[A-Za-z0-9_.-]*", re.ASCII)
FORBIDDEN = ("hold", "release", "priority", "starttime", "timelimit", "reqnodelist", "nice", "\n")
ANYTHING = st.text() | st.from_regex(r"[0-9_\[\]+ ,=\n]*(Priority=0|StartTime=now|\nhold 1)?")
CHANGES = st.builds(
    SetFactor, job=ANYTHING | st.from_regex(r"\A[0-9]{1,12}\Z"), points=st.integers()
) | st.builds(
    SetPrefer, job=st.from_regex(r"\A[0-9]{1,12}\Z"), feature=ANYTHING | st.just("n1")
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(CHANGES)
def test_no_other_command_can_be_built(change: SetFactor | SetPrefer):
    """Whatever the job, the points or the feature say: one such line comes out, or a refusal."""
    try:
        line = command_line(change)
    except SlurmError:
        return
    pattern = FACTOR if isinstance(change, SetFactor) else PREFER
    assert pattern.fullmatch(line)
    name = line.partition(" Prefer=")[0].lower()
    assert not any(word in name.replace("sitefactor", "") for word in FORBIDDEN)


@given(st.integers(1, 10**9), st.integers(0, 2**30))
def test_a_factor_in_range_is_written_as_it_is(job: int, points: int):
    """A job's number and points arrive unchanged."""
    line = command_line(SetFactor(str(job), points))
    assert line == f"update JobId={job} SiteFactor={points}"


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
