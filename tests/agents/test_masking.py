"""Illegal actions get nothing, whatever the network says."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.agents import masking

LOGITS = st.floats(-50.0, 50.0, width=32)


@st.composite
def choices(draw):
    """Logits and masks of a few rows, at least one action of each row legal."""
    actions = draw(st.integers(1, 6))
    rows = draw(st.integers(1, 4))
    logits = [draw(st.lists(LOGITS, min_size=actions, max_size=actions)) for _ in range(rows)]
    masks = np.array(
        [draw(st.lists(st.booleans(), min_size=actions, max_size=actions)) for _ in range(rows)]
    )
    for row in masks:
        row[draw(st.integers(0, actions - 1))] = True
    return torch.tensor(logits, dtype=torch.float32), torch.from_numpy(masks)


@settings(max_examples=60, deadline=None)
@given(choices())
def test_legal_actions_share_all_probability(choice):
    """Probabilities are the softmax over the legal actions alone; the others' are exactly 0."""
    logits, masks = choice
    found = masking.log_probs(logits, masks).exp()
    assert (found[~masks] == 0.0).all()
    for row, mask, shares in zip(logits, masks, found, strict=True):
        legal = row[mask].double().numpy()
        expected = np.exp(legal - legal.max())
        np.testing.assert_allclose(shares[mask], expected / expected.sum(), rtol=1e-4, atol=1e-7)


@settings(max_examples=60, deadline=None)
@given(choices())
def test_entropy_is_that_of_the_legal_choice(choice):
    """Entropy equals −Σ p ln p over legal actions."""
    logits, masks = choice
    for row, mask, found in zip(logits, masks, masking.entropy(logits, masks), strict=True):
        shares = torch.softmax(row[mask].double(), dim=0)
        expected = -sum(p * math.log(p) for p in shares.tolist() if p > 0.0)
        assert found.item() == pytest.approx(expected, abs=1e-5)


@settings(max_examples=60, deadline=None)
@given(choices())
def test_greedy_takes_the_best_legal_action(choice):
    """No legal action has a higher score, and the first of equals is taken."""
    logits, masks = choice
    for row, mask, found in zip(logits, masks, masking.greedy(logits, masks), strict=True):
        legal = torch.nonzero(mask).flatten().tolist()
        assert found.item() == max(legal, key=lambda action: (row[action].item(), -action))


def test_samples_follow_the_probabilities():
    """Of 20,000 draws each action's share is within four standard errors; illegal ones get none."""
    logits = torch.tensor([0.0, 1.0, 3.0, -2.0, 0.5])
    masks = torch.tensor([True, True, False, True, True])
    draws = 20_000
    dice = torch.Generator().manual_seed(0)
    found = masking.sample(logits.expand(draws, 5), masks.expand(draws, 5), dice)
    counts = np.bincount(found.numpy(), minlength=5)
    expected = masking.log_probs(logits, masks).exp().numpy()
    assert counts[2] == 0
    assert (np.abs(counts / draws - expected) <= 4 * np.sqrt(expected / draws)).all()


def test_sampling_is_repeatable_and_owns_its_dice():
    """The same generator state draws the same actions, and PyTorch's own dice are not used."""
    logits, masks = torch.zeros(50, 7), torch.ones(50, 7, dtype=torch.bool)
    before = torch.get_rng_state()
    first, second = (
        masking.sample(logits, masks, torch.Generator().manual_seed(5)) for _ in range(2)
    )
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("size", [0.0, 1e5, 1e30])
def test_nothing_is_ever_nan(size):
    """Not with huge logits, not where nothing is legal, and not in the gradients."""
    logits = torch.tensor([[size, -size, 0.0], [-size, size, size], [size, size, -size]])
    logits.requires_grad_()
    masks = torch.tensor([[True, True, False], [False, False, False], [False, True, True]])
    shares = masking.log_probs(logits, masks)
    entropy = masking.entropy(logits, masks)
    ratio = (shares - shares.detach()).exp()  # of what a learner does with them
    (shares.clamp_min(-50.0).sum() + entropy.sum() + ratio.sum()).backward()
    assert logits.grad is not None
    for numbers in (shares, entropy, ratio, logits.grad):
        assert not numbers.isnan().any()
    assert (shares.exp()[1] == 0.0).all()
    assert entropy[1] == 0.0
