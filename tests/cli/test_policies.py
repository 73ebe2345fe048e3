"""Policies that come along, on the command line: listed, in the default table, and rerun."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from yardmaster.cli.compare import compare
from yardmaster.cli.listing import listing
from yardmaster.cli.rerun import rerun
from yardmaster.engine.picking.sight import Sight
from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.learned import catalogue
from yardmaster.schedulers.learned.policy_file import write_policy
from yardmaster.schedulers.simulation import simulate
from yardmaster.testing.policies import random_policy

CARD = "# policy:jct-blind\n\nIt reads [no] run times.\n"


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of two policies that stands for that of those that come along."""
    folder = tmp_path / "shipped"
    folder.mkdir()
    monkeypatch.setattr(catalogue, "SHIPPED", folder)
    for name, information in (("jct-blind", "blind"), ("jct-estimate", "estimate")):
        sight = Sight(window=8, information=information, gpu_slots=0)
        about = {"steps": 2_000_000_000, "objective": "mean JCT", "trained_on": "Venus"}
        write_policy(folder / f"{name}.npz", random_policy(sight, **about))
        (folder / f"{name}.md").write_text(CARD, encoding="utf-8")
    return folder


@pytest.mark.usefixtures("shipped")
def test_policies_are_listed(capsys: pytest.CaptureFixture[str]):
    """Name, information, objective, training data and steps of each; large numbers in full."""
    listing("policies", json=True)
    rows = json.loads(capsys.readouterr().out)
    assert rows[0] == {
        "scheduler": "policy:jct-blind",
        "information": "blind",
        "objective": "mean JCT",
        "trained on": "Venus",
        "steps": 2_000_000_000,
    }
    assert [row["information"] for row in rows] == ["blind", "estimate-based"]
    listing("policies")
    assert "2,000,000,000" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["jct-blind", "policy:jct-blind"])
@pytest.mark.usefixtures("shipped")
def test_a_name_prints_its_card(name: str, capsys: pytest.CaptureFixture[str]):
    """The card as it was written, by the name alone or as the scheduler is called."""
    listing("policies", name)
    assert capsys.readouterr().out == CARD
    listing("policies", name, json=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["scheduler"], found["card"]) == ("policy:jct-blind", CARD)


@pytest.mark.usefixtures("shipped")
def test_mistakes_are_answered():
    """A misspelt name gets the nearest one; other lists have no cards."""
    with pytest.raises(UnknownNameError, match="Did you mean 'jct-blind'"):
        listing("policies", "jct-blnd")
    with pytest.raises(YardmasterError, match="yardmaster list policies sjf"):
        listing("orders", "sjf")


def test_nothing_to_list_is_said(shipped: Path, capsys: pytest.CaptureFixture[str]):
    """Without policies the list is empty, in words and in JSON."""
    for file in shipped.iterdir():
        file.unlink()
    listing("policies")
    assert "policies: none" in capsys.readouterr().out
    listing("policies", json=True)
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.usefixtures("shipped")
def test_the_default_table_has_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """They stand in the table that the demo shows, in their leagues, and the run can be rerun."""
    out = tmp_path / "run"
    # Policies compile the core, and reports say whether it was: a command has a process of its own.
    simulate(Workload.of(submit_s=[0], duration_s=[1]), Cluster.pool(1), "policy:jct-blind")
    compare(jobs=80, seeds=2, out=out, json=True, quiet=True)
    rows = {row["scheduler"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert len(rows) == 14
    assert rows["policy:jct-blind"]["information"] == "blind"
    assert rows["policy:jct-estimate"]["information"] == "estimate-based"
    assert not (out / "orders").exists()
    rerun(out)
    assert "byte for byte" in capsys.readouterr().out
