"""What all bodies promise: jobs are alike, padding is nothing, and a seed decides everything."""

import pytest
import torch

from yardmaster.agents.networks import FOR_PICKING, NetworkSettings, actor_critic
from yardmaster.engine.picking.layout import Layout

TOKENS = [name for name in FOR_PICKING if name != "mlp"]


def layout(window: int = 6, slots: int = 4, number: int = 2) -> Layout:
    """Return a layout with a global first, then jobs, GPU slots and more globals."""
    first = 1 if number else 0
    after = first + 3 * window
    return Layout(
        window=window,
        job_features=("a", "b", "c"),
        gpu_slots=slots,
        global_features=tuple(f"g{index}" for index in range(number)),
        jobs_at=first,
        gpus_at=after,
        globals_at=(0, *range(after + slots, after + slots + number - 1))[:number],
    )


def observations(where: Layout, rows: int = 5, seed: int = 0, padding: int = 2) -> torch.Tensor:
    """Return random observations whose last job tokens are empty."""
    drawn = torch.randn(rows, where.length, generator=torch.Generator().manual_seed(seed))
    jobs(where, drawn)[:, where.window - padding :] = 0.0
    return drawn


def jobs(where: Layout, seen: torch.Tensor) -> torch.Tensor:
    """Return a view of the job tokens."""
    part = seen[:, where.jobs_at : where.jobs_at + 3 * where.window]
    return part.view(-1, where.window, 3)


def network(arch: str, where: Layout, seed: int = 3):
    made = actor_critic(NetworkSettings(arch=arch, dim=8, hidden=(9, 7)), where, seed)
    dice = torch.Generator().manual_seed(1)
    with torch.no_grad():  # away from where learning begins, where all preferences are alike
        for weights in made.parameters():
            weights.add_(torch.randn(weights.shape, generator=dice), alpha=0.3)
    return made


@pytest.mark.parametrize(
    ("arch", "slots", "number"),
    [
        (arch, slots, number)
        for arch in FOR_PICKING
        for slots, number in [(4, 2), (4, 0), (0, 2), (0, 0)]
        if slots or arch != "cross-attention"
    ],
)
def test_every_layout_has_its_network(arch, slots, number):
    """Logits come per action and values per observation, with or without GPU slots and globals."""
    where = layout(slots=slots, number=number)
    logits, values = network(arch, where)(observations(where))
    assert logits.shape == (5, 7)
    assert values.shape == (5,)
    assert logits.isfinite().all()
    assert logits.std(dim=1).min() > 1e-3


@pytest.mark.parametrize("arch", TOKENS)
def test_order_of_jobs_does_not_matter(arch):
    """Permuting the job tokens permutes the logits, and leaves the no-op and the value alone."""
    where = layout()
    made, seen = network(arch, where), observations(where)
    order = torch.tensor([4, 2, 5, 0, 1, 3])
    turned = seen.clone()
    jobs(where, turned)[:] = jobs(where, seen)[:, order]
    (logits, values), (found, same) = made(seen), made(turned)
    torch.testing.assert_close(found[:, :6], logits[:, order])
    torch.testing.assert_close(found[:, 6], logits[:, 6])
    torch.testing.assert_close(same, values)


@pytest.mark.parametrize("arch", TOKENS)
def test_padding_is_nothing(arch):
    """A window with more empty places gives the same preferences."""
    small, large = layout(6), layout(9)
    seen = observations(small)
    wide = torch.zeros(5, large.length)
    jobs(large, wide)[:, :6] = jobs(small, seen)
    wide[:, large.gpus_at :] = seen[:, small.gpus_at :]
    wide[:, 0] = seen[:, 0]
    logits, found = network(arch, small).logits(seen), network(arch, large).logits(wide)
    torch.testing.assert_close(found[:, [0, 1, 2, 3, 9]], logits[:, [0, 1, 2, 3, 6]])


