"""Scenes as people name them: plain values, checked, that survive being written down."""

from __future__ import annotations

import pytest

from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.scene_mix import SceneEntry, SceneMix
from yardmaster.envs.task import TASKS
from yardmaster.errors import UnknownNameError, YardmasterError

MADE = SceneEntry(workload="lognormal", cluster=("2x V100:4", "4x V100:4"), share=3.0)
FILE = SceneEntry(workload="logs/may.csv", cluster="pool:8", load=1.1, name="may")
MIX = SceneMix(entries=(MADE, FILE), jobs=32, reward={"waiting": -1.0})


def test_every_cluster_is_a_scene():
    """Clusters share an entry's share; loads are ranges, a file's own times none."""
    first, second, third = MIX.places
    assert (first.name, second.name) == ("lognormal on 2x V100:4", "lognormal on 4x V100:4")
    assert (first.share, second.share, third.share) == (1.5, 1.5, 1.0)
    assert (first.load, third.name, third.load) == ((0.8, 1.2), "may", (1.1, 1.1))
    unsaid = SceneMix(entries=(SceneEntry(workload="logs/may.csv", cluster="pool:8"),))
    assert unsaid.places[0][::3] == ("may.csv on pool:8", None)
    assert MIX.words() == ("3 scenes: lognormal on 2x V100:4, lognormal on 4x V100:4, may")


def test_scenes_read_back():
    """Tables give the same scenes again, seen and rewarded the same."""
    changed = MIX.changed(window=7, information="estimate", jobs=16)
    assert (changed.sight.window, changed.jobs) == (7, 16)
    assert SceneMix.from_tables(changed.to_table(), changed.scene_tables()) == changed


def test_a_damaged_table_is_refused():
    """A key that no scene has, or one that is missing, is named."""
    with pytest.raises(UnknownNameError, match="setting of a scene 'loads'"):
        SceneMix.from_tables({}, [FILE.to_table() | {"loads": 1.0}])
    with pytest.raises(YardmasterError, match="A scene has no cluster"):
        SceneMix.from_tables({}, [{"workload": "mm"}])


def test_a_ready_task_says_how_scenes_are_seen():
    """Its sight, reward and length of episodes are taken over; its jobs and machines are not."""
    mix = SceneMix.of(TASKS["blind"], [FILE])
    assert (mix.sight.information, mix.reward, mix.jobs) == ("blind", "wait", 256)
    task = mix.task_at(mix.places[0])
    assert (task.workload, task.cluster, task.sight) == ("logs/may.csv", "pool:8", mix.sight)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"load": (1.2, 0.8)}, "load must be above 0, or two such numbers, the lower first"),
        ({"load": 0.0}, "load must be above 0"),
        ({"share": 0.0}, "share must be positive"),
        ({"cluster": ()}, "there must be one at least"),
    ],
)
def test_entries_that_make_no_sense_are_refused(changes: dict, why: str):
    """The message says what would."""
    with pytest.raises(YardmasterError, match=why):
        SceneEntry(**({"workload": "mm", "cluster": "pool:8"} | changes))


def test_what_scenes_cannot_have_is_refused():
    """Names that stand for two, orders and features that are not drawn, unknown settings."""
    with pytest.raises(YardmasterError, match="Two scenes are called 'may'"):
        SceneMix(entries=(FILE, FILE))
    with pytest.raises(UnknownNameError, match="window order of scenes"):
        MIX.changed(window_order="wfp3")
    with pytest.raises(YardmasterError, match="features must be standard with scenes"):
        SceneMix.of(TASKS["rltune"].changed(reward="wait"), [FILE])
    with pytest.raises(YardmasterError, match="ranks must be empty with scenes"):
        SceneMix(entries=(FILE,), sight=Sight(ranks=("fifo",)))
    with pytest.raises(UnknownNameError, match="setting of scenes"):
        MIX.changed(keep=(0.0, 0.5))
    with pytest.raises(YardmasterError, match="jobs must be at least 2"):
        MIX.changed(jobs=1)
