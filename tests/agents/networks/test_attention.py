"""Attention is the textbook's, and the two bodies use it on what they should."""

import torch
from torch import nn

from yardmaster.agents.networks import NetworkSettings, actor_critic
from yardmaster.agents.networks.attention import Attention
from yardmaster.engine.picking.layout import Layout


def test_attention_is_that_of_pytorch():
    """With the same weights, PyTorch's own attention with one head gives the same tokens."""
    dice = torch.Generator().manual_seed(0)
    ours, theirs = Attention(6, dice), nn.MultiheadAttention(6, 1, batch_first=True)
    parts = [ours.query, ours.key, ours.value]
    with torch.no_grad():
        for part in (*parts, ours.out):
            part.bias += torch.randn(6, generator=dice)
        theirs.in_proj_weight[:] = torch.cat([part.weight for part in parts])
        theirs.in_proj_bias[:] = torch.cat([part.bias for part in parts])
    theirs.out_proj.load_state_dict(ours.out.state_dict())
    tokens, others = torch.randn(3, 4, 6, generator=dice), torch.randn(3, 5, 6, generator=dice)
    seen = torch.tensor([[True] * 5, [True, False, True, False, True], [False] * 4 + [True]])
    found, _ = theirs(tokens, others, others, key_padding_mask=~seen)
    expected = nn.functional.layer_norm(tokens + found, (6,))
    torch.testing.assert_close(ours(tokens, others, seen), expected)


def test_jobs_notice_each_other_under_self_attention():
    """Changing one job changes the preference for another; the kernel network could not."""
    where = Layout(3, ("a", "b"), 0, (), 0, 6, ())
    seen = torch.tensor([[1.0, 0.5, 0.3, 0.4, 0.2, 0.9], [1.0, 0.5, 0.3, 0.4, 0.9, 0.1]])
    noticed = actor_critic(NetworkSettings(arch="self-attention", dim=8), where, 0).logits(seen)
    blind = actor_critic(NetworkSettings(arch="kernel"), where, 0).logits(seen)
    assert noticed[0, 0] != noticed[1, 0]
    assert blind[0, 0] == blind[1, 0]


def test_gpu_slots_are_alike_under_cross_attention():
    """Jobs see how long GPUs are busy, not which GPU it is."""
    where = Layout(2, ("a",), 3, ("g",), 0, 2, (5,))
    made = actor_critic(NetworkSettings(arch="cross-attention", dim=8), where, 0)
    seen = torch.tensor([[0.2, 0.8, 0.0, 0.4, 1.0, 0.1], [0.2, 0.8, 1.0, 0.0, 0.4, 0.1]])
    logits = made.logits(seen)
    torch.testing.assert_close(logits[0], logits[1])
    seen[1, 2] = 0.5
    assert not torch.allclose(made.logits(seen)[1], logits[1], atol=1e-7)
