"""Damaged traces of every format: jobs or a clear error, never a crash, never a lost row."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yardmaster.errors import YardmasterError
from yardmaster.workloads.traces.formats import import_trace
from yardmaster.workloads.traces.reading.options import ImportOptions

TRACES = Path(__file__).parents[4] / "shared" / "traces"
LINES = 40

REAL = {
    "alibaba-dlrm-2025": "alibaba_dlrm2025/disaggregated_DLRM_trace.csv",
    "alibaba-openb-2023": "alibaba_openb2023/openb_pod_list_default.csv",
    "google-2011": "google2011/job_events/part-00000-of-00500.csv.gz",
    "google-2019": "google2019_sample/slice.csv",
    "helios-arrivals": "helios/venus_until_2020-07.csv",
    "fleetsim": "helios_venus_2vc/helios_venus_2vc_sept.csv",
    "philly-rfold": "philly/philly_rfold_until_2017-10.csv",
    "philly-pollux": "philly/philly_pollux_until_2017-10.csv",
    "slurm": "slurm_jobcomp/jobcomp.log",
    "swf": "swf/KTH-SP2-1996-2.1-cln.swf.gz",
}
"""Formats with a real file to damage."""

MADE = {
    "slurm": "JobID|User|Account|Partition|Submit|Start|End|State|ReqTRES|TimelimitRaw\n"
    + "".join(
        f"{n}|ann|lab|gpu|2024-03-0{1 + n % 9}T10:00:00|2024-03-0{1 + n % 9}T10:05:00|"
        f"2024-03-0{1 + n % 9}T11:00:00|COMPLETED|cpu=4,gres/gpu=2,mem=8G,node=1|120\n"
        for n in range(20)
    ),
    "acme": "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,"
    "duration,queue,gpu_time\n"
    + "".join(
        f"{n},u{n % 3},1,8,96,Eval,COMPLETED,2023-03-01 00:18:{n + 10}+08:00,"
        f"2023-03-01 00:19:{n + 10}+08:00,2023-03-01 00:29:{n + 10}+08:00,600,60,4800\n"
        for n in range(20)
    ),
    "alibaba-spot-2026": "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,"
    "submit_time,duration,job_type\n"
    + "".join(f"job{n},org{n % 4},A10,8,{1 + n % 2},2,{60 * n},{100 + n},HP\n" for n in range(20)),
    "rlmetadqn-csv": "name,command,est_runtime_s,deadline_s,priority,submit_time\n"
    + "".join(f"EVAL_{n},sleep 3,{200 + n},{600 + n},1,{17 * n}\n" for n in range(20)),
    "philly": json.dumps(
        [
            {
                "status": "Pass", "vc": "a", "jobid": f"application_1_{n}", "user": "u",
                "submitted_time": "2017-10-01 00:00:00",
                "attempts": [
                    {
                        "start_time": "2017-10-01 00:01:00", "end_time": "2017-10-01 01:00:00",
                        "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}],
                    }
                ],
            }
            for n in range(8)
        ],
        indent=1,
    ),
}  # fmt: skip
"""Formats whose real files are not here, in their publishers' columns."""


def sample(kind: str, name: str) -> bytes:
    if kind == "made":
        return MADE[name].encode()
    if not TRACES.is_dir():
        pytest.skip("needs the published traces in a folder `shared` beside the repository")
    content = (TRACES / REAL[name]).read_bytes()
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    lines = content.split(b"\n")
    if name == "google-2011":  # the first lines are jobs from before the trace
        ended = {line.split(b",")[2] for line in lines if line.split(b",")[3:4] == [b"4"]}
        some = set(sorted(ended)[: LINES // 4])
        return b"\n".join(line for line in lines if some & set(line.split(b",")[2:3])) + b"\n"
    if name == "google-2019":  # cells of several lines must not be cut
        return content
    return b"\n".join(lines[:LINES]) + b"\n"


NASTY = (
    b"-1", b"1e400", b"9" * 26, b"\xff\xfe", b'"', b"\n", b"\r\n", b"\x00", b",,,", b"nan", b"None",
    b"\xef\xbb\xbf", b"0001-01-01 00:00:00", b"|", b"{", b"]", b"\xe2\x82", b" ", b"",
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Return the file with a few wounds: bytes replaced, pieces cut out, doubled or cut off."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(content)))
        length = draw(st.integers(0, 30))
        wound = draw(st.sampled_from(("replace", "cut", "double", "truncate")))
        if wound == "replace":
            content = content[:at] + draw(st.sampled_from(NASTY)) + content[at + length :]
        elif wound == "cut":
            content = content[:at] + content[at + 10 * length :]
        elif wound == "double":
            content = content[: at + 10 * length] + content[at:]
        else:
            content = content[:at]
    return content


@pytest.mark.parametrize(
    ("kind", "name"), [("real", name) for name in REAL] + [("made", name) for name in MADE]
)
@settings(
    max_examples=40, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(data=st.data())
def test_damage_gives_jobs_or_a_clear_error(
    tmp_path: Path, kind: str, name: str, data: st.DataObject
):
    """However a file is damaged: an error that names it, or jobs whose account adds up."""
    path = tmp_path / "damaged"
    path.write_bytes(data.draw(damaged(sample(kind, name)), label="file"))
    options = ImportOptions(skip_bad_rows=data.draw(st.booleans(), label="skip"))
    try:
        imported = import_trace([path], name, options=options)
    except YardmasterError as error:
        complaint = str(error)
    else:
        complaint = ""
    if complaint:
        assert "damaged" in complaint
        return
    assert imported.account.jobs == len(imported.frame)
    assert len(imported.workload()) == imported.account.jobs


@pytest.mark.parametrize(
    ("kind", "name"), [("real", name) for name in REAL] + [("made", name) for name in MADE]
)
def test_samples_are_sound_and_recognised(tmp_path: Path, kind: str, name: str):
    """What is damaged above is a good trace before, and its format is found out."""
    path = tmp_path / "sample"
    path.write_bytes(sample(kind, name))
    imported = import_trace([path])
    assert imported.account.format == name
    assert len(imported.workload()) > 0
