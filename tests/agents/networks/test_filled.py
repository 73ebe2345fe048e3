"""Observations in two parts: the same rows, values and gradients as in one table."""

from __future__ import annotations

import torch

from yardmaster.agents.networks import NetworkSettings, actor_critic
from yardmaster.agents.networks.filled import Filled, parted
from yardmaster.engine.picking.sight import Sight

LAYOUT = Sight(window=8, gpu_slots=4).layout()
FEATURES = len(LAYOUT.job_features)
ROWS = 400


def observations(longest: int, share_long: float) -> torch.Tensor:
    """Return observations with queues of one or two jobs, and some of three to `longest`."""
    dice = torch.Generator().manual_seed(5)
    seen = torch.rand(ROWS, LAYOUT.length, generator=dice) - 0.5
    lengths = torch.randint(1, 3, (ROWS,), generator=dice)
    is_long = torch.rand(ROWS, generator=dice) < share_long
    lengths[is_long] = torch.randint(3, longest + 1, (int(is_long.sum()),), generator=dice)
    for row, length in enumerate(lengths.tolist()):
        seen[row, LAYOUT.jobs_at + length * FEATURES : LAYOUT.jobs_at + 8 * FEATURES] = 0.0
    return seen


def as_table(filled: Filled, like: torch.Tensor, front: int) -> torch.Tensor:
    """Put the parts together again."""
    after = filled.shown.shape[1] - front
    table = torch.zeros(len(filled), like.shape[1])
    table[:, :front] = filled.shown[:, :front]
    table[:, like.shape[1] - after :] = filled.shown[:, front:]
    table[filled.rows, front : like.shape[1] - after] = filled.tail
    return table


def test_rows_are_those_of_the_table():
    """Whole, cut, and picked in any order with repetitions, no number is lost or moved."""
    front = LAYOUT.jobs_at + 2 * FEATURES
    seen = observations(8, 0.2)
    filled = parted(seen, front, LAYOUT.length - LAYOUT.jobs_at - 8 * FEATURES)
    assert filled is not None
    assert 0 < len(filled.rows) < ROWS / 2
    assert torch.equal(as_table(filled, seen, front), seen)
    assert torch.equal(as_table(filled[30:77], seen, front), seen[30:77])
    rows = torch.randint(0, ROWS, (500,), generator=torch.Generator().manual_seed(1))
    picked = filled.index_select(0, rows)
    assert torch.equal(as_table(picked, seen, front), seen[rows])
    again = torch.arange(0, 500, 3)
    assert torch.equal(as_table(picked.index_select(0, again), seen, front), seen[rows[again]])


def test_long_queues_stay_a_table():
    """Where most rows have more jobs than the first two, nothing would be saved."""
    critic = actor_critic(NetworkSettings("mlp", (12, 10)), LAYOUT, 0).critic
    seen = observations(8, 0.9)
    assert critic.summary(seen) is seen
    assert isinstance(critic.summary(observations(8, 0.1)), Filled)
    assert isinstance(critic.summary(observations(8, 0.1)[:20]), torch.Tensor)


def test_values_and_gradients_are_those_of_the_table():
    """Also of observations that lack the tokens at the end of the window."""
    network = actor_critic(NetworkSettings("mlp", (12, 10)), LAYOUT, 0)
    masks = torch.zeros(ROWS, LAYOUT.actions, dtype=torch.bool)
    for longest in (8, 5):
        seen = network.body.parts.trimmed(observations(longest, 0.2), masks)
        assert (seen.shape[1] < LAYOUT.length) == (longest == 5)
        found = []
        for shown in (seen, network.critic.summary(seen)):
            network.zero_grad()
            values = network.critic.judge(shown)
            values.square().mean().backward()
            slopes = [weight.grad.clone() for weight in network.critic.parameters()]
            found.append((values.detach(), slopes))
        (plain, plain_slopes), (quick, quick_slopes) = found
        torch.testing.assert_close(quick, plain)
        for one, other in zip(quick_slopes, plain_slopes, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
            assert other.abs().sum() > 0
