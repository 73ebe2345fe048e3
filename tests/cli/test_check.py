"""`yardmaster check`: one line a rule, and an exit code that tests can use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from yardmaster.cli.check import check
from yardmaster.errors import UnknownNameError
from yardmaster.testing.targets import judge

ORDERS = """
def good(jobs):
    return jobs.gpus

def bad(jobs):
    return range(len(jobs))
"""


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    path = tmp_path / "orders.py"
    path.write_text(ORDERS)
    return path


def test_a_line_for_every_rule(orders: Path, capsys: pytest.CaptureFixture[str]):
    """A plug-in that conforms says so after its rules, and how it is used."""
    check(f"{orders}:good")
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("kept") for line in lines[:-1])
    assert len(lines) == 10
    assert "conforms (order); use it wherever" in lines[-1]


def test_a_broken_rule_is_exit_code_1(orders: Path, capsys: pytest.CaptureFixture[str]):
    """What does not conform ends with 1, and the reason is on the line of the rule."""
    with pytest.raises(SystemExit) as left:
        check(f"{orders}:bad")
    assert left.value.code == 1
    said = capsys.readouterr().out
    assert "BROKEN     judges a job by what it is, not by its row: The order" in said
    assert "does not conform (order)" in said


def test_verdicts_as_json(orders: Path, capsys: pytest.CaptureFixture[str]):
    """Programs get kind, name and every verdict."""
    check(f"{orders}:good", json=True)
    said = json.loads(capsys.readouterr().out)
    assert (said["kind"], said["conforms"], len(said["rules"])) == ("order", True, 9)


def test_files_are_clusters_or_recipes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A .toml with nodes is a cluster, one with parts of a recipe a recipe."""
    (tmp_path / "c.toml").write_text('[[nodes]]\ngpu_type = "V100"\ngpus = 4\n')
    check(str(tmp_path / "c.toml"))
    assert "machines" in capsys.readouterr().out
    (tmp_path / "r.toml").write_text('durations = "lognormal:median=60,sigma=1"\n')
    check(str(tmp_path / "r.toml"))
    assert "conforms (recipe)" in capsys.readouterr().out


def test_a_misspelt_column_is_answered_with_those_there_are(tmp_path: Path):
    """The line, the nearest name and all columns are told, and the order is named once."""
    file = tmp_path / "typo.py"
    file.write_text(
        "import yardmaster as ym\n\n\n@ym.order('typo')\ndef typo(jobs):\n    return jobs.gpu\n"
    )
    found = judge(f"{file}:typo")
    (reason,) = [one.reason for one in found.verdicts if one.state == "broken"]
    assert "(line 6 of typo.py)" in reason
    assert "no column 'gpu'. Did you mean 'gpus'" in reason
    assert "submit_s, gpus, priority" in reason
    assert reason.count("The order") == 1


def test_a_file_without_a_name_lists_its_orders(tmp_path: Path):
    """Who names only the file reads what could be checked in it."""
    file = tmp_path / "several.py"
    file.write_text(
        "import yardmaster as ym\n\n\n@ym.order('wide')\ndef wide(jobs):\n    return -jobs.gpus\n"
    )
    with pytest.raises(UnknownNameError, match=r"Its orders: .*several\.py:wide\."):
        judge(str(file))
