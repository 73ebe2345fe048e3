"""`workload slice|split|scale|merge|sample` as a user meets them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from yardmaster.errors import YardmasterError
from yardmaster.model.workload import Workload
from yardmaster.workloads.tables import read_table, write_table


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "yardmaster", "workload", *arguments],
        cwd=cwd, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


@pytest.fixture
def done(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Run a command in the folder without another process; return what it printed."""
    from yardmaster.cli.app import app

    monkeypatch.chdir(folder)

    def command(*arguments: str) -> str:
        capsys.readouterr()
        app(["workload", *arguments], result_action="return_value")
        return capsys.readouterr().out

    return command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    jobs = Workload.of(
        name="lab",
        begins="2020-04-06T00:00:00",
        submit_s=np.arange(28 * 24) * 3600.0,
        duration_s=np.full(28 * 24, 1800.0),
        tenant=["nlp", "vision"] * (14 * 24),
        gpus=[1, 1, 2, 4] * (7 * 24),
    )
    write_table(jobs, tmp_path / "lab.parquet")
    return tmp_path


def test_slice_writes_a_part(folder: Path, done):
    """A week of one tenant, under the name of its file, on a clock of its own."""
    told = done(
        "slice", "lab.parquet", "--from", "2020-04-13", "--to", "2w", "--tenants", "nlp",
        "--min-gpus", "2", "--restart-clock", "-o", "week.parquet",
    )  # fmt: skip
    assert told.startswith("week.parquet: 42 jobs submitted from second 7200 (2020-04-13 02:00:00)")
    part = read_table(folder / "week.parquet")
    assert (part.name, part.begins) == ("week", "2020-04-13T00:00:00")
    assert part.submit_s.max() < 7 * 86_400
    assert set(part.tenant.values()) == {"nlp"}
    assert "slice: 42 of 672 jobs" in part.notes[0]


def test_slice_leaves_out(folder: Path, done):
    """Tenants that are not wanted; a CSV if the file is called so."""
    done("slice", "lab.parquet", "--not-tenants", "nlp", "-o", "x.csv")
    assert set(read_table(folder / "x.csv").tenant.values()) == {"vision"}


def test_split_writes_three_files(folder: Path, done):
    """Parts named after the workload, complete and disjoint, with the borders in their notes."""
    told = done("split", "lab.parquet", "-o", "parts")
    assert told.count(".parquet: ") == 3
    names = ("train", "validation", "test")
    parts = [read_table(folder / "parts" / f"lab-{name}.parquet") for name in names]
    assert np.concatenate([part.id for part in parts]).tolist() == list(range(672))
    found = json.loads(
        done("split", "lab.parquet", "-o", "dated", "--at", "2020-04-20", "--gap", "1d", "--json")
    )  # fmt: skip
    assert list(found["parts"]) == ["train", "test"]
    assert (found["parts"]["train"]["jobs"], found["dropped"]) == (13 * 24, 24)


def test_scale_reaches_the_load(folder: Path, done):
    """A load on a cluster, or a factor on the rate."""
    done("scale", "lab.parquet", "--load", "0.5", "-c", "pool:2", "-o", "half.parquet")
    assert read_table(folder / "half.parquet").load(2) == pytest.approx(0.5, rel=1e-4)
    done("scale", "lab.parquet", "--factor", "3", "-o", "fast.parquet")
    fast, slow = (read_table(folder / name) for name in ("fast.parquet", "lab.parquet"))
    assert fast.load(1) == pytest.approx(3 * slow.load(1), rel=1e-4)


def test_merge_adds_up(folder: Path, done):
    """Two copies, one after the other, with tenants told apart."""
    done(
        "merge", "lab.parquet", "lab.parquet", "--how", "append", "--label-tenants",
        "-o", "both.parquet",
    )  # fmt: skip
    both = read_table(folder / "both.parquet")
    assert len(both) == 2 * 672
    assert set(both.tenant.values()) == {"lab/nlp", "lab/vision", "lab-2/nlp", "lab-2/vision"}
    assert both.submit_s[672] == 28 * 86_400


def test_sample_methods(folder: Path, done):
    """Blocks of another length, a share of the jobs, other jobs for the same arrivals."""
    done("sample", "lab.parquet", "--length", "10w", "-o", "long.parquet")
    assert len(read_table(folder / "long.parquet")) == 10 * 168
    done("sample", "lab.parquet", "--method", "thin", "--jobs", "99", "-o", "few.parquet")
    assert len(read_table(folder / "few.parquet")) == 99
    found = json.loads(
        done("sample", "lab.parquet", "--method", "jobs", "--seed", "4", "--json", "-o", "j.csv")
    )  # fmt: skip
    assert found["jobs"] == 672
    assert "seed 4" in found["notes"][-1]


def test_presets_are_sources_too(folder: Path):
    """A preset is generated first, and the remark says of which size."""
    result = run("slice", "mm", "--from", "1h", "-o", "mm.parquet", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "mm is generated: 2,000 jobs, seed 0" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("slice lab.parquet -o x.parquet", "Nothing to cut"),
        ("slice lab.parquet -o x.parquet --tenants nlq", "Did you mean 'nlp'?"),
        ("slice lab.parquet -o x.parquet --from 2021-01-01", "(2020-04-06 00:00:00) to second"),
        ("slice lab.parquet -o x.parquet --from soon", "a date such as 2020-05-01"),
        ("slice lab.parquet -o lab.parquet --from 1d", "lab.parquet is there already"),
        ("slice lab.parquet -o x.txt --from 1d", "a job table ends in .parquet or .csv"),
        ("split lab.parquet -o parts --fractions 0.5,x", "--fractions must be numbers"),
        ("split lab.parquet -o parts --fractions 0.5,0.6", "fractions must add up to 1"),
        ("scale lab.parquet -o x.parquet --load 0.5", "either --load with --cluster, or --factor"),
        ("scale lab.parquet -o x.parquet --factor 2 --load 1 -c demo", "either --load"),
        ("merge lab.parquet -o x.parquet", "at least two"),
        ("sample lab.parquet -o x.parquet --keep 0.5", "--keep goes with --method thin"),
        ("sample lab.parquet -o x.parquet --block 5d", "whole weeks or an even part"),
        ("sample lab.parquet -o x.parquet --method thin", "either a share of the jobs or"),
    ],
)
def test_mistakes_are_explained(folder: Path, done, arguments: str, words: str):
    """Each is an error of the user's, and nothing is written."""
    before = (folder / "lab.parquet").read_bytes()
    with pytest.raises(YardmasterError) as caught:
        done(*arguments.split())
    assert words in str(caught.value)
    assert [path.name for path in folder.iterdir() if path.is_file()] == ["lab.parquet"]
    assert (folder / "lab.parquet").read_bytes() == before


def test_mistakes_end_with_exit_code_2(folder: Path):
    """A message and no traceback."""
    result = run("slice", "lab.parquet", "-o", "x.parquet", "--tenants", "nlq", cwd=folder)
    assert result.returncode == 2
    assert result.stderr.startswith("Error: lab has no tenant 'nlq'. Did you mean 'nlp'?")
    assert "Traceback" not in result.stderr
