"""Results of `evaluate`, as the page gets them and as it shows them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from yardmaster.dashboard.desk import Desk
from yardmaster.dashboard.runs import RunsFolder


@pytest.fixture(scope="module")
def judged(make_run) -> Path:
    from yardmaster.schedulers.learned.catalogue import shipped_path

    policy = str(shipped_path("slowdown-clairvoyant"))
    return make_run(
        "evaluate", policy, "--episodes", "3", "--task", "default", "--jobs", "30",
        "--against", "fifo+skip,sjf+skip", "--out", "judged",
    )  # fmt: skip


def test_an_evaluation_is_passed_on(knock, runs_folder, judged):
    """Every row of the file arrives; a damaged file and another kind of run are refused."""
    desk = Desk(RunsFolder(runs_folder), "x" * 20)
    found = json.loads((judged / "evaluation.json").read_text())
    reply = knock(desk, "/api/evaluation/judged").json()
    assert reply["rows"] == found["rows"]
    assert reply["metric"] == found["metric"]
    broken = runs_folder / "misjudged"
    broken.mkdir()
    assert knock(desk, "/api/evaluation/misjudged").status == 404
    for text in ("{", "[]", '{"rows": 3, "metric": "x"}'):
        (broken / "evaluation.json").write_text(text)
        assert knock(desk, "/api/evaluation/misjudged").status == 422
    (broken / "evaluation.json").unlink()
    broken.rmdir()


@pytest.mark.usefixtures("judged")
def test_an_evaluation_is_shown(page, dashboard, shoot, barriers):
    """From the list to the table: every player, the policy marked, the best first."""
    page.goto(dashboard.url)
    page.get_by_role("link", name="judged", exact=True).click()
    page.get_by_role("heading", name="Evaluation on").wait_for()
    text = page.locator("main").inner_text()
    assert "fifo+skip" in text
    assert "sjf+skip" in text
    assert page.locator("tr.chosen").count() >= 1
    assert barriers(page) == []
    shoot(page, "evaluation")
