"""Decisions that were written down, found again by the job they chose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from yardmaster.dashboard.recorded_reasons import RecordedReasons


@pytest.fixture(scope="module")
def explained(make_run) -> Path:
    return make_run(
        "simulate", "-s", "policy:slowdown-clairvoyant", "--why", "--jobs", "80", "--out", "why"
    )


def records(path: Path) -> list[dict]:
    return [json.loads(line) for line in (path / "why.jsonl").read_text().splitlines()]


def test_every_job_finds_its_decision(explained):
    """The decision that chose a job is found, with all candidates ranked and those barred last."""
    reasons = RecordedReasons()
    known = records(explained)
    for record in known[::5]:
        job = record["chosen"]
        if job is None:
            continue
        found = reasons.of_job(explained, job, [record["second"]])
        assert found["total"] == len(known)
        expected = [one for one in known if one["chosen"] == job]
        assert [one["second"] for one in found["decisions"]] == [one["second"] for one in expected]
        scores = [one["score"] for one in found["decisions"][0]["candidates"] if one["legal"]]
        assert scores == sorted(scores, reverse=True)
        count = sum(job in [each["job"] for each in one["candidates"]] for one in known)
        assert found["considered"] == count


def test_a_choosers_decision_is_the_last_one_before(make_run):
    """Where schedulers are chosen and not jobs, the choice at work when the job started is told."""
    path = make_run("simulate", "-s", "bandit:random", "--why", "--jobs", "80", "--out", "chooser")
    known = records(path)
    second = known[len(known) // 2]["second"]
    expected = [one for one in known if one["second"] <= second][-1]
    found = RecordedReasons().of_job(path, "no such job", [second])
    assert found["decisions"] == [expected]


def test_runs_without_decisions_have_none(tmp_path):
    """No file, no reasons; a link to a file elsewhere is not followed."""
    assert RecordedReasons().of_job(tmp_path, "1", [0.0]) is None
    (tmp_path / "elsewhere").write_text('{"second": 0.0, "chosen": "1", "candidates": []}\n')
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "why.jsonl").symlink_to(tmp_path / "elsewhere")
    assert RecordedReasons().of_job(tmp_path / "run", "1", [0.0]) is None


def test_a_damaged_line_is_passed_over(tmp_path):
    """Half a line at the end, or nonsense between, does not hide the rest."""
    good = '{"second": 1.0, "chosen": "a\\"b", "candidates": [], "wait": {}}\n'
    text = good + "nonsense\n" + '{"second": x, "chosen": "c"}\n' + good[:30]
    (tmp_path / "why.jsonl").write_text(text)
    found = RecordedReasons().of_job(tmp_path, 'a"b', [1.0])
    assert len(found["decisions"]) == 1
    assert found["total"] == 1
