"""A policy file chooses as the network does that it was made of."""

import itertools

import numpy as np
import pytest
import torch

from yardmaster.agents import masking
from yardmaster.agents.export import chooser_of, policy_of
from yardmaster.agents.networks import (
    FOR_CHOOSING,
    FOR_PICKING,
    NetworkSettings,
    actor_critic,
    q_network,
)
from yardmaster.engine.choosing import compilation as choosing
from yardmaster.engine.choosing.sight import ChoiceSight
from yardmaster.engine.picking import compilation
from yardmaster.engine.picking.layout import Layout
from yardmaster.schedulers.learned.packing import pack
from yardmaster.schedulers.learned.policy_file import read_policy, write_policy
from yardmaster.schedulers.meta.chooser_file import packed, read_chooser, write_chooser

LAYOUT = Layout(18, ("a", "b", "c"), 5, ("g", "h"), 1, 55, (0, 60))
JOBS_ONLY = Layout(6, ("a", "b"), 0, (), 0, 12, ())


def shaken(network, seed: int = 0):
    """Return the network away from its beginning, where biases are 0 and actions alike."""
    dice = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in network.parameters():
            weights.add_(torch.randn(weights.shape, generator=dice), alpha=0.2)
    return network.eval()


def situations(layout: Layout, rows: int = 30):
    """Return observations with empty places, and masks of legal actions."""
    dice = np.random.default_rng(3)
    seen = dice.normal(size=(rows, layout.length)).astype(np.float32)
    layout.jobs(seen)[dice.random((rows, layout.window)) < 0.3] = 0.0
    masks = dice.random((rows, layout.actions)) < 0.5
    masks[np.arange(rows), dice.integers(layout.actions, size=rows)] = True
    return torch.from_numpy(seen), torch.from_numpy(masks)


def scores_of(policy, seen, masks) -> np.ndarray:
    """Return the scores of the compiled core."""
    packed, score_one = pack(policy), compilation.compiled().score_one
    scratch = np.zeros(packed.scratch_length, np.float32)
    scores = np.zeros(masks.shape, np.float32)
    for row in range(len(scores)):
        legal = masks[row].numpy().astype(np.int8)
        score_one(packed.net, packed.weights, seen[row].numpy(), legal, scores[row], scratch)
    return scores


def check(network, layout, preferences, *, up_to_a_constant=False):
    """Compare scores and choices of the policy file with the network's."""
    seen, masks = situations(layout)
    with torch.no_grad():
        expected = preferences(seen, masks).numpy()
    found = scores_of(policy_of(network, layout, {}, {}), seen, masks)
    for mine, theirs, mask in zip(found, expected, masks.numpy(), strict=True):
        gap = mine[mask] - theirs[mask]
        np.testing.assert_allclose(gap - (gap[0] if up_to_a_constant else 0.0), 0.0, atol=3e-5)
        best = np.sort(theirs[mask])[::-1]
        if len(best) == 1 or best[0] - best[1] > 1e-4:
            assert mine.argmax() == np.where(mask, theirs, -np.inf).argmax()


def by_majority(network):
    """Return preferences by which the no-op must outweigh all legal jobs together."""

    def preferences(seen, masks):
        logits = network.logits(seen)
        jobs = logits[:, :-1].masked_fill(~masks[:, :-1], -torch.inf)
        surplus = (jobs.logsumexp(1) - jobs.amax(1)).nan_to_num(0.0)  # without jobs: none
        return torch.cat([logits[:, :-1], (logits[:, -1] - surplus)[:, None]], dim=1)

    return preferences


@pytest.mark.parametrize("arch", FOR_PICKING)
@pytest.mark.parametrize("hidden", [(9,), (12, 10, 8)], ids=["shallow", "deep"])
def test_policies_choose_alike(arch, hidden):
    """The logits of an actor come out of its file."""
    network = shaken(actor_critic(NetworkSettings(arch, hidden, dim=12), LAYOUT, 0))
    check(network, LAYOUT, by_majority(network))


@pytest.mark.parametrize("arch", FOR_PICKING)
def test_policies_wait_as_the_learner_does(arch):
    """File and network wait exactly where waiting is likelier than all jobs together."""
    network = shaken(actor_critic(NetworkSettings(arch, (12, 10), dim=12), LAYOUT, 0))
    with torch.no_grad():
        network.head.noop_bias += 3.0
    seen, masks = situations(LAYOUT, rows=200)
    masks[:, -1] = True
    with torch.no_grad():
        logits = network.logits(seen)
    shares = logits.masked_fill(~masks, -torch.inf).softmax(1)
    waits = shares[:, -1] > 0.5
    assert waits.any()
    assert (waits != (shares.argmax(1) == LAYOUT.window)).any()  # the rule makes a difference
    assert torch.equal(masking.decided(logits, masks) == LAYOUT.window, waits)
    found = scores_of(policy_of(network, LAYOUT, {}, {}), seen, masks).argmax(1)
    assert np.array_equal(found, masking.decided(logits, masks).numpy())


