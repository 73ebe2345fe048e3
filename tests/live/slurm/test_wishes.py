"""Soft placement is a preference that Slurm may ignore, given only when asked, and taken back."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from yardmaster.live.decision import Decider, Start
from yardmaster.live.slurm.changes import SetPrefer
from yardmaster.live.slurm.observing import Allowed, observation
from yardmaster.live.slurm.reading import NodeRow, PriorityRow, QueueRow
from yardmaster.live.slurm.restoring import restore
from yardmaster.live.slurm.wishes import Wish, plan_wishes, read_wishes


def test_only_free_wishes_are_written():
    """Owners' wishes and demands stay, ours may change, nodes without their name are left out."""
    rows = [
        QueueRow(
            str(job), str(job), "ann", "a", "main", "PENDING", float(job), None, 60.0, 1, 1, "", 9,
            "Priority", "", 0.0,
        )
        for job in (1, 2, 3, 4, 5)
    ]  # fmt: skip
    nodes = [NodeRow(f"n{n}", "idle", 2, "a100", 0, ("main",)) for n in (1, 2)]
    weights = {str(job): PriorityRow(9, 0, 9, 0) for job in (1, 2, 3, 4, 5)}
    seen = observation(rows, nodes, weights, now_s=10.0, allowed=Allowed())
    decision = Decider("fifo+easy").decide(seen.state)
    starts = tuple(Start(row, ((1 if row == 3 else 0, 1),)) for row in range(5))
    object.__setattr__(decision, "starts", starts)
    wishes = {
        "1": Wish(""), "2": Wish("fast"), "3": Wish("n9"), "4": Wish(""),
        "5": Wish("", is_bound=True),
    }  # fmt: skip
    planned = plan_wishes(seen, decision, wishes, frozenset({"n1"}), lambda _job, one: one == "n9")
    assert planned == [SetPrefer("1", "n1"), SetPrefer("3", "n1")]
    assert np.isnan(seen.state.since_s).all()


def test_a_real_slurm_takes_a_wish_and_gives_it_back(mini, tmp_path: Path):
    """A wish of ours is read back, is ours, and is gone after restoring; the owner's stays."""
    mini.fill()
    job, own = mini.submit(), mini.submit("--prefer=n2")
    driver = mini.driver(tmp_path / "run", prefer=True)
    wishes, named = read_wishes(mini.slurm)
    assert named == set(mini.cluster.shape.node_names)
    assert wishes == {job: Wish(""), own: Wish("n2")}
    driver.ledger.intend([SetPrefer(job, "n1")])
    driver._carry_out([SetPrefer(job, "n1")])
    assert read_wishes(mini.slurm)[0] == {job: Wish("n1"), own: Wish("n2")}
    restore(mini.slurm, driver.ledger)
    assert read_wishes(mini.slurm)[0] == {job: Wish(""), own: Wish("n2")}


def test_a_job_that_demands_nodes_is_known(mini):
    """A constraint or a list of nodes is read: Slurm would take a wish instead of a constraint."""
    node = mini.cluster.shape.node_names[1]
    demands = (f"--constraint={node}", f"--nodelist={node}", f"--prefer={node}")
    jobs = [mini.submit("--hold", demand) for demand in demands]
    wishes, bound = read_wishes(mini.slurm)[0], Wish("", is_bound=True)
    assert [wishes[job] for job in jobs] == [bound, bound, Wish(node)]
