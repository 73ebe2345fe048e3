"""PPO: that it learns what is known to be best, and keeps its promises on the way."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch

from yardmaster.agents.cloning import Choose
from yardmaster.agents.learners import greedy
from yardmaster.agents.losses import Decisions
from yardmaster.agents.networks import NetworkSettings, actor_critic
from yardmaster.agents.ppo import PPO, PRESETS, PPOSettings
from yardmaster.engine.picking.layout import Layout
from yardmaster.errors import InvalidConfigError, UnknownNameError
from yardmaster.testing.toys import OneMachine

# One network over everything does not know that jobs are alike, so it cannot be lucky.
MLP = NetworkSettings(arch="mlp", hidden=(64, 64))
SMALL = NetworkSettings(arch="kernel", hidden=(8,))
QUICK = PPOSettings(
    total_steps=16_384, steps_per_update=1_024, minibatches=4, learning_rate=3e-3, network=MLP
)

ENDLESS = replace(QUICK, total_steps=12_288, gamma=0.8, normalise_rewards=False, entropy=0.001)


class Upkeep:
    """A machine that earns 1 a step as it is; a step without pay makes it earn 2 ever after.

    A limit cuts every episode after two steps, but the work would have gone on. So tuning the
    machine is best in any step: worth 2 γ / (1 − γ), against less for never doing it. Whoever
    takes the cut for the end sees two steps only, in which tuning pays nothing.

    Two job tokens, each (can be picked, pay): to work and to tune. The no-op is never legal.
    """

    size: int
    limit = 2

    def __init__(self, size: int) -> None:
        self.size = size
        self.layout = Layout(2, ("legal", "pay"), 0, ("tuned",), 0, 4, (4,))
        self.observations = np.zeros((size, 5), dtype=np.float32)
        self.masks = np.zeros((size, 3), dtype=np.bool_)
        self.rewards = np.zeros(size)
        self.terminated = np.zeros(size, dtype=np.bool_)
        self.truncated = np.zeros(size, dtype=np.bool_)
        self.elapsed_s = np.ones(size)
        self.final_observations = self.observations.copy()
        self.final_masks = self.masks.copy()
        self.episode_returns = np.zeros(size)
        self.episode_steps = np.full(size, self.limit)
        self.episode_noops = np.zeros(size, dtype=np.int64)
        self.groups = np.zeros(size, dtype=np.int64)
        self.group_count = 1
        self.is_tuned = np.zeros(size, dtype=np.bool_)
        self.done = 0

    def look(self) -> None:
        """Write what is seen."""
        self.masks[:, 0] = True
        self.masks[:, 1] = ~self.is_tuned
        self.observations[:, 0] = 1.0
        self.observations[:, 1] = (1.0 + self.is_tuned) / 2.0
        self.observations[:, 2] = ~self.is_tuned
        self.observations[:, 4] = self.is_tuned

    def reset(self, seed: int, *, staggered: bool = False) -> None:  # noqa: ARG002 - no chance in it
        """Begin anew."""
        self.done = 0
        self.is_tuned[:] = False
        self.look()

    def step(self, actions: np.ndarray) -> None:
        """Work or tune."""
        assert self.masks[np.arange(self.size), actions].all()
        self.rewards[:] = np.where(actions == 1, 0.0, 1.0 + self.is_tuned)
        self.is_tuned |= actions == 1
        self.done += 1
        self.look()
        self.truncated[:] = self.done % self.limit == 0
        if self.truncated.any():
            self.final_observations[:] = self.observations
            self.final_masks[:] = self.masks
            self.is_tuned[:] = False
            self.look()

    def snapshot(self) -> dict[str, Any]:
        """Return the state."""
        return {"tuned": self.is_tuned.copy(), "done": self.done}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.is_tuned[:] = snapshot["tuned"]
        self.done = snapshot["done"]
        self.look()


class RandomMasks(OneMachine):
    """One machine that also leaves out jobs at random, and checks that nobody picks those."""

    def __init__(self, size: int) -> None:
        super().__init__(size, jobs=6)
        self.all_waiting = np.zeros_like(self.masks)
        self.hiding = np.random.default_rng(5)

    def reset(self, seed: int, *, staggered: bool = False) -> None:
        """Begin anew."""
        super().reset(seed, staggered=staggered)
        self.hide()

    def hide(self) -> None:
        """Make some waiting jobs illegal, but one."""
        self.all_waiting[:] = self.masks
        keep = np.where(self.masks, self.hiding.random(self.masks.shape), -1.0).argmax(axis=1)
        self.masks &= self.hiding.random(self.masks.shape) < 0.4
        self.masks[np.arange(self.size), keep] = True

    def step(self, actions: np.ndarray) -> None:
        """Run one job in every environment."""
        assert self.masks[np.arange(self.size), actions].all(), "an illegal action"
        self.masks[:] = self.all_waiting
        super().step(actions)
        self.hide()


def trained(learner: PPO) -> PPO:
    while learner.steps < learner.settings.total_steps:
        learner.update()
    return learner


def share_of_optimum(choose: Choose) -> float:
    """Best possible return, by the one reached greedily on 256 unseen draws; 1 is optimal."""
    batch = OneMachine(256)
    batch.reset(1_000_000)
    best = batch.best_returns.copy()
    while not batch.terminated.any():
        batch.step(choose(batch))
    return float(best.sum() / batch.episode_returns.sum())


def weights(learner: PPO, part: str = "") -> dict[str, torch.Tensor]:
    state = learner.network.state_dict()
    return {name: tensor.clone() for name, tensor in state.items() if name.startswith(part)}


def are_equal(one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


# --- learning ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_ppo_finds_the_optimum(seed):
    """From random play to 97 % of the optimum on unseen draws in 16,384 steps."""
    learner = PPO(OneMachine(16), QUICK, seed)
    assert share_of_optimum(greedy(learner.network)) < 0.9
    assert share_of_optimum(greedy(trained(learner).network)) >= 0.97


def test_ppo_learns_with_discounting_in_time():
    """Discounting by the second instead of by the decision finds the same optimum."""
    settings = replace(QUICK, gamma=0.9, discount_per_s=200.0)
    assert share_of_optimum(greedy(trained(PPO(OneMachine(16), settings, 0)).network)) >= 0.97


def test_lambda_can_be_counted_by_time():
    """λ per aeon forgets nothing, as λ = 1 does; per decision the same λ learns something else."""

    def learnt(**changes: float) -> Mapping[str, torch.Tensor]:
        learner = PPO(OneMachine(16), replace(QUICK, **changes), 0)
        learner.update()
        return learner.network.state_dict()

    aeon = learnt(gae_lambda=0.5, lambda_per_s=1e30)
    assert are_equal(aeon, learnt(gae_lambda=1.0))
    assert not are_equal(aeon, learnt(gae_lambda=0.5))


@pytest.mark.parametrize("preset", ["baseline_stable", "rltune"])
def test_presets_of_other_systems_learn(preset):
    """Their numbers, on fewer steps at a time, are on their way to the optimum too."""
    scaled = replace(
        PRESETS[preset], total_steps=8_192, steps_per_update=512, learning_rate=3e-3, epochs=8
    )
    learner = PPO(OneMachine(16), replace(scaled, network=MLP), 0)
    assert share_of_optimum(greedy(trained(learner).network)) >= 0.95


def values_of_upkeep(learner: PPO) -> list[float]:
    """What the critic thinks of a machine as it is, and of a tuned one."""
    batch = Upkeep(2)
    batch.is_tuned[:] = [False, True]
    batch.look()
    with torch.no_grad():
        values = learner.network.value(torch.from_numpy(batch.observations))
    return values.tolist()


def test_a_limit_is_not_taken_for_the_end():
    """Cut off after two steps, PPO still learns what the machine is worth for ever."""
    settings = replace(QUICK, total_steps=20_480, gamma=0.8, normalise_rewards=False, entropy=0.001)
    learner = trained(PPO(Upkeep(16), settings, 0))
    batch = Upkeep(1)
    batch.reset(0)
    assert greedy(learner.network)(batch).tolist() == [1]
    assert values_of_upkeep(learner) == pytest.approx([8.0, 10.0], rel=0.05)


# --- promises ------------------------------------------------------------------------------------


def test_no_illegal_action_is_ever_taken():
    """Under masks that change at random, sampling and learning stay within them, and finite."""
    settings = replace(QUICK, total_steps=4_096, learning_rate=1e-2)
    learner = PPO(RandomMasks(16), settings, 0)
    while learner.steps < settings.total_steps:
        assert all(np.isfinite(value) for value in learner.update().values())


def test_decisions_without_a_choice_say_nothing_about_the_policy():
    """Where only one action is ever legal the critic learns, and the policy stays as it was."""
    settings = replace(QUICK, steps_per_update=64, network=SMALL, entropy=1.0)
    learner = PPO(OneMachine(8, jobs=1), settings, 0)
    first = weights(learner)
    scalars = learner.update()
    assert all(np.isfinite(value) for value in scalars.values())
    assert scalars["entropy"] == scalars["policy_loss"] == scalars["kl"] == 0.0
    after = weights(learner)
    moved = {name for name in first if not torch.equal(first[name], after[name])}
    assert moved
    assert all(name.startswith("critic") for name in moved)


@pytest.mark.parametrize("preset", PRESETS)
def test_resuming_changes_nothing(preset):
    """A saved and loaded learner has the same scalars and weights as one never interrupted."""
    settings = replace(
        PRESETS[preset], total_steps=600, steps_per_update=96, epochs=2, network=SMALL
    )
    learner = PPO(OneMachine(6), settings, 3)
    for _ in range(2):
        learner.update()
    state = learner.state()
    uninterrupted = [learner.update() for _ in range(3)]
    resumed = PPO(OneMachine(6), settings, 99)
    resumed.load(state)
    assert [resumed.update() for _ in range(3)] == uninterrupted
    assert are_equal(weights(resumed), weights(learner))


class Dearer(OneMachine):
    """The same machine in another currency, exactly convertible."""

    def step(self, actions: np.ndarray) -> None:
        """Run one job in every environment."""
        super().step(actions)
        self.rewards *= 1_024.0


def test_units_of_the_reward_do_not_matter():
    """Divided by their spread, rewards 1,024 times as large teach exactly the same."""
    settings = replace(QUICK, steps_per_update=128, network=SMALL)
    runs = []
    for batch in (OneMachine(8), Dearer(8)):
        learner = PPO(batch, settings, 0)
        runs.append([learner.update()["value_loss"] for _ in range(3)])
    assert runs[0] == runs[1]


def test_same_seed_same_run_and_other_seed_another():
    """Runs repeat exactly, whatever the global generators are at."""
    settings = replace(QUICK, steps_per_update=128, network=SMALL)
    runs = []
    for seed in (1, 1, 2):
        torch.manual_seed(len(runs))
        np.random.seed(len(runs))  # noqa: NPY002 - the point is that nobody uses it
        runs.append(weights_after_one_update(settings, seed))
    assert are_equal(runs[0], runs[1])
    assert not are_equal(runs[1], runs[2])


def weights_after_one_update(settings: PPOSettings, seed: int) -> dict[str, torch.Tensor]:
    learner = PPO(OneMachine(8), settings, seed)
    learner.update()
    return weights(learner)


def test_target_kl_stops_the_update():
    """Once the policy has moved too far, no further gradient step is taken."""
    settings = replace(QUICK, target_kl=1e-7, epochs=3)
    scalars = PPO(OneMachine(16), settings, 0).update()
    # The first minibatch is seen by the policy that collected it; the second no longer is.
    assert scalars["gradient_steps"] == 1.0
    assert scalars["kl"] > 1e-7
    free = PPO(OneMachine(16), replace(settings, target_kl=None), 0).update()
    assert free["gradient_steps"] == 12.0


def test_target_kl_can_stop_the_actor_alone():
    """The critic then learns on, and the policy stays where it was."""
    settings = replace(QUICK, target_kl=1e-7, epochs=3)
    both = PPO(OneMachine(16), settings, 0)
    actor_only = PPO(OneMachine(16), replace(settings, kl_stops="actor"), 0)
    both.update()
    assert actor_only.update()["gradient_steps"] == 12.0
    for part in ("body", "head"):
        assert are_equal(weights(both, part), weights(actor_only, part))
    assert not are_equal(weights(both, "critic"), weights(actor_only, "critic"))


def test_the_critic_can_learn_first():
    """For the updates asked for the policy does not move, and after them it does."""
    learner = PPO(OneMachine(16), replace(QUICK, critic_first=2), 0)
    first = weights(learner)
    for _ in range(2):
        learner.update()
    for part in ("body", "head"):
        fresh = {name: tensor for name, tensor in first.items() if name.startswith(part)}
        assert are_equal(weights(learner, part), fresh)
    moved = weights(learner, "critic")
    assert not any(torch.equal(moved[name], first[name]) for name in moved)
    learner.update()
    assert not torch.equal(weights(learner)["head.stream.0.weight"], first["head.stream.0.weight"])


def test_a_given_network_is_the_one_that_learns():
    """Training goes on from its weights, in place."""
    batch = OneMachine(8)
    network = actor_critic(SMALL, batch.layout, 7)
    before = copy.deepcopy(network.state_dict())
    learner = PPO(batch, replace(QUICK, steps_per_update=64), 0, network=network)
    assert learner.network is network
    assert are_equal(weights(learner), before)
    learner.update()
    assert not are_equal(weights(learner), before)


def test_actor_and_critic_learn_at_their_own_rates():
    """Both fall by the same schedule from where each begins."""
    settings = replace(
        *(QUICK,),
        total_steps=2_048,
        critic_learning_rate=1e-2,
        lr_decay="exponential",
        lr_end=0.25,
    )
    learner = PPO(OneMachine(16), settings, 0)
    rates = []
    for _ in range(3):
        scalars = learner.update()
        rates.append([group["lr"] for group in learner.optimiser.param_groups])
        assert scalars["learning_rate"] == rates[-1][0]
    assert rates == pytest.approx(
        np.array([[3e-3, 1e-2], [1.5e-3, 5e-3], [0.75e-3, 2.5e-3]]), rel=1e-9
    )


@pytest.mark.parametrize(
    ("decay", "expected"), [("none", [1, 1, 1]), ("linear", [1, 0.6, 0.2])], ids=["none", "linear"]
)
def test_learning_rates_fall_as_asked(decay, expected):
    """From all to the share left at the end."""
    settings = PPOSettings(lr_decay=decay, lr_end=0.2)
    assert [settings.lr_share(at) for at in (0.0, 0.5, 1.0)] == pytest.approx(expected)


def test_the_entropy_bonus_fades_as_asked():
    """Linearly to its end, or not at all."""
    fading = PPOSettings(entropy=0.02, entropy_end=0.01)
    assert [fading.entropy_weight(at) for at in (0.0, 0.5, 1.0)] == pytest.approx(
        [0.02, 0.015, 0.01]
    )
    assert PPOSettings(entropy=0.02).entropy_weight(1.0) == 0.02


def decisions(learner: PPO, rows: int, **changes: torch.Tensor) -> Decisions:
    """Decisions of a learner's own in a fresh batch, judged as it happens to."""
    batch = OneMachine(rows)
    batch.reset(11)
    observations, masks = torch.from_numpy(batch.observations), torch.from_numpy(batch.masks)
    with torch.no_grad():
        shares = learner.network.logits(observations).masked_fill(~masks, -1e9).log_softmax(1)
        values = learner.network.value(observations)
    columns = {
        "observations": observations,
        "masks": masks,
        "is_choice": torch.ones(rows, dtype=torch.bool),
        "actions": torch.zeros(rows, dtype=torch.int64),
        "log_probs": shares[:, 0],
        "entropies": -(shares.exp() * shares)[:, :-1].sum(dim=1),
        "values": values,
        "advantages": torch.ones(rows),
        "returns": values.clone(),
        "summaries": learner.network.critic.summary(observations),
    }
    return Decisions(**(columns | changes))


