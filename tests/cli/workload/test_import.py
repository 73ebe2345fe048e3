"""`yardmaster workload import` as a user meets it."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

HEADER = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
)
ROWS = [
    f"{n},u{n % 3},vc1,{n % 4},8,1,COMPLETED,2020-05-0{1 + n % 9} 10:00:00,"
    f"2020-05-0{1 + n % 9} 10:00:05,2020-05-0{1 + n % 9} 10:01:05,60,5"
    for n in range(40)
]
LOG = "\n".join([HEADER, *ROWS]) + "\n"


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "yardmaster", "workload", *arguments],
        cwd=cwd, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


def refused(run: Callable[..., subprocess.CompletedProcess[str]], cwd: Path, content: bytes) -> str:
    """Import a file that must be refused: exit code 2, a message, nothing left behind."""
    (cwd / "log.csv").write_bytes(content)
    done = run("workload", "import", "helios", "log.csv", "-o", "out.parquet", cwd=cwd)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert [path.name for path in cwd.iterdir()] == ["log.csv"]
    return done.stderr


def edited(column: str, cell: str, row: int = 5) -> bytes:
    lines = [line.split(",") for line in LOG.splitlines()]
    lines[row + 1][HEADER.split(",").index(column)] = cell
    return ("\n".join(",".join(cells) for cells in lines) + "\n").encode()


def test_an_import_prints_and_stores_its_account(tmp_path: Path):
    """The account on the screen, in JSON and in the job table is one and the same."""
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(LOG.encode()))
    done = run("import", "log.csv.gz", "-o", "out.parquet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "40 rows of log.csv read, 30 kept" in done.stdout
    assert "dropped 10: asked for no GPU (CPU job)" in done.stdout
    assert "second 0: 2020-04-27T00:00:00" in done.stdout
    again = run("import", "helios", "log.csv.gz", "-o", "o2.parquet", "--json", cwd=tmp_path)
    metadata = pl.read_parquet_metadata(tmp_path / "out.parquet")["yardmaster"]
    assert json.loads(metadata)["account"] == json.loads(again.stdout)
    assert len(pl.read_parquet(tmp_path / "out.parquet")) == 30


def test_an_imported_trace_can_be_simulated(tmp_path: Path):
    """The way from a log to a result is two commands, or one."""
    (tmp_path / "log.csv").write_text(LOG)
    assert run("import", "log.csv", "-o", "out.parquet", cwd=tmp_path).returncode == 0
    for source in ("out.parquet", "log.csv"):
        done = subprocess.run(
            [sys.executable, "-m", "yardmaster", "simulate", "-w", source, "-c", "pool:8"],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (LOG.encode()[:-60], "line 41: 8 cells"),
        (edited("gpu_num", "9" * 40), "line 7: gpu_num is '9999"),
        (edited("gpu_num", "-4"), "line 7: gpu_num is '-4'"),
        (edited("duration", "-1"), "line 7: duration is '-1'"),
        (edited("submit_time", "-5"), "line 7: submit_time is '-5'"),
        (edited("user", "QQ").replace(b"QQ", b"\xe4"), "line 7: not UTF-8"),
        (edited("user", '"open'), "line 7"),
        (LOG.replace("gpu_num", "gpus_number").encode(), "no column 'gpu_num'"),
        (b"", "the file is empty"),
        (HEADER.encode(), "no job is left"),
        (LOG.encode("utf-16"), "UTF-16"),
        (bytes(random.Random(3).randbytes(5000)), "log.csv"),
        (b"\x1f\x8b" + b"x" * 50, "damaged"),
    ],
    ids=[
        "cut off", "huge number", "negative count", "negative run time", "negative time",
        "bad encoding", "open quote", "column missing", "empty", "header only", "utf-16", "noise",
        "damaged gzip",
    ],
)  # fmt: skip
def test_damaged_files_are_refused(tmp_path: Path, content: bytes, complaint: str, run_here):
    """Whatever is wrong with a file, the message says where, and no file is left behind."""
    assert complaint in refused(run_here, tmp_path, content)


def test_a_hundred_thousand_bad_rows(tmp_path: Path, run_here):
    """A file full of mistakes gives a short message, not as many lines."""
    content = (HEADER + "\n" + "x,u,v,1,1,1,COMPLETED,2020-05-01,,,1,1\n" * 100_000).encode()
    message = refused(run_here, tmp_path, content)
    assert "100,000 rows cannot be read" in message
    assert len(message.splitlines()) < 30


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + LOG.encode(),
        LOG.replace("\n", "\r\n").encode(),
        LOG.replace(",u1,", ',"u\n1",').encode(),
        "\n".join(
            ",".join(reversed(line.split(","))) for line in LOG.splitlines()
        ).encode(),
    ],
    ids=["mark", "crlf", "quoted line break", "columns reversed"],
)  # fmt: skip
def test_harmless_differences_do_no_harm(tmp_path: Path, content: bytes, run_here):
    """Marks, line ends, quoted line breaks and the order of columns change nothing."""
    (tmp_path / "log.csv").write_bytes(content)
    done = run_here("workload", "import", "helios", "log.csv", "-o", "out.parquet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "40 rows of log.csv read, 30 kept" in done.stdout


def test_bad_rows_can_be_skipped(tmp_path: Path):
    """If the user says so, rows that cannot be read are dropped, counted and named."""
    (tmp_path / "log.csv").write_bytes(edited("gpu_num", "many"))
    done = run("import", "log.csv", "-o", "out.csv", "--skip-bad-rows", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "dropped 1: cannot be read (line 7)" in done.stdout


def test_files_are_not_replaced_by_accident(tmp_path: Path):
    """A file that is there stays as it is, unless the user says otherwise."""
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "out.parquet").write_text("precious")
    done = run("import", "log.csv", "-o", "out.parquet", cwd=tmp_path)
    assert done.returncode == 2
    assert "--overwrite" in done.stderr
    assert (tmp_path / "out.parquet").read_text() == "precious"
    done = run("import", "log.csv", "-o", "out.parquet", "--overwrite", cwd=tmp_path)
    assert done.returncode == 0
    for wrong in ("out.txt", "nowhere/out.parquet"):
        assert run("import", "log.csv", "-o", wrong, cwd=tmp_path).returncode == 2


def test_a_map_means_a_table_of_ones_own(tmp_path: Path):
    """With a map the format need not be named; formats that know their columns take none."""
    (tmp_path / "ours.csv").write_text("when,n,hours\n0,2,1.5\n")
    mapped = ("--map", "submit_s=when", "gpus=n", "duration_s=hours:h", "-o", "out.csv")
    done = run("import", "ours.csv", *mapped, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 rows of ours.csv read, 1 kept" in done.stdout
    done = run("import", "helios", "ours.csv", *mapped, "--overwrite", cwd=tmp_path)
    assert (done.returncode, "--map is for csv" in done.stderr) == (2, True)


def test_a_misspelt_format_is_no_missing_file(tmp_path: Path):
    """Who names a format nearly right is told its name."""
    (tmp_path / "log.csv").write_text(LOG)
    done = run("import", "helio", "log.csv", "-o", "out.csv", cwd=tmp_path)
    assert (done.returncode, "Did you mean 'helios'?" in done.stderr) == (2, True)


def test_the_list_names_every_format(tmp_path: Path):
    """What can be imported and generated is listed, for people and for programs."""
    done = run("list", "--json", cwd=tmp_path)
    listed = json.loads(done.stdout)
    assert {"helios", "slurm", "philly"} <= {row["format"] for row in listed["trace formats"]}
    assert {"venus-like"} <= {row["workload"] for row in listed["presets"]}
    assert "cluster_log.csv" in run("list", cwd=tmp_path).stdout


def test_a_log_of_which_little_is_left_is_warned_about(tmp_path: Path):
    """Where most jobs still wait, the import says how many it dropped; where few do, nothing."""
    names = "JobIDRaw|JobID|User|Submit|Start|End|ElapsedRaw|TimelimitRaw|State|NNodes|AllocTRES"
    ended = "{0}|{0}|u|1794953905|1794953905|1794953926|21|2|COMPLETED|1|gres/gpu=8,node=1"
    waits = "{0}|{0}|u|1794953905|Unknown|Unknown|0|30|PENDING|1|gres/gpu=8,node=1"
    for kinds, is_warned in (((ended, waits, waits), True), ((ended, ended, waits), False)):
        rows = [kind.format(number) for number, kind in enumerate(kinds, 1)]
        (tmp_path / "sacct.txt").write_text("\n".join([names, *rows]) + "\n")
        done = run("import", "slurm", "sacct.txt", "-o", "j.parquet", "--overwrite", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert ("Warning: 2 of 3 jobs were dropped" in done.stderr) == is_warned