@pytest.mark.parametrize("arch", FOR_PICKING)
def test_masks_change_no_legal_logit(arch):
    """What is saved by computing legal actions only does not show in them."""
    where = layout()
    made, seen = network(arch, where), observations(where, rows=8)
    masks = torch.rand(8, 7, generator=torch.Generator().manual_seed(2)) < 0.5
    masks[0], masks[1] = False, True
    torch.testing.assert_close(made.logits(seen, masks)[masks], made.logits(seen)[masks])


@pytest.mark.parametrize(("padding", "kept"), [(0, 6), (1, 6), (4, 3), (6, 1)])
@pytest.mark.parametrize("arch", FOR_PICKING)
def test_trimmed_observations_mean_the_same(arch, padding, kept):
    """Without the tokens behind all jobs, logits, values and gradients are what they were."""
    where = layout()
    made, seen = network(arch, where), observations(where, padding=padding)
    masks = torch.zeros(len(seen), where.actions, dtype=torch.bool)
    masks[:, where.window] = True
    masks[0, : where.window - padding] = True
    short = made.body.parts.trimmed(seen, masks)
    assert short.shape[1] == where.length - 3 * (where.window - kept)
    found = []
    for given in (seen, short):
        made.zero_grad()
        logits, values = made.logits(given, masks)[masks], made.value(given)
        torch.autograd.backward(logits.square().sum() + values.square().sum())
        gradients = [part.grad for part in made.parameters() if part.grad is not None]
        found.append([logits, values, *gradients])
    torch.testing.assert_close(found[1], found[0], rtol=1e-5, atol=1e-5)


def test_what_is_legal_is_not_trimmed():
    """A place without a job stays as long as it may be chosen."""
    where = layout()
    made, seen = network("kernel", where), observations(where, padding=5)
    masks = torch.ones(len(seen), where.actions, dtype=torch.bool)
    assert torch.equal(made.body.parts.trimmed(seen, masks), seen)


@pytest.mark.parametrize("arch", FOR_PICKING)
def test_globals_are_found_where_they_stand(arch):
    """The first and the last number of this observation are globals, and both make a difference."""
    where = layout()
    made, seen = network(arch, where), observations(where)
    for place in (0, where.length - 1):
        other = seen.clone()
        other[:, place] += 1.0
        logits, values = made(other)
        assert not torch.allclose(logits[:, :4], made.logits(seen)[:, :4])
        assert not torch.allclose(values, made.value(seen))


@pytest.mark.parametrize("arch", FOR_PICKING)
def test_the_seed_decides_the_weights(arch):
    """Equal seeds give equal weights, others do not, and PyTorch's own dice stay untouched."""
    before = torch.get_rng_state()
    settings = NetworkSettings(arch=arch, dim=8)
    first, same, other = (actor_critic(settings, layout(), seed) for seed in (4, 4, 5))
    assert torch.equal(torch.get_rng_state(), before)
    for name, weights in first.state_dict().items():
        assert torch.equal(weights, same.state_dict()[name])
    assert any(
        not torch.equal(weights, other.state_dict()[name])
        for name, weights in first.state_dict().items()
    )


@pytest.mark.parametrize("arch", FOR_PICKING)
def test_a_new_policy_prefers_nothing_but_not_waiting(arch):
    """At first the logits of jobs are nearly equal and the no-op's lower by its bias."""
    where = layout()
    made = actor_critic(NetworkSettings(arch=arch, dim=8, noop_bias=-2.0), where, 0)
    logits = made.logits(observations(where))
    assert (logits[:, :6] - logits[:, :1]).abs().max() < 0.3
    assert (logits[:, 6] - logits[:, :6].mean(dim=1) + 2.0).abs().max() < 0.3


@pytest.mark.parametrize("arch", FOR_PICKING)
def test_policy_and_critic_share_nothing(arch):
    """The value's gradient reaches the critic only, and the logits' the policy only."""
    where = layout()
    made = network(arch, where)
    logits, values = made(observations(where))
    for result, mine in ((logits, "critic."), (values, "body.")):
        made.zero_grad(set_to_none=True)
        (result**2).sum().backward()
        for name, weights in made.named_parameters():
            if name.startswith(mine):
                assert weights.grad is None
    assert any(weights.grad is not None for weights in made.critic.parameters())
