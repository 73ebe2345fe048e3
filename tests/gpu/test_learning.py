"""PPO learns from environments on a GPU what it learns from the same ones on the CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from yardmaster.agents.networks import NetworkSettings
from yardmaster.agents.ppo import PPO, PPOSettings
from yardmaster.agents.rollouts import Rollout
from yardmaster.agents.tensors import ResidentBatch, torch_device
from yardmaster.engine.gpu.availability import is_simulated
from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.gpu_batch import DrawnBatch
from yardmaster.envs.scenes import Scene, SceneTask
from yardmaster.envs.task import TASKS

TASK = TASKS["default"].changed(
    jobs=5,
    cluster="2x V100:4",
    episodes=4,
    load=1.5,
    window=5,
    gpu_slots=4,
    noop="always",
    max_steps=6,
)
NETWORK = NetworkSettings(hidden=(8,))
SCENES = SceneTask(
    scenes=(
        Scene(name="small", cluster="2x V100:4", sizes={1: 0.6, 4: 0.4}),
        Scene(name="large", cluster="4x V100:8", sizes={1: 0.5, 16: 0.5}),
    ),
    jobs=4,
    sight=Sight(window=4, gpu_slots=4, window_order="sjf"),
)


def settings(scope, **changes) -> PPOSettings:
    quick = PPOSettings(
        steps_per_update=scope.size * 6,
        total_steps=10_000,
        epochs=2,
        minibatches=2,
        network=NETWORK,
    )
    return replace(quick, **changes)


def test_an_update_is_that_of_the_cpu(twins, scope):
    """The same network, seed and episodes give the same losses and the same weights."""
    pair = twins(TASK, 0)
    device = torch_device("cuda")
    learners = [
        PPO(batch, settings(scope), 3, device=device)
        for batch in (ResidentBatch(pair.there), pair.here)
    ]
    for learner in learners:
        learner.batch.reset(11)  # staggered ones have been played with different dice
    there, here = (learner.update() for learner in learners)
    assert there.keys() == here.keys()
    assert there["episodes"] > 0
    for name, value in here.items():
        assert there[name] == pytest.approx(value, rel=1e-3, abs=1e-4), name
    weights = [torch.nn.utils.parameters_to_vector(one.network.parameters()) for one in learners]
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-3, atol=1e-3)


def test_rollouts_see_beyond_a_limit(twins, scope):
    """Values after a cut-off are those of the last observation, as in a rollout on the CPU."""
    pair = twins(TASK, 2)
    resident = ResidentBatch(pair.there)
    device, steps = torch_device("cuda"), 7
    there = Rollout(steps, scope.size, resident.layout, device, is_resident=True)
    here = Rollout(steps, scope.size, resident.layout, device)
    dice = np.random.default_rng(4)
    for step in range(steps):
        there.before(step, resident)
        here.before(step, pair.here)
        actions = pair.legal_actions(dice)
        pair.here.step(actions)
        chosen = torch.from_numpy(actions).to(device)
        resident.step(chosen)
        there.after(step, resident, chosen)
        here.after(step, pair.here, chosen)
    assert there.truncated.any()
    assert there.terminated.any() or here.truncated.all(axis=1).any()
    np.testing.assert_array_equal(there.ended.cpu(), here.ended)

    def critic(observations: torch.Tensor) -> torch.Tensor:
        return observations.cumsum(dim=-1).mean(dim=-1)

    for name in ("values", "tails"):
        found = getattr(there, name)(critic), getattr(here, name)(critic)
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one.cpu(), other, rtol=1e-4, atol=1e-5)
    one, other = there.scalars(), here.scalars()
    assert one == pytest.approx(other, rel=1e-4)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_scenes_are_learned_from_and_taken_up_again(precision: str, scope):
    """Every scene's rewards get a spread of their own; a loaded state goes on as it did."""
    batch = ResidentBatch(DrawnBatch(SCENES.rows(), SCENES, scope.size))
    asked = settings(scope, precision=precision, graphs=True)
    learner = PPO(batch, asked, 0, device=torch_device("cuda"))
    learner.update()  # what was captured before a state is loaded is played back after it
    saved = learner.state()
    scalars = learner.update()
    learner.load(saved)
    close = 1e-2 if scope.tolerance else 0.0
    assert learner.update() == pytest.approx(scalars, rel=close, abs=close)
    assert all(np.isfinite(value) for value in scalars.values())
    assert scalars["steps"] == scope.size * 6
    assert set(learner._rollout.groups.unique().tolist()) == {0, 1}
    assert len(learner.reward_scale.scales) == 2


def test_graphs_change_no_decision(twins, scope):
    """Acting and learning played back give the actions and weights of doing it step by step."""
    learners = []
    for graphs in (False, True):
        batch = ResidentBatch(twins(TASK, 0).there)
        asked = settings(scope, graphs=graphs)
        learners.append(PPO(batch, asked, 3, device=torch_device("cuda")))
    plain, played = learners
    for turn in range(1 if is_simulated() else 4):
        if turn:  # from the same place again: a last digit can change an action, and that the rest
            played.load(plain.state())
        expected, found = plain.update(), played.update()
        assert found == pytest.approx(expected, rel=1e-2, abs=1e-3)
        assert (plain._rollout.actions == played._rollout.actions).float().mean() > 0.99
        assert (plain._rollout.truncated == played._rollout.truncated).float().mean() > 0.99
    if torch_device("cuda") == "cuda":
        assert played.replays.is_capturing, "a capture failed"
    weights = [torch.nn.utils.parameters_to_vector(one.network.parameters()) for one in learners]
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-2, atol=2e-3)
