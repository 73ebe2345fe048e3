"""`yardmaster live slurm`: mistakes told in one sentence, and what it prints of its looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from yardmaster.cli.live.slurm import Teller, slurm
from yardmaster.errors import YardmasterError
from yardmaster.live.decision import Decider
from yardmaster.live.slurm import reading
from yardmaster.live.slurm.changes import Outcome
from yardmaster.live.slurm.driving import Settings, Tick
from yardmaster.live.slurm.factors import Scale
from yardmaster.live.slurm.observing import Allowed, observation
from yardmaster.live.slurm.planning import plan_changes

SAMPLES = Path(__file__).parents[2] / "live/slurm/samples"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"shadow": True, "apply": True}, "name one"),
        ({"ticks": 0}, "--ticks is 0"),
        ({"history_days": -1.0}, "--history-days is -1"),
        ({"history_days": float("nan")}, "--history-days is nan"),
        ({"max_advance_s": float("nan")}, "max_advance_s is nan"),
        ({"scheduler": "sjff+easy"}, "Did you mean"),
    ],
)
def test_mistakes_are_told_before_slurm_is_asked(
    options, said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Options that make no sense are refused where no Slurm answers, and nothing is begun."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(YardmasterError, match=said):
        slurm(out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def a_look(outcome: str | None = None) -> Tick:
    """A recorded queue, with the plan for it; its changes were sent, only planned, or neither."""
    texts = [(SAMPLES / f"{name}.txt").read_text("utf-8") for name in ("squeue", "sinfo", "sprio")]
    seen = observation(
        list(reading.queue_rows(texts[0])), reading.node_rows(texts[1]),
        reading.priority_rows(texts[2]), now_s=1_794_937_400.0, allowed=Allowed(),
    )  # fmt: skip
    decision = Decider("sjf+easy").decide(seen.state)
    plan = plan_changes(seen, decision, Scale(7_000_000, 604_800.0, 86_400.0))
    assert plan.changes
    made = [Outcome("factor", change.job, outcome, "") for change in plan.changes if outcome]
    return Tick(seen, decision, plan, made)


def test_a_dry_run_says_that_nothing_was_sent(capsys: pytest.CaptureFixture[str]):
    """Changes are called planned and listed with their places, once while they stay the same."""
    tell = Teller(Settings(mode="apply", dry_run=True), Path("here"))
    look = a_look("skipped")
    tell(look)
    said = capsys.readouterr().err
    changes = look.plan.changes
    assert f"; {len(changes)} planned, none sent" in said
    assert " sent, " not in said
    assert f"job {changes[0].job}: +{changes[0].points}, place " in said
    assert f"of {len(look.plan.order)}" in said
    assert "here/audit.jsonl" in said
    tell(look)
    assert capsys.readouterr().err == ""


def test_a_quiet_queue_still_gives_a_line_a_minute(capsys: pytest.CaptureFixture[str]):
    """A line comes when something is sent or the counts change; else after a minute."""
    now_s = [0.0]
    tell = Teller(Settings(mode="apply"), Path("here"), clock=lambda: now_s[0])
    tell(a_look("done"))
    assert " sent, 0 refused" in capsys.readouterr().err
    still = a_look()
    lines = []
    for now_s[0] in (10.0, 20.0, 65.0, 71.0):
        tell(still)
        lines.append(capsys.readouterr().err.count("\n"))
    assert lines == [1, 0, 0, 1]
