"""Scenes: what can be drawn from, what cannot and why, and how they are laid out."""

from __future__ import annotations

import numpy as np
import pytest

from yardmaster.engine.drawing import places as at
from yardmaster.engine.picking import places as picking
from yardmaster.engine.picking.places import Term
from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.scenes import WINDOW_KEYS, Scene, SceneTask, scene_rows
from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Failures, Outage, Site
from yardmaster.model.workload import Workload

SIGHT = Sight(window=4, gpu_slots=4, window_order="sjf")
GOOD = Scene(name="good", cluster="2x V100:4", sizes={1: 1.0, 2: 3.0})
TRACE = Workload.of(submit_s=np.arange(9), duration_s=np.ones(9), gpus=[1, 2, 4, 8, 16, 1, 1, 1, 1])
FAILING = Site(failures=Failures(outages=(Outage(0, 1.0, 2.0),)))
BAD = {
    "no jobs": ({"sizes": {}}, "needs a trace, or sizes of jobs that fit"),
    "too large": ({"sizes": {9: 1.0}}, "needs a trace, or sizes of jobs that fit"),
    "negative": ({"sizes": {1: -1.0, 2: 2.0}}, "needs a trace, or sizes of jobs that fit"),
    "no load": ({"load": None}, "synthetic jobs need a load"),
    "short trace": ({"trace": TRACE}, "8 jobs of .* fit on its cluster, fewer than the 9"),
    "many sizes": ({"sizes": dict.fromkeys(range(1, 9), 1.0), "cluster": "3x V100:4"}, ""),
    "unequal GPUs": ({"cluster": Cluster.of("1x A100:4", "1x V100:4")}, "equal GPUs only"),
    "outages": ({"cluster": Cluster.of("2x V100:4").under(FAILING)}, "equal GPUs only"),
}


@pytest.mark.parametrize("name", list(BAD))
def test_what_cannot_be_drawn_from_is_named(name: str):
    """The scene stands in the message, with what is wrong about it."""
    changes, why = BAD[name]
    jobs = 9
    if name == "many sizes":
        jobs, why = 5, "8 different numbers of GPUs; episodes of 5 jobs are too short"
    settings = {"cluster": "2x V100:4", "sizes": {1: 1.0}} | changes
    bad = Scene(name="the bad one", **settings)
    with pytest.raises(YardmasterError, match=f"Scene 'the bad one': .*{why}"):
        scene_rows([GOOD, bad], SIGHT, jobs)


def test_there_must_be_scenes():
    """Nothing can be drawn from nothing."""
    with pytest.raises(YardmasterError, match="there are none"):
        scene_rows([], SIGHT, 8)


def test_windows_have_the_orders_that_can_be_drawn():
    """Another order is met with those there are, ranks with a refusal."""
    with pytest.raises(UnknownNameError, match=r"window order of drawn episodes.*Known: .*sjf"):
        scene_rows([GOOD], Sight(window=4, window_order="wfp3"), 8)
    with pytest.raises(YardmasterError, match="ranks cannot be shown"):
        scene_rows([GOOD], Sight(window=4, window_order="sjf", ranks=("fifo",)), 8)
    for order in WINDOW_KEYS:
        rows = scene_rows([GOOD], Sight(window=4, window_order=order), 8)
        assert rows.ints[0, at.WINDOW_KEY] == WINDOW_KEYS[order]


def test_scenes_stand_behind_each_other():
    """Shares add up to one; pools, sizes and shapes of one scene do not reach into another's."""
    scenes = [
        GOOD,
        Scene(name="trace", cluster="2x V100:4", trace=TRACE, share=2.0, load=None),
        Scene(name="large", cluster="4x V100:8", sizes={8: 1.0, 32: 1.0, 99: 1.0}, share=1.0),
    ]
    rows = scene_rows(scenes, SIGHT, 8)
    assert rows.names == ("good", "trace", "large")
    np.testing.assert_allclose(rows.reals[:, at.SHARE], [0.25, 0.75, 1.0])
    assert rows.ints[:, at.SIZES].tolist() == [2, 0, 2]
    assert rows.ints[:, at.SIZES_AT].tolist() == [0, 2, 2]
    np.testing.assert_allclose(rows.sizes, [[1, 2, 8, 32], [0.25, 1.0, 0.5, 1.0]])
    assert rows.ints[:, at.POOL_JOBS].tolist() == [0, 8, 0]
    assert rows.pool[2].tolist() == [1, 2, 4, 8, 1, 1, 1, 1]
    assert rows.ints[:, at.SHAPES_AT].tolist() == [0, 9, 18]
    assert len(rows.shapes) == 9 + 9 + 33
    np.testing.assert_array_equal(rows.reals[1, at.LOAD : at.LOAD + 2], 0.0)
    assert all(len(table) for table in rows.arrays().values())


def test_rewards_are_divided_by_what_is_usual():
    """A scene's own scale, for the terms that have one; the others stay as they are."""
    task = SceneTask(
        scenes=(GOOD,),
        reward={"bounded_slowdown": 2.0, "slowdown": 1.0},
        usual={"good": {"bounded_slowdown": 8.0}},
        sight=SIGHT,
    )
    mine, other = task.scales(["good", "another"])
    slowdown = picking.WEIGHT_AT + Term.BOUNDED_SLOWDOWN
    assert mine[slowdown] == other[slowdown] / 8.0
    others = np.arange(len(mine)) != slowdown
    np.testing.assert_array_equal(mine[others], other[others])