def gradient_size(loss: torch.Tensor, learner: PPO) -> float:
    learner.optimiser.zero_grad()
    torch.autograd.backward(loss)
    parts = [part.grad for part in learner.network.parameters() if part.grad is not None]
    return float(sum(part.abs().sum() for part in parts))


@pytest.mark.parametrize(
    ("moved", "advantage", "is_pulled"),
    [(1.5, 1.0, False), (1.5, -1.0, True), (0.5, 1.0, True), (0.5, -1.0, False), (1.0, 1.0, True)],
)
def test_the_policy_is_not_pulled_further_than_the_clip(moved, advantage, is_pulled):
    """Beyond the clip the gradient is zero, unless it leads back."""
    learner = PPO(OneMachine(4), replace(QUICK, clip=0.2), 0)
    own = decisions(learner, 8)
    part = replace(
        own,
        log_probs=own.log_probs - np.log(moved),
        advantages=torch.full((8,), advantage),
    )
    loss, figures = learner._policy_loss(part, torch.arange(8), 0.0)
    assert (gradient_size(loss, learner) > 1e-6) == is_pulled
    assert figures["clip_share"] == float(moved != 1.0)
    assert figures["kl"] == pytest.approx(moved - 1.0 - np.log(moved), abs=1e-5)


@pytest.mark.parametrize(("returns", "is_pulled"), [(9.0, False), (-9.0, True)])
def test_values_are_not_pulled_further_than_their_clip(returns, is_pulled):
    """A value that has moved by more than the clip towards its goal gets no more gradient."""
    learner = PPO(OneMachine(4), replace(QUICK, value_clip=0.5), 0)
    own = decisions(learner, 8)
    part = replace(own, values=own.values - 1.0, returns=torch.full((8,), returns))
    assert (gradient_size(learner._value_loss(part, torch.arange(8)), learner) > 1e-6) == is_pulled


