"""Episodes drawn on a GPU are those that the CPU draws by the same numbers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from yardmaster.engine import state as core
from yardmaster.engine.gpu.hashing import next_number
from yardmaster.engine.gpu.kernels import MOST_EPISODES
from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.gpu_batch import DrawnBatch
from yardmaster.envs.scenes import Scene, SceneTask, drawn
from yardmaster.model.workload import Workload

JOBS = 8
SEED = 5
DICE = np.random.default_rng(3)
TRACE = Workload.of(
    submit_s=np.sort(np.floor(DICE.uniform(0, 9_000, 60))),
    duration_s=np.ceil(DICE.lognormal(6, 1, 60)),
    gpus=DICE.choice([1, 2, 8], 60),
)
SCENES = (
    Scene(name="synthetic", cluster="2x V100:4", sizes={1: 0.5, 2: 0.2, 4: 0.3}),
    Scene(name="trace", cluster="2x V100:8", trace=TRACE, load=(0.9, 1.1), share=0.5),
)


def task_of(information: str = "clairvoyant", **options) -> SceneTask:
    order = "smallest-first" if information == "blind" else "sjf"
    sight = Sight(window=6, gpu_slots=4, window_order=order, information=information)
    return SceneTask(scenes=SCENES, jobs=JOBS, sight=sight, **options)


class DrawnEpisodes:
    """Drawn episodes as the batch on the CPU asks for them."""

    def __init__(self, task: SceneTask, rows) -> None:
        self.task, self._rows = task, rows

    def rules(self):
        """Return what the task is, in integers."""
        return self.task.rules()

    def scales(self):
        """Return what the task is, in reals."""
        return self.task.scales(self._rows.names)[0]

    def prepared(self, number: int):
        """Return an episode, laid out."""
        one = drawn(self._rows, self.task.rules(), number)
        return SimpleNamespace(
            simulation=SimpleNamespace(ints=one.ints, reals=one.reals),
            facts=one.facts,
            cards=one.cards,
            is_real=False,
            book_length=self._rows.book_length,
            purse_length=self._rows.purse_length,
        )


@pytest.mark.parametrize("information", ["clairvoyant", "estimate", "blind"])
def test_rows_are_those_of_the_cpu(information: str, scope, by_environment):
    """Jobs, times, facts and cards: the same numbers, but for the last digits of logarithms."""
    task = task_of(information)
    rows = task.rows()
    batch = DrawnBatch(rows, task, scope.size)
    batch.reset(SEED)
    numbers = batch.episode_numbers.copy_to_host()
    assert numbers.tolist() == [
        next_number(SEED + row, 0, MOST_EPISODES) for row in range(scope.size)
    ]
    reals, facts, cards = map(by_environment, (batch.reals, batch.facts, batch.cards))
    ints, groups = by_environment(batch.ints), batch.groups.copy_to_host()
    close = 1e-9 if scope.tolerance else 0.0
    for row, number in enumerate(numbers.tolist()):
        one = drawn(rows, task.rules(), number)
        assert groups[row] == one.scene
        shapes = slice(one.ints[core.JOB_SHAPE], one.ints[core.JOB_SHAPE] + JOBS)
        np.testing.assert_array_equal(ints[row, shapes], one.ints[shapes])
        for table in (core.SUBMIT, core.DURATION, core.EXPECTED, core.OFFSET):
            part = slice(one.ints[table], one.ints[table] + JOBS)
            np.testing.assert_allclose(reals[row, part], one.reals[part], rtol=close)
        np.testing.assert_allclose(facts[row], one.facts, rtol=close)
        np.testing.assert_allclose(cards[row], one.cards, rtol=scope.tolerance)
    assert set(groups.tolist()) == {0, 1}


def test_drawn_episodes_are_played_as_on_the_cpu(twins_of, scope):
    """Beginning with the same rows, every decision looks and comes to the same."""
    task = task_of()
    rows = task.rows()
    begun = np.zeros(scope.size, dtype=np.int64)

    def draw(which):
        counts = zip(which.tolist(), begun[which].tolist(), strict=True)
        begun[which] += 1
        return np.array([next_number(SEED + row, count, MOST_EPISODES) for row, count in counts])

    pair = twins_of(DrawnEpisodes(task, rows), DrawnBatch(rows, task, scope.size), draw=draw)
    pair.there.reset(SEED)
    pair.here.reset(SEED)
    dice = np.random.default_rng(0)
    for _ in range(scope.steps):
        pair.assert_same_sight()
        pair.step(pair.legal_actions(dice))
        pair.assert_same_outcome()
    assert begun.mean() > 1.5


def test_each_scene_has_its_own_scale_and_tally(scope):
    """Rewards are divided by what is usual in their scene; sums are kept scene by scene."""
    usual = {"synthetic": {"bounded_slowdown": 2.0}, "trace": {"bounded_slowdown": 8.0}}
    plain, scaled = task_of(), task_of(usual=usual)
    batches = [DrawnBatch(task.rows(), task, scope.size) for task in (plain, scaled)]
    earned, groups = np.zeros((2, scope.size)), np.zeros(scope.size, dtype=np.int64)
    for batch in batches:
        batch.reset(SEED)
    for moment in range(11):
        groups = batches[0].groups.copy_to_host()
        for batch in batches:
            batch.step_at_random(1, moment)
        rewards = [batch.rewards.copy_to_host() for batch in batches]
        np.testing.assert_allclose(rewards[1], rewards[0] / np.array([2.0, 8.0])[groups], rtol=1e-5)
        earned += rewards
    assert earned[0].any()
    before, after = (batch.tallied() for batch in batches)
    assert (before["episodes"] > 0).all()
    np.testing.assert_allclose(after["returns"], before["returns"] / [2.0, 8.0], rtol=1e-5)
