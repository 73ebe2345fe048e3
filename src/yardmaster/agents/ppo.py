"""PPO: follows the gradient of the policy, each time only as far as the last steps can be trusted.

One update: let the policy act for a while in all environments (`_collect`), work out how much
better each decision turned out than the critic expected (`_judge`), and make good decisions more
likely and bad ones less, in a few passes over what was collected (`_learn`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from yardmaster.agents import gradients, masking
from yardmaster.agents.acting import compiled_actor
from yardmaster.agents.advantages import (
    ReturnScale,
    advantages,
    running_returns,
    step_discounts,
)
from yardmaster.agents.fixed_acting import FixedActing
from yardmaster.agents.fixed_learning import FixedLearning
from yardmaster.agents.graphs import Replays
from yardmaster.agents.losses import (
    Choices,
    Decisions,
    at,
    entropy,
    mean,
    policy_terms,
    value_loss,
)
from yardmaster.agents.networks import ActorCritic, NetworkSettings, actor_critic
from yardmaster.agents.networks.filled import Filled
from yardmaster.agents.rollouts import Rollout, flat
from yardmaster.agents.tensors import PRECISIONS, ResidentBatch
from yardmaster.envs.protocol import Batch
from yardmaster.errors import InvalidConfigError
from yardmaster.names import unknown

DECAYS = ("none", "linear", "exponential")
KL_STOPS = ("update", "actor")


@dataclass(frozen=True, slots=True)
class PPOSettings:
    """How much to collect, and how far to move on it."""

    total_steps: int = 2_000_000
    """Environment steps of the whole training: what schedules are stretched over."""
    steps_per_update: int = 8_192
    """Environment steps collected in one update, over all environments together; rounded up to
    whole steps of the batch."""
    epochs: int = 4
    """Passes over what was collected."""
    minibatches: int = 8
    """Parts of a pass, each followed by a gradient step."""
    learning_rate: float = 3e-3
    critic_learning_rate: float | None = None
    """Learning rate of the critic; None: that of the policy."""
    lr_decay: str = "linear"
    """How learning rates fall over `total_steps`: `none`, `linear`, `exponential`."""
    lr_end: float = 0.1
    """Share of the learning rates left at the end."""
    gamma: float = 0.995
    """Discount of one decision, or of `discount_per_s` seconds."""
    discount_per_s: float | None = None
    """Seconds over which the future loses one factor of `gamma`; None: every decision does. Where a
    policy may wait at will (`noop = "always"`) that would pay it for waiting: every no-op is a
    decision, and puts off what is to come."""
    gae_lambda: float = 0.95
    """How far what later decisions reveal counts for earlier ones: 0 one step, 1 to the end."""
    lambda_per_s: float | None = None
    """Seconds over which that loses one factor of `gae_lambda`; None: every decision does. A policy
    that may wait at will would look less far ahead the more often it waits, and so see ever less of
    what waiting costs."""
    clip: float = 0.2
    """How far the probability of an action may move, as a share, before the gradient stops."""
    value_clip: float | None = None
    """How far a value may move before the gradient stops; None: as far as it likes."""
    value_weight: float = 0.5
    """Weight of the critic's loss against the policy's."""
    entropy: float = 0.001
    """Bonus for each nat of the policy's entropy, at first. Jobs to choose among are many and
    differ little, so that ten times as much keeps the policy close to chance."""
    entropy_end: float | None = None
    """The same at the end, reached linearly over `total_steps`; None: no decay."""
    entropy_clamp: float | None = None
    """Nats by which a minibatch's mean entropy may differ from that at collection before the
    bonus stops acting; None: no limit."""
    target_kl: float | None = 0.03
    """Divergence (nats) from the policy that collected at which its learning stops for this
    update; None: never."""
    kl_stops: str = "update"
    """What stops then: the whole `update`, or only the `actor` while the critic learns on."""
    critic_first: int = 0
    """Updates at the beginning in which only the critic learns. For a policy that is good
    already, e.g. cloned: the mistakes of a critic that does not know it yet would spoil it."""
    max_grad_norm: float | None = 0.5
    """Longer gradients, of policy and critic each, are shortened to this length; None: never."""
    normalise_advantages: bool = True
    """Whether the advantages of an update are brought to mean 0 and spread 1."""
    normalise_rewards: bool = True
    """Whether rewards are divided by the running spread of the discounted return."""
    precision: str = "float32"
    """Numbers the networks compute in: `float32`, or on a GPU `bfloat16`, which is quicker."""
    graphs: bool | None = None
    """Whether steps are played back as CUDA graphs, which spares calling a GPU many times for
    little; None: where the network is on a GPU. Results differ in the last digits."""
    network: NetworkSettings = NetworkSettings()  # noqa: RUF009 - frozen: safe to share

    def __post_init__(self) -> None:
        """Refuse settings that make no sense."""
        if self.lr_decay not in DECAYS:
            raise unknown("lr_decay", self.lr_decay, DECAYS)
        if self.kl_stops not in KL_STOPS:
            raise unknown("kl_stops", self.kl_stops, KL_STOPS)
        if self.precision not in PRECISIONS:
            raise unknown("precision", self.precision, PRECISIONS)
        mistakes = self.mistakes()
        if mistakes:
            raise InvalidConfigError("PPOSettings", mistakes)

    def mistakes(self) -> list[str]:
        """Return what is wrong, a line each."""
        return [
            *self._unfit("at least 1", lambda value: value >= 1, "total_steps", "steps_per_update"),
            *self._unfit("at least 1", lambda value: value >= 1, "epochs", "minibatches"),
            *self._unfit("above 0", lambda value: value > 0, "learning_rate", "clip", "value_clip"),
            *self._unfit("above 0", lambda value: value > 0, "critic_learning_rate", "target_kl"),
            *self._unfit("above 0", lambda value: value > 0, "entropy_clamp", "max_grad_norm"),
            *self._unfit("above 0", lambda value: value > 0, "discount_per_s", "lambda_per_s"),
            *self._unfit("0 or more", lambda value: value >= 0, "value_weight", "critic_first"),
            *self._unfit("0 or more", lambda value: value >= 0, "entropy", "entropy_end"),
            *self._unfit("above 0, at most 1", lambda value: 0 < value <= 1, "gamma", "lr_end"),
            *self._unfit("between 0 and 1", lambda value: 0 <= value <= 1, "gae_lambda"),
        ]

    def _unfit(self, words: str, is_fit: Callable[[float], bool], *names: str) -> list[str]:
        """Return a line for each of these fields that is given and does not fit."""
        values = ((name, getattr(self, name)) for name in names)
        return [
            f"{name} = {value}: must be {words}"
            for name, value in values
            if value is not None and not is_fit(value)
        ]

    def lr_share(self, progress: float) -> float:
        """Return the share of the learning rates left after a share of the training."""
        if self.lr_decay == "linear":
            return 1.0 + (self.lr_end - 1.0) * progress
        if self.lr_decay == "exponential":
            return float(self.lr_end**progress)
        return 1.0

    def entropy_weight(self, progress: float) -> float:
        """Return the entropy bonus after a share of the training."""
        end = self.entropy if self.entropy_end is None else self.entropy_end
        return self.entropy + (end - self.entropy) * progress


PRESETS = {
    "default": PPOSettings(),
    # The numbers of the gpu-optimizer project; unlike there, advantages see where episodes end.
    "baseline_stable": PPOSettings(
        total_steps=200_000,
        steps_per_update=2048,
        epochs=2,
        minibatches=8,
        learning_rate=1e-4,
        lr_decay="exponential",
        lr_end=0.2,
        gamma=0.99,
        gae_lambda=0.95,
        clip=0.1,
        value_clip=0.1,
        value_weight=0.5,
        entropy=0.01,
        entropy_clamp=0.5,
        target_kl=0.02,
        max_grad_norm=0.5,
        normalise_rewards=False,
        network=NetworkSettings(arch="mlp", hidden=(128, 128), dim=128),
    ),
    # The numbers of RLTune: 100 episodes of 256 jobs an update, reward only at their end.
    "rltune": PPOSettings(
        total_steps=2_560_000,
        steps_per_update=25_600,
        epochs=80,
        minibatches=1,
        learning_rate=3e-4,
        critic_learning_rate=1e-3,
        lr_decay="none",
        gamma=1.0,
        gae_lambda=0.97,
        clip=0.2,
        entropy=0.0,
        target_kl=0.015,
        kl_stops="actor",
        max_grad_norm=None,
        normalise_rewards=False,
        network=NetworkSettings(arch="kernel", hidden=(32, 16, 8)),
    ),
}


class PPO:
    """Learns a policy by small trusted steps, and a critic beside it."""

    def __init__(
        self,
        batch: Batch | ResidentBatch,
        settings: PPOSettings,
        seed: int,
        network: ActorCritic | None = None,
        device: str = "cpu",
    ) -> None:
        """Begin fresh episodes in all environments.

        Args:
            batch: The environments.
            settings: How to learn.
            seed: Of the network's first weights, of the environments and of all chance.
            network: A network to begin from instead of a fresh one, e.g. cloned from a heuristic.
                It is trained in place.
            device: Where the network is and learns: `cpu`, or `cuda`, where results may differ in
                the last digits from run to run.
        """
        self.batch = batch
        self.settings = settings
        self.device = torch.device(device)
        self.network = network or actor_critic(settings.network, batch.layout, seed)
        self.network.to(self.device)
        actor = [*self.network.body.parameters(), *self.network.head.parameters()]
        rate = settings.learning_rate
        self._rates = (rate, settings.critic_learning_rate or rate)
        groups = [{"params": actor}, {"params": list(self.network.critic.parameters())}]
        self.optimiser = torch.optim.Adam(groups, lr=rate, eps=1e-5, fused=True)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.reward_scale = ReturnScale(batch.size, batch.group_count)
        self.steps = 0
        """Environment steps so far."""
        self.updates = 0
        steps = math.ceil(settings.steps_per_update / batch.size)
        self._is_half = settings.precision == "bfloat16"
        self._rollout = Rollout(
            steps,
            batch.size,
            batch.layout,
            self.device,
            is_resident=isinstance(batch, ResidentBatch),
            has_groups=batch.group_count > 1,
            dtype=torch.bfloat16 if self._is_half else torch.float32,
        )
        self._actor = None if self._is_half else compiled_actor(self.network, batch, self.device)
        self._logits = torch.zeros_like(self._rollout.masks, dtype=torch.float32)
        self.replays: Replays | None = None
        """What plays steps back, if anything does."""
        self._acting: FixedActing | None = None
        if self.device.type == "cuda" if settings.graphs is None else settings.graphs:
            self._fix_shapes()
        batch.reset(seed, staggered=True)

    def _fix_shapes(self) -> None:
        """Act and learn in shapes that never change, as CUDA graphs where there is a GPU."""
        self.replays = replays = Replays(self.device)
        self._learning = FixedLearning(
            *(self.network, self.optimiser, self.settings, replays),
            prefer=self._preferences,
            value=self._values,
        )
        if isinstance(self.batch, ResidentBatch):
            self._acting = FixedActing(
                *(self.batch, self.network, self._preferences),
                rollout=self._rollout,
                logits=self._logits,
                replays=replays,
            )

    def update(self) -> dict[str, float]:
        """Collect some steps and learn from them; return scalars by name."""
        progress = min(1.0, self.steps / self.settings.total_steps)
        for group, rate in zip(self.optimiser.param_groups, self._rates, strict=True):
            group["lr"] = rate * self.settings.lr_share(progress)
        scalars = self._collect()
        decisions = self._judge()
        scalars["learning_rate"] = self.optimiser.param_groups[0]["lr"]
        scalars["entropy"] = mean(decisions.entropies[decisions.is_choice]).item()
        unexplained = (decisions.returns - decisions.values).var(correction=0)
        spread = decisions.returns.var(correction=0).clamp_min(1e-12)
        scalars["explained_variance"] = 1.0 - (unexplained / spread).item()
        scalars |= self._learn(decisions, self.settings.entropy_weight(progress))
        self.updates += 1
        return scalars

    @torch.no_grad()
    def _collect(self) -> dict[str, float]:
        """Let the policy act; fill the rollout."""
        batch, rollout = self.batch, self._rollout
        self.steps += rollout.actions.numel()
        if self._acting is not None:
            self._acting.collect(self.generator)
            return rollout.scalars()
        if self._actor is not None:
            self._actor.refresh()
            noise = masking.log_noise(self._logits, self.generator)
        for step in range(rollout.steps):
            rollout.before(step, batch)
            masks = rollout.masks[step]
            if self._actor is not None:
                logits = self._actor.logits()
                actions = (logits - noise[step]).argmax(dim=-1)
            else:
                logits = self._preferences(rollout.observations[step], masks)
                actions = masking.sample(logits, masks, self.generator)
            self._logits[step] = logits
            if isinstance(batch, ResidentBatch):
                batch.step(actions)
            else:
                batch.step(actions.cpu().numpy())
            rollout.after(step, batch, actions)
        return rollout.scalars()

    def _preferences(self, observations: Any, masks: Tensor, room: int | None = None) -> Tensor:
        with self._precision():
            return self.network.logits(observations, masks, room).float()

    def _values(self, summaries: Any) -> Tensor:
        with self._precision():
            return self.network.critic.judge(summaries).float()

    def _precision(self) -> torch.autocast:
        # What a graph computes with must not be remembered from before it.
        is_remembering = self.replays is None
        return torch.autocast(
            *(self.device.type, torch.bfloat16),
            enabled=self._is_half,
            cache_enabled=is_remembering,
        )

    @torch.no_grad()
    def _judge(self) -> Decisions:
        """Compare what came of each decision with what the critic expected."""
        rollout, settings = self._rollout, self.settings
        rewards, ended = rollout.rewards, rollout.ended
        discounts = step_discounts(rollout.elapsed_s, settings.gamma, settings.discount_per_s)
        if settings.normalise_rewards:
            add_up = self._played_back("returns", running_returns)
            self.reward_scale.see(rewards, discounts, ended, rollout.groups, add_up)
            rewards = rewards / self._spreads()
        masks, actions = rollout.masks.flatten(0, 1), rollout.actions.flatten()
        seen = rollout.observations.flatten(0, 1)
        if self.replays is None:
            seen = self.network.body.parts.trimmed(seen, masks)
        critic = self.network.critic
        summaries = critic.summary(seen)
        if self.replays is not None and isinstance(summaries, Filled):
            summaries = seen
        values, following = rollout.values(self._values, summaries, critic.summary)
        traces = step_discounts(rollout.elapsed_s, settings.gae_lambda, settings.lambda_per_s)
        estimate = self._played_back("advantages", lambda one, *all_: advantages(*all_, trace=one))
        surplus = estimate(traces, rewards, values, following, discounts, ended)
        is_choice = masks.sum(dim=-1) > 1
        expected, gains = flat(values).to(self.device), flat(surplus).to(self.device)
        returns = expected + gains
        if settings.normalise_advantages:
            of_choices = gains[is_choice]
            spread = of_choices.std(correction=0) if len(of_choices) else 1.0
            gains = (gains - mean(of_choices)) / (spread + 1e-8)
        log_probs, entropies = self._certainties(masks, actions, is_choice)
        shown = summaries[: len(actions)]
        return Decisions(
            observations=shown if isinstance(shown, Filled) else seen[: len(actions)],
            masks=masks,
            is_choice=is_choice,
            actions=actions,
            log_probs=log_probs,
            entropies=entropies,
            values=expected,
            advantages=gains,
            returns=returns,
            summaries=shown,
        )

    def _played_back(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function of tensors as a graph of itself where there are graphs."""
        if self.replays is None or self._acting is None:
            return function
        return partial(self.replays.call, name, function)

    def _certainties(
        self, masks: Tensor, actions: Tensor, is_choice: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the log-probabilities of actions, and the entropies, of the policy that acted.

        Where there was no choice both are 0, and need no computing.
        """
        rows = is_choice.nonzero().squeeze(1)
        logits, legal = (
            self._logits.flatten(0, 1).index_select(0, rows),
            masks.index_select(0, rows),
        )
        shares = masking.log_probs(logits, legal)
        nothing = self._logits.new_zeros(len(actions))
        chosen = at(shares, actions.index_select(0, rows))
        return nothing.index_copy(0, rows, chosen), nothing.index_copy(0, rows, entropy(shares))

    def _spreads(self) -> Any:
        """Return what the rewards of each step are divided by."""
        groups, scales = self._rollout.groups, self.reward_scale.scales
        if groups is None:
            return scales[0]
        if isinstance(groups, Tensor):
            return torch.from_numpy(scales).to(groups.device, torch.float32)[groups]
        return scales[groups]

    def _learn(self, decisions: Decisions, entropy_weight: float) -> dict[str, float]:
        """Take gradient steps on minibatches until the passes are over or trust ends."""
        settings = self.settings
        is_actor_learning = self.updates >= settings.critic_first
        if self.replays is not None:
            return self._learning.learn(
                *(decisions, self.generator),
                rates=[group["lr"] for group in self.optimiser.param_groups],
                entropy_weight=entropy_weight,
                is_actor_learning=is_actor_learning,
            )
        figures: dict[str, float] = {"policy_loss": 0.0, "kl": 0.0, "clip_share": 0.0}
        losses: list[float] = []
        value_losses: list[float] = []
        for rows in self._minibatches(decisions):
            value_loss = self._value_loss(decisions, rows)
            loss = settings.value_weight * value_loss
            if is_actor_learning:
                policy_loss, figures = self._policy_loss(decisions, rows, entropy_weight)
                if settings.target_kl is None or figures["kl"] <= settings.target_kl:
                    loss = loss + policy_loss
                elif settings.kl_stops == "actor":
                    is_actor_learning = False
                else:
                    break
            self._descend(loss)
            losses.append(loss.item())
            value_losses.append(value_loss.item())
        return figures | {
            "loss": float(np.mean(losses)),
            "value_loss": float(np.mean(value_losses)),
            "gradient_steps": float(len(losses)),
        }

    def _minibatches(self, decisions: Decisions) -> Iterator[Tensor]:
        """Yield the numbers of the decisions of each minibatch."""
        rows = len(decisions.actions)
        for _ in range(self.settings.epochs):
            shuffled = torch.randperm(rows, generator=self.generator, device=self.device)
            yield from shuffled.chunk(self.settings.minibatches)

    def _policy_loss(
        self, decisions: Decisions, rows: Tensor, entropy_weight: float
    ) -> tuple[Tensor, dict[str, float]]:
        """Return the clipped loss less the entropy bonus, and figures on how far the policy is.

        All are means over those of the decisions in which there was a choice.
        """
        part = Choices.of(decisions, rows.masked_select(decisions.is_choice.index_select(0, rows)))
        shares = masking.log_probs(self._preferences(part.observations, part.masks), part.masks)
        settings = self.settings
        terms = policy_terms(shares, part, mean, clip=settings.clip, clamp=settings.entropy_clamp)
        figures = {
            "policy_loss": terms.loss.item(),
            "kl": terms.kl.item(),
            "clip_share": terms.clip_share.item(),
        }
        return terms.loss - entropy_weight * terms.bonus, figures

    def _value_loss(self, decisions: Decisions, rows: Tensor) -> Tensor:
        return value_loss(
            self._values(decisions.summaries.index_select(0, rows)),
            decisions.returns.index_select(0, rows),
            decisions.values.index_select(0, rows),
            self.settings.value_clip,
        )

    def _descend(self, loss: Tensor) -> None:
        """Take one step of the optimiser down the gradient of a loss."""
        groups = [group["params"] for group in self.optimiser.param_groups]
        for weights in groups:
            gradients.forget(weights)
        torch.autograd.backward(loss)
        if self.settings.max_grad_norm is not None:
            # Apart: they are separate networks, and a surprised critic must not hold up the policy.
            for weights in groups:
                gradients.shorten(weights, self.settings.max_grad_norm)
        self.optimiser.step()

    def state(self) -> dict[str, Any]:
        """Return everything needed to go on from here, the environments included."""
        kept = {
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "generator": self.generator.get_state(),
            "reward_scale": self.reward_scale.state(),
            "steps": self.steps,
            "updates": self.updates,
            "batch": self.batch.snapshot(),
        }
        return copy.deepcopy(kept)  # learning on must not change what was saved

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state; updates then have the same results."""
        self.network.load_state_dict(state["network"])
        if self.replays is None or not gradients.take_up(self.optimiser, state["optimiser"]):
            # A copy: it would go on in the very numbers that were saved.
            self.optimiser.load_state_dict(copy.deepcopy(state["optimiser"]))
            if self.replays is not None:
                self.replays.forget()  # the optimiser's numbers are elsewhere now
        self.generator.set_state(state["generator"])
        self.reward_scale.load(state["reward_scale"])
        self.steps = state["steps"]
        self.updates = state["updates"]
        self.batch.restore(state["batch"])