@pytest.mark.parametrize(("jump", "is_pulled"), [(0.4, True), (0.6, False)])
def test_the_entropy_bonus_stops_at_its_clamp(jump, is_pulled):
    """When entropy has changed by more than the clamp the bonus has no gradient."""
    learner = PPO(OneMachine(4), replace(QUICK, entropy_clamp=0.5), 0)
    own = decisions(learner, 8)
    part = replace(own, entropies=own.entropies - jump, advantages=torch.zeros(8))
    loss, _ = learner._policy_loss(part, torch.arange(8), 1.0)
    assert (gradient_size(loss, learner) > 1e-9) == is_pulled


def test_scalars_tell_what_happened():
    """Everything a log needs, and the no-op's share and the mean return are those of the toy."""
    scalars = PPO(OneMachine(16), QUICK, 0).update()
    assert scalars.keys() >= {
        *("steps", "loss", "policy_loss", "value_loss", "entropy", "kl", "clip_share"),
        *("explained_variance", "noop_share", "learning_rate", "episode_return", "episodes"),
    }
    assert scalars["steps"] == 1_024.0
    assert scalars["episodes"] == 256.0
    assert scalars["noop_share"] == 0.0
    # A policy without preferences: mean of ln 4, ln 3 and ln 2; the last pick is no choice.
    assert scalars["entropy"] == pytest.approx(np.log([4, 3, 2]).mean(), abs=0.02)
    assert -6.0 < scalars["episode_return"] < -4.5


