"""What every learner with a memory must do: D3QN, Rainbow and SAC alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from yardmaster.agents import masking
from yardmaster.agents.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from yardmaster.agents.d3qn import D3QN, D3QNSettings
from yardmaster.agents.networks import NetworkSettings
from yardmaster.agents.off_policy import OffPolicyLearner, OffPolicySettings, random_legal
from yardmaster.agents.rainbow import Rainbow, RainbowSettings
from yardmaster.agents.sac import SAC, SACSettings
from yardmaster.engine.picking.layout import Layout
from yardmaster.errors import InvalidConfigError, UnknownNameError
from yardmaster.testing.toys import OneMachine

QUICK: dict[str, Any] = {
    "steps_per_update": 1_000,
    "batch_size": 64,
    "memory_size": 8_000,
    "warmup_steps": 1_000,
    "learning_rate": 2e-3,
    "tau": 0.02,
    # One network over everything does not know that jobs are alike, so it cannot be lucky.
    "network": NetworkSettings(arch="mlp", hidden=(64, 64)),
}
LEARNERS: dict[str, tuple[type[OffPolicyLearner[Any]], Any]] = {
    "d3qn": (D3QN, D3QNSettings(**QUICK, total_steps=3_000, gradient_steps=125, n_step=1)),
    "rainbow": (
        Rainbow,
        replace(
            RainbowSettings(**QUICK, total_steps=5_000, gradient_steps=200, n_step=2, atoms=21),
            learning_rate=4e-3,
        ),
    ),
    "sac": (
        SAC,
        SACSettings(
            **QUICK,
            total_steps=3_000,
            gradient_steps=125,
            alpha_start=0.2,
            alpha_learning_rate=2e-3,
        ),
    ),
}
SMALL = NetworkSettings(arch="mlp", hidden=(8,))
every_learner = pytest.mark.parametrize("name", LEARNERS)


def preferences(learner: OffPolicyLearner[Any], batch: Any) -> torch.Tensor:
    """What the learner's network makes of what a batch shows, without exploring."""
    observations, masks = torch.from_numpy(batch.observations), torch.from_numpy(batch.masks)
    learner.network.eval()
    with torch.no_grad():
        if isinstance(learner, SAC):
            return learner.network.logits(observations)
        return learner.network.values(observations, masks)


def share_of_optimum(learner: OffPolicyLearner[Any]) -> float:
    """Best possible return, by the one reached greedily on 200 unseen draws; 1 is optimal."""
    batch = OneMachine(200)
    batch.reset(1_000_000)
    best = batch.best_returns.copy()
    while not batch.terminated.any():
        masks = torch.from_numpy(batch.masks)
        batch.step(masking.greedy(preferences(learner, batch), masks).numpy())
    return float(best.sum() / batch.episode_returns.sum())


# --- learning ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
@every_learner
def test_learners_find_the_optimum(name, seed):
    """From random play to 95 % of the optimum on unseen draws, without one illegal action."""
    kind, settings = LEARNERS[name]
    learner = kind(OneMachine(16), settings, seed)  # which refuses illegal actions
    assert share_of_optimum(learner) < 0.85
    steps = 0.0
    while steps < settings.total_steps:
        steps += learner.update()["steps"]
    assert share_of_optimum(learner) >= 0.95


