"""Rainbow; what it shares with other learners is in test_off_policy.py."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.agents.memories import PrioritisedMemory
from yardmaster.agents.networks import NetworkSettings
from yardmaster.agents.networks.noisy import NoisyLinear
from yardmaster.agents.rainbow import MARGIN, Rainbow, RainbowSettings, project
from yardmaster.errors import InvalidConfigError
from yardmaster.testing.toys import OneMachine

SMALL = RainbowSettings(
    total_steps=1_000,
    steps_per_update=100,
    gradient_steps=4,
    batch_size=16,
    memory_size=500,
    warmup_steps=100,
    network=NetworkSettings(arch="mlp", hidden=(8,)),
)


def fresh(**changes) -> Rainbow:
    return Rainbow(OneMachine(4), replace(SMALL, **changes), seed=0)


# --- distributions -------------------------------------------------------------------------------


def projected_by_loop(shares, returns, discounts, support):
    """The same, atom by atom, in double precision."""
    width = support[1] - support[0]
    result = np.zeros_like(shares)
    for row in range(len(shares)):
        for atom, value in enumerate(support):
            moved = min(max(returns[row] + discounts[row] * value, support[0]), support[-1])
            for place, other in enumerate(support):
                closeness = 1.0 - abs(moved - other) / width
                result[row, place] += shares[row, atom] * max(0.0, closeness)
    return result


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    atoms=st.integers(2, 9),
    low=st.floats(-9.0, 2.0),
    width=st.floats(0.5, 20.0),
)
def test_projection_agrees_with_a_loop(seed, atoms, low, width):
    """Mass goes to the two nearest atoms by closeness, each transition with its own discount.

    None is lost; the mean is kept where nothing left the range; where nothing follows, only the
    return counts.
    """
    dice = np.random.default_rng(seed)
    support = np.linspace(low, low + width, atoms)
    shares = dice.dirichlet(np.full(atoms, 0.5), size=6)
    returns = dice.normal(scale=width, size=6)
    discounts = np.array([0.0, 1.0, *dice.random(4)])
    returns[1] = 0.0
    result = project(*(torch.from_numpy(part) for part in (shares, returns, discounts, support)))
    expected = projected_by_loop(shares, returns, discounts, support)
    assert result.numpy() == pytest.approx(expected, abs=1e-9)
    assert result.sum(dim=1).numpy() == pytest.approx(np.ones(6), abs=1e-9)
    assert float(result.min()) >= 0.0
    assert result[1].numpy() == pytest.approx(shares[1], abs=1e-9)  # nothing earned, none lost
    ends = returns[:, None] + discounts[:, None] * support[[0, -1]]
    within = (ends.min(axis=1) >= support[0]) & (ends.max(axis=1) <= support[-1])
    means = returns + discounts * (shares @ support)
    assert (result.numpy() @ support)[within] == pytest.approx(means[within], abs=1e-8)


def test_a_terminal_return_is_a_certainty():
    """Where nothing follows, all mass is on the atoms around the return."""
    support = torch.linspace(0.0, 4.0, 5)
    result = project(
        torch.full((3, 5), 0.2), torch.tensor([2.0, 2.25, 9.0]), torch.zeros(3), support
    )
    expected = [[0, 0, 1, 0, 0], [0, 0, 0.75, 0.25, 0], [0, 0, 0, 0, 1]]
    assert torch.allclose(result, torch.tensor(expected, dtype=torch.float32))


def test_the_range_follows_the_returns_seen():
    """Left open, the atoms span the returns of warm-up and 0, with a margin on either side."""
    learner = fresh()
    learner.warm(np.array([-3.0, -1.0]))
    support = learner.network.support
    assert support[0].item() == pytest.approx(-3.0 - 3.0 * MARGIN)
    assert support[-1].item() == pytest.approx(3.0 * MARGIN)
    assert torch.equal(support, learner.target.support)
    learner.warm(np.zeros(2))
    assert (support[0].item(), support[-1].item()) == (-1.0, 1.0)


def test_a_given_range_is_in_the_unit_of_the_reward():
    """The atoms scale with the rewards, and warm-up does not change it."""
    learner = fresh(reward_scale=0.5, v_min=-8.0, v_max=2.0)
    learner.warm(np.array([-100.0, 100.0]))
    assert (learner.network.support[0].item(), learner.network.support[-1].item()) == (-4.0, 1.0)
    with pytest.raises(InvalidConfigError, match="v_min"):
        fresh(v_min=2.0, v_max=1.0)


@pytest.mark.parametrize(
    ("given_range", "expected"),
    [
        ({"v_min": -7.0}, (-7.0, 2.0)),
        ({"v_min": 5.0}, (5.0, 7.0)),
        ({"v_max": 7.0}, (-6.0, 7.0)),
        ({"v_max": -9.0}, (-11.0, -9.0)),
    ],
    ids=["low", "low_above_all", "high", "high_below_all"],
)
def test_half_a_range_is_completed_from_warm_up(given_range, expected):
    """The end left open comes from the returns seen; it never crosses the one given."""
    learner = fresh(reward_scale=1.0, **given_range)
    learner.warm(np.array([-4.0, -1.0]))
    support = learner.network.support
    assert (support[0].item(), support[-1].item()) == expected


# --- parts ---------------------------------------------------------------------------------------


def is_noisy(learner: Rainbow) -> bool:
    return any(isinstance(part, NoisyLinear) for part in learner.network.modules())


@pytest.mark.parametrize(
    ("off", "has_it"),
    [
        ({"dueling": False}, lambda learner: learner.network.state_head is not None),
        ({"noisy": False}, is_noisy),
        ({"prioritised": False}, lambda learner: isinstance(learner.memory, PrioritisedMemory)),
        ({"atoms": 1}, lambda learner: learner.network.atoms > 1),
        ({"n_step": 1}, lambda learner: learner._open._n > 1),
        ({"double": False}, lambda learner: learner.settings.double),
    ],
    ids=["dueling", "noisy", "prioritised", "atoms", "n_step", "double"],
)
def test_each_part_can_be_switched_off(off, has_it):
    """The part is there by default and gone by its setting, and the rest learns without it."""
    learner = fresh(**off)
    assert has_it(fresh())
    assert not has_it(learner)
    before = [part.detach().clone() for part in learner.network.parameters()]
    for _ in range(3):
        scalars = learner.update()
    assert all(math.isfinite(value) for value in scalars.values())
    assert scalars["loss"] > 0.0
    pairs = zip(before, learner.network.parameters(), strict=True)
    assert any(not torch.equal(*pair) for pair in pairs)


def test_single_learning_lets_the_target_pick():
    """With double off the target's own favourite is valued; with it on, the network's."""
    for double, expected in ((True, 1), (False, 2)):
        learner = fresh(double=double, noisy=False, atoms=1, n_step=1, warmup_steps=10**9)
        learner.update()
        for network, favourite in ((learner.network, 1), (learner.target, 2)):
            with torch.no_grad():
                network.head.stream[-1].bias[favourite] += 1e3
        drawn = learner.memory.sample(64, np.random.default_rng(0))
        both = drawn.next_masks[:, 1] & drawn.next_masks[:, 2]
        assert both.any()
        assert (learner._picked(drawn)[both] == expected).all()


def test_noise_explores_and_is_new_each_time():
    """Fresh noise changes choices from step to step; evaluation is without noise."""
    learner = Rainbow(OneMachine(500), SMALL, seed=0)
    assert len({tuple(learner.choose()) for _ in range(10)}) > 2
    learner.network.eval()
    assert len({tuple(learner.choose()) for _ in range(10)}) == 1


def test_beta_is_annealed_over_the_training():
    """Weights undo the preference a little at first and wholly at the end."""
    learner, seen = fresh(beta=0.4, total_steps=1_000), []
    draw = learner.memory.sample

    def spy(count, dice, beta):
        seen.append((learner.steps, beta))
        return draw(count, dice, beta)

    learner.memory.sample = spy
    for _ in range(12):
        learner.update()
    for steps, beta in seen:
        assert beta == pytest.approx(min(1.0, 0.4 + 0.6 * steps / 1_000))
    assert seen[0][1] < 0.5
    assert seen[-1][1] == 1.0


@pytest.mark.parametrize("atoms", [1, 51])
def test_weights_and_priorities_follow_the_surprise(atoms):
    """The loss is the weighted mean of the surprises, which become the new priorities."""
    learner = fresh(atoms=atoms, priority=1.0, noisy=False)
    for _ in range(3):
        learner.update()
    judge = learner._distributions if atoms > 1 else learner._means
    drawn, returns = learner.sample(beta=0.4)
    assert drawn.weights.min() < 0.9
    learner.sample = lambda **_: (drawn, returns)
    losses, values, errors = judge(drawn, returns)
    expected = (losses if atoms > 1 else errors).detach().numpy()
    scalars = learner.learn()
    assert scalars["loss"] == pytest.approx((drawn.weights * losses).mean().item(), rel=1e-5)
    assert scalars["td_error"] == pytest.approx(errors.mean().item() / learner.scale, rel=1e-5)
    assert scalars["q_mean"] == pytest.approx(values.mean().item() / learner.scale, rel=1e-5)
    assert learner.memory.tree[drawn.rows] == pytest.approx(expected + 1e-6, rel=1e-4, abs=1e-7)
    assert (expected >= -1e-6).all()