def test_settings_that_make_no_sense_are_refused():
    """All mistakes are listed at once, and misspelt names get a suggestion."""
    with pytest.raises(InvalidConfigError) as error:
        PPOSettings(clip=0.0, gamma=1.5, epochs=0, entropy=-1.0, gae_lambda=2.0)
    assert len(error.value.mistakes) == 5
    with pytest.raises(UnknownNameError, match="Did you mean 'linear'"):
        PPOSettings(lr_decay="linar")
    with pytest.raises(UnknownNameError, match="Did you mean 'actor'"):
        PPOSettings(kl_stops="acter")


def test_settings_are_plain_values():
    """So that a TOML file can hold them: numbers, words, nothing, and the network's own."""
    for settings in PRESETS.values():
        values = [getattr(settings, item.name) for item in fields(settings)]
        assert all(
            isinstance(value, int | float | str | None | NetworkSettings) for value in values
        )


# --- the same as others find ---------------------------------------------------------------------


def masked_ppo_of_others(make_batch: Callable[[], Any], gamma: float, steps: int) -> Choose:
    """What sb3-contrib's MaskablePPO learns on the same task: its greedy policy."""
    gymnasium = pytest.importorskip("gymnasium")
    sb3_contrib = pytest.importorskip("sb3_contrib")
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")

    class Alone(gymnasium.Env):
        """A batch of one environment as Gymnasium knows environments."""

        def __init__(self, seed: int) -> None:
            self.batch = make_batch()
            layout = self.batch.layout
            self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (layout.length,))
            self.action_space = gymnasium.spaces.Discrete(layout.actions)
            self.batch.reset(seed)

        def reset(self, *, seed: int | None = None, options: Any = None):
            super().reset(seed=seed, options=options)
            return self.batch.observations[0].copy(), {}  # the batch has begun by itself

        def step(self, action: int):
            batch = self.batch
            batch.step(np.array([action]))
            terminated, truncated = bool(batch.terminated[0]), bool(batch.truncated[0])
            ended = terminated or truncated
            seen = (batch.final_observations if ended else batch.observations)[0].copy()
            return seen, float(batch.rewards[0]), terminated, truncated, {}

        def action_masks(self) -> np.ndarray:
            return self.batch.masks[0].copy()

    seeds = range(16)
    model = sb3_contrib.MaskablePPO(
        "MlpPolicy",
        vec_env.DummyVecEnv([lambda seed=seed: Alone(seed) for seed in seeds]),
        n_steps=64,
        batch_size=256,
        n_epochs=4,
        gamma=gamma,
        learning_rate=3e-3,
        ent_coef=0.001,
        policy_kwargs={"net_arch": [64, 64]},
        seed=0,
        device="cpu",
    )
    model.learn(steps)

    def choose(batch: Any) -> np.ndarray:
        actions, _ = model.predict(batch.observations, action_masks=batch.masks, deterministic=True)
        return actions

    return choose


def test_ours_and_maskable_ppo_agree_on_one_machine():
    """Both reach 97 % of the optimum, and mostly pick the same job on unseen draws."""
    theirs = masked_ppo_of_others(lambda: OneMachine(1), gamma=0.99, steps=16_384)
    network = trained(PPO(OneMachine(16), QUICK, 0)).network
    assert share_of_optimum(theirs) >= 0.97
    assert share_of_optimum(greedy(network)) >= 0.97
    batch = OneMachine(256)
    batch.reset(2_000_000)
    assert (theirs(batch) == greedy(network)(batch)).mean() >= 0.85


def test_ours_and_maskable_ppo_agree_beyond_a_limit():
    """Both tune the machine at once: neither takes the limit for the end."""
    theirs = masked_ppo_of_others(lambda: Upkeep(1), gamma=0.8, steps=6_144)
    ours = greedy(trained(PPO(Upkeep(16), ENDLESS, 0)).network)
    for choose in (theirs, ours):
        batch = Upkeep(3)
        batch.reset(0)
        first = choose(batch)
        batch.step(first)
        assert first.tolist() == [1, 1, 1]
        assert choose(batch).tolist() == [0, 0, 0]
