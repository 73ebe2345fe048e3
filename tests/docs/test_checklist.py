"""The checklist names what exists, and counts as it says."""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS: list[dict[str, Any]] = tomllib.loads(
    (ROOT / "benchmarks" / "checklist.toml").read_text("utf-8")
)["row"]
CHECKLIST = runpy.run_path(str(ROOT / "benchmarks" / "checklist.py"), run_name="checklist")


def test_rows_are_complete():
    """There are 49 rows worth 210 points; a row that is capped says why."""
    assert [row["number"] for row in ROWS] == list(range(1, 50))
    assert 2 * sum(row["weight"] for row in ROWS) == 210
    assert all(row.get("why") for row in ROWS if row.get("most", 2) < 2)
    assert all(row.keys() & {"tests", "files", "checks", "why"} for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["number"]))
def test_what_rows_name_exists(row: dict[str, Any]):
    """Every test and every check that a row names is there."""
    for name in row.get("tests", ()):
        file, _, test = name.partition("::")
        text = (ROOT / file).read_text("utf-8")
        assert f"def {test.partition('[')[0]}(" in text or not test, name
    assert set(row.get("checks", ())) <= set(CHECKLIST["CHECKS"])


@pytest.mark.parametrize(
    ("outcomes", "points"),
    [
        ({"t/a.py::x[1]": "passed", "t/a.py::x[2]": "passed"}, 2),
        ({"t/a.py::x[1]": "passed", "t/a.py::x[2]": "failed"}, 0),
        ({"t/a.py::x[1]": "passed", "t/a.py::x[2]": "skipped"}, None),
        ({"t/a.py::xy": "passed"}, 0),
    ],
)
def test_points_follow_the_tests(outcomes: dict[str, str], points: int | None, tmp_path: Path):
    """All cases pass: full marks; one fails or none ran: none; one was skipped: not judged."""
    row = {"tests": ["t/a.py::x"]}
    assert CHECKLIST["judged"](row, outcomes, tmp_path).points == points


def test_missing_files_and_caps_count(tmp_path: Path):
    """A file that lacks what it should hold costs all points, a cap is kept."""
    judged = CHECKLIST["judged"]
    assert judged({"files": ["README.md: no such words here"]}, {}, tmp_path).points == 0
    assert judged({"files": ["README.md: # Yardmaster"]}, {}, tmp_path).points == 2
    assert judged({"files": ["README.md"], "most": 1, "why": "x"}, {}, tmp_path).points == 1


def test_the_bar_needs_every_heavy_row(capsys: pytest.CaptureFixture[str]):
    """A row of weight 3 below full marks fails the whole, whatever the sum."""
    verdict, report = CHECKLIST["Verdict"], CHECKLIST["report"]
    rows = [{"number": 1, "weight": 3, "what": "a"}, {"number": 2, "weight": 1, "what": "b"}]
    assert report(rows, [verdict(2), verdict(2)]) == 0
    assert report(rows, [verdict(1), verdict(2)]) == 1
    assert "weight 3: 1" in capsys.readouterr().out