class OneState:
    """Earns 1 a step in a state that never changes; only the first action is legal.

    Each step takes 2 s. All episodes end after one step, in the way given, or never.
    """

    def __init__(self, ends: str) -> None:
        self.size = 4
        self.layout = Layout(2, ("there",), 0, (), 0, 2, ())
        self.observations = np.ones((4, 2), dtype=np.float32)
        self.masks = np.tile([True, False, False], (4, 1))
        self.rewards = np.zeros(4)
        self.elapsed_s = np.full(4, 2.0)
        self.terminated = np.full(4, ends == "terminated")
        self.truncated = np.full(4, ends == "truncated")
        self.final_observations = self.observations
        self.final_masks = self.masks.copy()
        if ends == "terminated":  # whether anything is still legal then must not matter
            self.final_masks[::2] = False
        self.episode_returns = np.ones(4)
        self.episode_steps = np.ones(4, dtype=np.int64)
        self.episode_noops = np.zeros(4, dtype=np.int64)
        self.groups = np.zeros(4, dtype=np.int64)
        self.group_count = 1

    def reset(self, seed: int, *, staggered: bool = False) -> None:
        """Nothing ever changes."""

    def step(self, actions: np.ndarray) -> None:
        """Earn 1."""
        assert not actions.any(), "an illegal action"
        self.rewards[:] = 1.0

    def snapshot(self) -> dict[str, Any]:
        """Nothing to keep."""
        return {}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Nothing ever changed."""


def learned_value(name: str, ends: str, **changes: Any) -> float:
    """What a learner comes to think the only legal action of `OneState` is worth."""
    kind, settings = LEARNERS[name]
    changes |= {"warmup_steps": 100, "steps_per_update": 4, "gradient_steps": 1, "tau": 0.1}
    changes |= {"network": SMALL, "learning_rate": 1e-2, "memory_size": 100}
    if name == "rainbow":
        changes |= {"v_min": 0.0, "v_max": 4.0}
    batch = OneState(ends)
    learner = kind(batch, replace(settings, **changes, batch_size=16), seed=0)
    for _ in range(200):
        scalars = learner.update()
    assert all(np.isfinite(value) for value in scalars.values())
    assert scalars["q_mean"] == pytest.approx(values_of(learner, batch), rel=0.15)
    return values_of(learner, batch)


def values_of(learner: OffPolicyLearner[Any], batch: OneState) -> float:
    if isinstance(learner, SAC):
        with torch.no_grad():
            values = learner.critics[0](torch.from_numpy(batch.observations))
    else:
        values = preferences(learner, batch)
    return float(values[0, 0]) / learner.scale


@pytest.mark.parametrize(
    ("ends", "changes", "expected"),
    [
        ("never", {"gamma": 0.5}, 2.0),
        ("truncated", {"gamma": 0.5}, 2.0),
        ("terminated", {"gamma": 0.5, "reward_scale": 3.0}, 1.0),
        ("truncated", {"gamma": 0.5, "discount_per_s": 4.0}, 1 / (1 - 0.5**0.5)),
    ],
    ids=["never", "truncated", "terminated", "per_s"],
)
@every_learner
def test_values_are_those_of_the_definition(name, ends, changes, expected):
    """Being cut off has a future and ending has none; time and decisions discount as they should.

    The value of earning 1 forever at discount d is 1 / (1 − d).
    """
    assert learned_value(name, ends, **changes) == pytest.approx(expected, rel=0.05)


@every_learner
def test_illegal_actions_do_not_count_in_targets(name):
    """However much the networks think of an illegal next action, the aim ignores it."""
    kind, settings = LEARNERS[name]
    settings = replace(settings, warmup_steps=20, batch_size=16, gamma=0.5, gradient_steps=5)
    if name == "rainbow":
        settings = replace(settings, atoms=1)
    learner = kind(OneState("never"), settings, seed=0)
    networks = learner.critics if isinstance(learner, SAC) else [learner.network]
    if isinstance(learner, SAC):
        networks = [*networks, *learner.targets, learner.network]
    else:
        networks = [*networks, learner.target]
    with torch.no_grad():
        for network in networks:
            last = network.head.stream[-1]
            getattr(last, "mean", last).bias[1:3] += 1e6
    scalars = learner.update()
    assert scalars["loss"] < 100.0
    assert abs(scalars["q_mean"]) < 10.0


@every_learner
def test_learning_rates_fall_to_their_end(name):
    """Every optimiser's rate falls linearly to its share, also after being taken up again."""
    kind, settings = LEARNERS[name]
    settings = replace(settings, total_steps=2_016, lr_end=0.25, network=SMALL, gradient_steps=4)

    def rates(learner: OffPolicyLearner[Any]) -> list[float]:
        parts = [part for part in learner.saved().values() if hasattr(part, "param_groups")]
        return [group["lr"] for part in parts for group in part.param_groups]

    learner = kind(OneMachine(16), settings, seed=0)
    first = rates(learner)
    learner.update()
    assert rates(learner) == pytest.approx(first)
    learner.update()  # begun after half of the steps
    assert rates(learner) == pytest.approx([0.625 * rate for rate in first])
    again = kind(OneMachine(16), settings, seed=0)
    again.load(learner.state())
    again.update()
    again.update()  # beyond the last step
    assert rates(again) == pytest.approx([0.25 * rate for rate in first])


