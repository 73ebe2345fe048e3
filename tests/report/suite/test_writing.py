"""The folder of a report."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from yardmaster.errors import YardmasterError
from yardmaster.report.suite.writing import PICTURES, TABLES, write_suite_report


@pytest.fixture(scope="module")
def small(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same experiment with one perturbation and one objective less: quicker to draw."""
    table = pl.read_parquet(folder / "results.parquet")
    kept = table.filter(pl.col("perturbation").is_in(["none", "capacity-dip"]))
    place = tmp_path_factory.mktemp("small")
    kept.drop("oracle_gap_p95_jct_s", "oracle_gap_mean_bounded_slowdown").write_parquet(
        place / "results.parquet"
    )
    shutil.copy(folder / "runs.sqlite", place)
    return place


@pytest.fixture(scope="module")
def report(small: Path) -> Path:
    return write_suite_report(small).parent


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_everything_is_there_in_every_format(report: Path):
    """Each figure is a PNG, a PDF and an SVG, each table Markdown, LaTeX and CSV."""
    names = set(contents(report))
    for part, endings in (("figures", PICTURES), ("tables", tuple(TABLES))):
        stems = {Path(name).stem for name in names if name.startswith(part)}
        assert stems
        for stem in stems:
            assert {f"{part}/{stem}.{ending}" for ending in endings} <= names
    for stem in (
        "oracle-gap-plain",
        "jct-cdf-plain",
        "recovery-drift",
        "robustness-mean-jct-plain",
    ):
        assert f"figures/{stem}.pdf" in names
    assert (report / "figures/tail-latency-drift.png").read_bytes().startswith(b"\x89PNG")
    assert (report / "figures/tail-latency-drift.pdf").read_bytes().startswith(b"%PDF")


def test_the_page_needs_nothing_and_links_only_to_what_is_there(report: Path):
    """No address outside the folder; every link leads to a file or a heading."""
    page = (report / "index.html").read_text(encoding="utf-8")
    assert "http://" not in page
    assert "https://" not in page
    assert "<script" not in page
    for link in re.findall(r'<a href="([^"]+)"', page):
        if link.startswith("#"):
            assert f'id="{link[1:]}"' in page
        else:
            assert (report / link).is_file(), link
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_the_same_results_give_the_same_bytes(small: Path, report: Path, tmp_path: Path):
    """Another process, with another hash seed, writes the same files."""
    code = (
        "import sys; from pathlib import Path\n"
        "from yardmaster.report.suite.writing import write_suite_report\n"
        "write_suite_report(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    command = [sys.executable, "-c", code, str(small), str(tmp_path / "again")]
    subprocess.run(command, check=True, env={"PYTHONHASHSEED": "7", "PATH": "/usr/bin:/bin"})
    assert contents(tmp_path / "again") == contents(report)


def test_something_else_is_not_replaced(small: Path, tmp_path: Path):
    """A folder that is no report stays as it is, and nothing half written is left behind."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(YardmasterError, match="not a report"):
        write_suite_report(small, tmp_path / "mine")
    assert [path.name for path in tmp_path.rglob("*")] == ["mine", "thesis.txt"]


def test_a_failure_leaves_nothing_behind(tmp_path: Path):
    """Without results there is no folder at all."""
    with pytest.raises(YardmasterError, match="run the experiment first"):
        write_suite_report(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_one_scheduler_and_one_seed_are_enough(small: Path, tmp_path: Path):
    """Without anybody to compare with, and without intervals, there is a report all the same."""
    table = pl.read_parquet(small / "results.parquet")
    alone = (pl.col("seed") == 0) & (pl.col("scheduler") == "mid+skip")
    kept = table.filter(alone & (pl.col("regime").is_in(["base-2", "drift-0"])))
    kept.write_parquet(tmp_path / "results.parquet")
    page = write_suite_report(tmp_path).read_text(encoding="utf-8")
    assert "1 paired seed" in page
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL)
