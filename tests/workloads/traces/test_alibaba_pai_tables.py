"""Which of Alibaba PAI's tables a file is."""

from pathlib import Path

import pytest

from yardmaster.workloads.traces.alibaba_pai_tables import NAMES, Role, role
from yardmaster.workloads.traces.reading.trace_files import TraceFile

SHARED = Path(__file__).resolve().parents[3] / ".." / "shared" / "traces"
HEADERS = SHARED / "alibaba_pai2020"


def file(folder: Path, name: str, text: str) -> TraceFile:
    path = folder / name
    path.write_text(text)
    return TraceFile(str(path), path)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("pai_job_table.csv", Role.JOBS),
        ("pai_task_table.csv", Role.TASKS),
        ("PAI_group_tag_table.csv", Role.TAGS),
        ("pai_job_table.header", None),
        ("pai_instance_table.csv", None),
        ("pai_sensor_table.csv", None),
        ("pai_machine_spec.csv", None),
        ("pai_job_no_estimate_100K.csv", None),
    ],
)
def test_tables_are_told_by_their_names(tmp_path: Path, name: str, kind: Role | None):
    """The publisher's names decide, and header files are no tables."""
    assert role(file(tmp_path, name, "a,b,c\n")) == kind


@pytest.mark.parametrize(
    "text",
    [
        "a,b,c,d,e,f\n1,2,3,4,5,6\n",
        "0,1,0,platform,0.5,0.5\n",
        "7399a758eb02bae1a3621236,CPU,96,512,0\n",
        "x,y,z,Terminated,1\n",
        "j1,i1,u1,Terminated,1,2\nj2,i2,u2,Broken,1,2\n",
        "",
    ],
)
def test_other_tables_are_not_taken_for_them(tmp_path: Path, text: str):
    """Tables of the same width but another look are none of PAI's."""
    assert role(file(tmp_path, "unknown.csv", text)) is None


@pytest.mark.skipif(not HEADERS.is_dir(), reason="needs ../shared/traces")
@pytest.mark.parametrize("kind", Role)
def test_columns_are_those_of_the_published_headers(kind: Role):
    """The order of columns is the one of the publisher's header files."""
    assert tuple((HEADERS / f"{kind}.header").read_text().strip().split(",")) == NAMES[kind]