@every_learner
def test_scalars_say_what_happened(name):
    """Steps, shares, episodes and what was learned, with learning figures only after warm-up."""
    kind, settings = LEARNERS[name]
    settings = replace(settings, warmup_steps=1_500, network=SMALL, gradient_steps=30)
    learner = kind(OneMachine(16), settings, seed=0)
    first, second = learner.update(), learner.update()
    assert (first["steps"], second["steps"]) == (1_008.0, 1_008.0)  # 63 whole steps of 16
    assert first["noop_share"] == 0.0
    assert first["episodes"] == 15 * 16  # of 4 decisions each
    assert -7.0 < first["episode_return"] < -4.0
    assert "loss" not in first
    explored = {"alpha", "entropy"} if name == "sac" else {"epsilon"}
    assert {"loss", "q_mean", "td_error", "memory", *explored} <= second.keys()
    assert learner.gradient_steps < settings.gradient_steps
    learner.update()
    before = learner.gradient_steps
    learner.update()
    assert learner.gradient_steps - before == settings.gradient_steps


# --- going on ------------------------------------------------------------------------------------


@pytest.mark.parametrize("updates", [1, 3], ids=["warming_up", "learning"])
@every_learner
def test_a_loaded_learner_goes_on_identically(name, updates, tmp_path: Path):
    """Saved to a file and loaded into another learner, the next updates are the same to the bit."""
    kind, settings = LEARNERS[name]
    settings = replace(
        settings, steps_per_update=170, gradient_steps=5, network=SMALL, warmup_steps=300
    )
    learner = kind(OneMachine(16), settings, seed=5)
    for _ in range(updates):
        learner.update()
    state = learner.state()
    scalars = [learner.update(), learner.update()]
    write_checkpoint(tmp_path / "last.pt", Checkpoint(name, {}, state, {}))
    torch.manual_seed(1)  # nobody's business
    other = kind(OneMachine(16), settings, seed=99)
    other.update()
    saved = read_checkpoint(tmp_path / "last.pt").state
    for _ in range(2):  # learning on must not change what was saved
        other.load(saved)
        assert [other.update(), other.update()] == scalars
    for ours, theirs in zip(learner.network.parameters(), other.network.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    ours, theirs = learner.memory.state()["columns"], other.memory.state()["columns"]
    assert all(np.array_equal(ours[column], theirs[column]) for column in ours)


@every_learner
def test_evaluating_between_updates_changes_nothing(name):
    """Whoever judges the network greedily leaves training as it was."""
    kind, settings = LEARNERS[name]
    settings = replace(
        settings, steps_per_update=170, gradient_steps=5, network=SMALL, warmup_steps=100
    )
    watched, alone = (kind(OneMachine(16), settings, seed=5) for _ in range(2))
    for _ in range(3):
        assert watched.update() == alone.update()
        share_of_optimum(watched)


# --- settings ------------------------------------------------------------------------------------


def test_random_actions_are_legal_and_alike():
    """Each legal action is drawn equally often, and no other."""
    masks = np.tile([True, False, True, True], (30_000, 1))
    counts = np.bincount(random_legal(masks, np.random.default_rng(0)), minlength=4)
    assert counts[1] == 0
    assert counts[[0, 2, 3]] == pytest.approx([10_000] * 3, rel=0.04)


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (OffPolicySettings, "batch_size", 0),
        (OffPolicySettings, "gradient_steps", -1),
        (OffPolicySettings, "gamma", 1.5),
        (OffPolicySettings, "discount_per_s", 0.0),
        (OffPolicySettings, "memory_size", 10),
        (D3QNSettings, "n_step", 0),
        (D3QNSettings, "epsilon_end", 2.0),
        (D3QNSettings, "tau", 0.0),
        (RainbowSettings, "atoms", 0),
        (RainbowSettings, "beta", -0.1),
        (SACSettings, "entropy_ratio", 1.1),
        (SACSettings, "learning_rate", float("nan")),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_impossible_settings_are_refused(kind, field, value):
    """The message names the field."""
    with pytest.raises(InvalidConfigError, match=field):
        kind(**{field: value})


@pytest.mark.parametrize(
    ("field", "value", "hint"),
    [("loss", "hubert", "huber"), ("epsilon_decay", "liner", "linear")],
    ids=["loss", "decay"],
)
def test_unknown_names_are_refused_with_a_hint(field, value, hint):
    """A misspelt choice is answered with the nearest one."""
    with pytest.raises(UnknownNameError, match=f"Did you mean '{hint}'"):
        D3QNSettings(**{field: value})
