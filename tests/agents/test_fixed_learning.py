"""Learning in shapes that never change: the numbers are those of learning as it comes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from yardmaster.agents.fixed_learning import most_of_any
from yardmaster.agents.networks import NetworkSettings
from yardmaster.agents.ppo import PPO, PPOSettings
from yardmaster.testing.toys import OneMachine

QUICK = PPOSettings(
    total_steps=2_000,
    steps_per_update=96,
    epochs=2,
    minibatches=5,
    learning_rate=3e-3,
    network=NetworkSettings(hidden=(8,)),
)


def learner(settings: PPOSettings, *, graphs: bool, seed: int = 3) -> PPO:
    return PPO(OneMachine(8), replace(settings, graphs=graphs), seed)


def weights(one: PPO) -> torch.Tensor:
    return torch.nn.utils.parameters_to_vector(one.network.parameters()).detach().clone()


def assert_alike(one: PPO, other: PPO) -> None:
    # Adam makes as long a step of a slope that is nearly rounding alone as of any other.
    np.testing.assert_allclose(weights(one), weights(other), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {"network": NetworkSettings(arch=arch, hidden=(8,), dim=8)}
        for arch in ("kernel", "mlp", "self-attention", "cross-attention")
    ]
    + [
        {"value_clip": 0.1, "entropy_clamp": 0.5, "entropy": 0.1, "entropy_end": 0.0},
        {"target_kl": 1e-6, "kl_stops": "update", "epochs": 3},
        {"target_kl": 1e-6, "kl_stops": "actor", "epochs": 3},
        {"critic_first": 1, "max_grad_norm": None},
    ],
    ids="-".join,
)
def test_weights_and_figures_are_those_of_learning_as_it_comes(changes):
    """Whatever the network and wherever learning stops, up to rounding."""
    settings = replace(QUICK, **changes)
    plain, fixed = (learner(settings, graphs=graphs) for graphs in (False, True))
    for _ in range(3):
        expected, found = plain.update(), fixed.update()
        assert found.keys() == expected.keys()
        assert found["gradient_steps"] == expected["gradient_steps"]
        for name, value in expected.items():
            assert found[name] == pytest.approx(value, rel=2e-3, abs=2e-5), name
        assert_alike(fixed, plain)


def test_a_policy_that_moves_too_far_stops_within_a_pass():
    """The step that goes too far is not taken, nor are those after it."""
    settings = replace(QUICK, target_kl=1e-7, epochs=3)
    assert learner(settings, graphs=True).update()["gradient_steps"] == 1.0
    free = learner(replace(settings, target_kl=None), graphs=True)
    assert free.update()["gradient_steps"] == 15.0


def test_a_rehearsal_leaves_no_trace():
    """What runs before a capture moves no weight, counts no step and remembers no gradient."""
    one = learner(QUICK, graphs=True)
    one.update()
    before = weights(one), one.optimiser.state_dict()["state"][0]["exp_avg"].clone()
    rehearsed: list[object] = []

    def run(key, function, rehearse):
        del function
        rehearsed.append(key)
        rehearse()

    one._learning._replays.run = run
    scalars = one.update()
    assert rehearsed
    assert torch.equal(weights(one), before[0])
    state = one.optimiser.state_dict()["state"][0]
    assert torch.equal(state["exp_avg"], before[1])
    assert state["step"].item() == 10.0
    assert scalars["gradient_steps"] == 0.0
    assert scalars["kl"] == 0.0


def test_a_rehearsal_that_fails_holds_nothing_back(monkeypatch):
    """What is then called in place of a graph learns as it would have."""
    one, other = (learner(QUICK, graphs=True) for _ in range(2))
    descend, failing = one._learning._descend, [True]

    def fail_once(loss):
        if failing and failing.pop():
            raise RuntimeError("no room")
        descend(loss)

    def run(key, function, rehearse):
        del key
        if failing:
            with pytest.raises(RuntimeError, match="no room"):
                rehearse()
        function()

    monkeypatch.setattr(one._learning, "_descend", fail_once)
    monkeypatch.setattr(one._learning._replays, "run", run)
    assert one.update() == other.update()
    assert torch.equal(weights(one), weights(other))


def test_checkpoints_go_from_one_way_to_the_other():
    """A state saved with graphs holds plain learning rates, and goes on with or without them."""
    one = learner(QUICK, graphs=True)
    one.update()
    state = one.state()
    assert all(isinstance(group["lr"], float) for group in state["optimiser"]["param_groups"])
    expected = one.update()
    for graphs in (False, True):
        other = learner(QUICK, graphs=graphs, seed=99)
        other.update()
        memory = other.optimiser.state[next(other.network.head.parameters())]["exp_avg"]
        other.load(state)
        moved = other.optimiser.state[next(other.network.head.parameters())]["exp_avg"]
        assert (moved is memory) == graphs  # graphs write where it was when they were captured
        assert other.update() == pytest.approx(expected, rel=2e-3, abs=2e-5)
        assert_alike(other, one)


def test_the_largest_part_is_found():
    """Also if the last part is shorter than the others."""
    numbers = torch.tensor([1, 2, 3, 9, 0, 1, 5])
    assert most_of_any(numbers, numbers.chunk(3)) == 10
