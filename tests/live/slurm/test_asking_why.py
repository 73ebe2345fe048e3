"""Why is mine not starting: Slurm's reason, the parts of the priority, and our place for it."""

from __future__ import annotations

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.live.slurm.asking_why import explain


def test_every_kind_of_job_gets_its_own_answer(mini):
    """Running, held, dependent and waiting jobs, and one that does not exist."""
    blockers = mini.fill()
    long, short = mini.submit(minutes=50), mini.submit(minutes=2)
    held = mini.submit("--hold")
    dependent = mini.submit(f"--dependency=afterok:{long}")
    mini.until(lambda: {long, short} <= set(mini.weights()))
    assert "runs since" in explain(mini.slurm, blockers[0])
    assert "scontrol release" in explain(mini.slurm, held)
    assert "waits for another job" in explain(mini.slurm, dependent)
    answer = explain(mini.slurm, long, scheduler="sjf+easy")
    assert "place 2 of 2" in answer
    assert "0 from Yardmaster" in answer
    assert "behind 1 job" in answer
    assert "place 1 of 2" in explain(mini.slurm, short, scheduler="sjf+easy")
    with pytest.raises(YardmasterError, match="No job '99999'") as caught:
        explain(mini.slurm, "99999")
    assert "Did you mean" not in str(caught.value)


def test_a_job_that_may_lie_on_several_nodes_is_told_so(mini):
    """Slurm may spread what was asked for by --gpus alone; -N1 binds it."""
    mini.fill()
    free, bound = mini.submit("--nodes=1-2"), mini.submit()
    mini.until(lambda: {free, bound} <= set(mini.weights()))
    assert "may spread" in explain(mini.slurm, free)
    assert "may spread" not in explain(mini.slurm, bound)