@pytest.mark.parametrize("arch", [name for name in FOR_PICKING if name != "cross-attention"])
def test_policies_that_see_jobs_only_choose_alike(arch):
    """The same without GPU slots and globals."""
    network = shaken(actor_critic(NetworkSettings(arch, dim=8), JOBS_ONLY, 0))
    check(network, JOBS_ONLY, by_majority(network))


@pytest.mark.parametrize(
    ("arch", "dueling", "noisy", "atoms"),
    list(itertools.product(FOR_PICKING, [False, True], [False, True], [1, 7])),
)
def test_value_networks_choose_alike(arch, dueling, noisy, atoms):
    """Values come out of the file: of a dueling one without atoms, up to what all share."""
    settings = NetworkSettings(arch, (12, 10), dim=12, head_hidden=6 if noisy else 0)
    network = shaken(q_network(settings, LAYOUT, 0, dueling=dueling, noisy=noisy, atoms=atoms))
    network.reset_noise(torch.Generator().manual_seed(0))  # evaluation must not notice
    check(network, LAYOUT, network.values, up_to_a_constant=dueling and atoms == 1)


def test_files_carry_the_policy(tmp_path):
    """Written and read again, a policy has the same scores, and says where it comes from."""
    network = shaken(actor_critic(NetworkSettings(), LAYOUT, 0))
    policy = policy_of(network, LAYOUT, {"lookahead": "cdf"}, {"steps": 10})
    write_policy(tmp_path / "policy", policy)
    again = read_policy(tmp_path / "policy")
    assert (again.architecture, again.layout) == ("kernel", LAYOUT)
    assert (again.sight, again.about) == ({"lookahead": "cdf"}, {"steps": 10})
    seen, masks = situations(LAYOUT, rows=3)
    assert np.array_equal(scores_of(again, seen, masks), scores_of(policy, seen, masks))


def test_the_file_is_a_copy():
    """Learning on does not change a policy that was taken before."""
    network = actor_critic(NetworkSettings("mlp"), LAYOUT, 0)
    policy = policy_of(network, LAYOUT, {}, {})
    before = {name: array.copy() for name, array in policy.weights.items()}
    shaken(network)
    for name, array in policy.weights.items():
        assert np.array_equal(array, before[name])


SIGHT = ChoiceSight(menu=("fifo", "sjf", "edf", "qssf"), past=3)


def preferences_of(chooser, seen) -> np.ndarray:
    """Return the preferences of the compiled forward pass."""
    net, score_one = packed(chooser), choosing.compiled().score_one
    scratch = np.zeros(net.scratch, np.float32)
    scores = np.zeros((len(seen), len(SIGHT.menu)), np.float32)
    for row, one in enumerate(seen.numpy()):
        score_one(net.net, net.weights, one, scores[row], scratch)
    return scores


@pytest.mark.parametrize("arch", FOR_CHOOSING)
@pytest.mark.parametrize("kind", ["dueling", "plain", "noisy", "policy"])
@pytest.mark.parametrize("head_hidden", [0, 6])
def test_choosers_choose_alike(arch, kind, head_hidden, tmp_path):
    """A chooser's file prefers what its network does: values up to what all share, or logits."""
    settings = NetworkSettings(arch, (12, 10), dim=5, head_hidden=head_hidden)
    layout = SIGHT.layout()
    if kind == "policy":
        network = shaken(actor_critic(settings, layout, 0))
    else:
        network = shaken(
            q_network(settings, layout, 0, dueling=kind != "plain", noisy=kind == "noisy")
        )
    write_chooser(tmp_path / "chooser.npz", chooser_of(network, SIGHT, {"steps": 3}))
    file = read_chooser(tmp_path / "chooser.npz")
    assert (file.sight, file.about) == (SIGHT, {"steps": 3})
    seen = torch.rand(40, layout.length, generator=torch.Generator().manual_seed(1)) * 2 - 1
    masks = torch.ones(40, layout.actions, dtype=torch.bool)
    with torch.no_grad():
        theirs = network.logits(seen) if kind == "policy" else network.values(seen, masks)
    gaps = preferences_of(file, seen) - theirs.numpy()
    shared = gaps[:, :1] if kind in {"dueling", "noisy"} else 0.0
    np.testing.assert_allclose(gaps - shared, 0.0, atol=3e-5)
    best = theirs.sort(dim=1, descending=True).values
    is_clear = (best[:, 0] - best[:, 1] > 1e-4).numpy()
    mine = preferences_of(file, seen).argmax(axis=1)
    assert np.array_equal(mine[is_clear], theirs.numpy().argmax(axis=1)[is_clear])
    assert is_clear.sum() > 30
