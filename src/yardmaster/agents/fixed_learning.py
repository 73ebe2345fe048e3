"""PPO's passes over what was collected, in shapes that never change, so they can be played back.

The numbers are those of `PPO._learn`, up to rounding. What there is a choice of the host, is here a
number on the device: decisions without a choice get weight 0 instead of being left out, and a
policy that has moved too far is held by the optimiser instead of by leaving the loop. The host
looks once a pass: how much room legal jobs need, and whether learning has stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, Protocol

import torch
from torch import Tensor

from yardmaster.agents import gradients, masking
from yardmaster.agents.graphs import Replays, room_for
from yardmaster.agents.losses import Choices, Decisions, policy_terms, value_loss
from yardmaster.agents.networks import ActorCritic


class Limits(Protocol):
    """Those of PPO's settings that gradient steps depend on; see there."""

    @property
    def epochs(self) -> int: ...  # noqa: D102
    @property
    def minibatches(self) -> int: ...  # noqa: D102
    @property
    def clip(self) -> float: ...  # noqa: D102
    @property
    def value_clip(self) -> float | None: ...  # noqa: D102
    @property
    def value_weight(self) -> float: ...  # noqa: D102
    @property
    def entropy_clamp(self) -> float | None: ...  # noqa: D102
    @property
    def target_kl(self) -> float | None: ...  # noqa: D102
    @property
    def kl_stops(self) -> str: ...  # noqa: D102
    @property
    def max_grad_norm(self) -> float | None: ...  # noqa: D102


class FixedLearning:
    """Gradient steps on minibatches of decisions, of a policy and its critic."""

    def __init__(
        self,
        network: ActorCritic,
        optimiser: torch.optim.Adam,
        settings: Limits,
        replays: Replays,
        *,
        prefer: Callable[[Any, Tensor, int | None], Tensor],
        value: Callable[[Any], Tensor],
    ) -> None:
        """Keep what is read and written.

        Args:
            network: What learns.
            optimiser: Of two groups, the policy's weights and the critic's; fused.
            settings: How far to move.
            replays: What plays back.
            prefer: From observations, masks and room for legal jobs to logits.
            value: From what the critic is shown to values.
        """
        self._network, self._optimiser, self._settings = network, optimiser, settings
        self._replays, self._prefer, self._value = replays, prefer, value
        device = next(network.parameters()).device

        def number(count: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros((count,) if count else (), dtype=dtype, device=device)

        self._rates = [number() for _ in optimiser.param_groups]
        self._entropy_weight = number()
        self._is_held = [number() for _ in optimiser.param_groups]
        """1 where the policy, or the critic, learns no more in this update."""
        self._figures = number(3, torch.float64)
        """Policy's loss, divergence and share of clipped decisions of the last minibatch."""
        self._sums = number(3, torch.float64)
        """Gradient steps, and the sums of their losses and of the critic's."""
        self._rows: dict[int, Tensor] = {}

    def learn(
        self,
        decisions: Decisions,
        generator: torch.Generator,
        *,
        rates: Sequence[float],
        entropy_weight: float,
        is_actor_learning: bool,
    ) -> dict[str, float]:
        """Take gradient steps until the passes are over or trust ends; return figures by name."""
        settings, held = self._settings, self._held(decisions)
        for number, rate in zip(self._rates, rates, strict=True):
            number.fill_(rate)
        self._entropy_weight.fill_(entropy_weight)
        for number in (*self._is_held, self._figures, self._sums):
            number.zero_()
        jobs = self._jobs(held) if is_actor_learning else None
        can_stop = settings.target_kl is not None and settings.kl_stops == "update"
        for turn in range(settings.epochs):
            if turn and can_stop and is_actor_learning and self._is_held[1].item():
                break
            shuffled = torch.randperm(
                len(held.actions), generator=generator, device=held.actions.device
            )
            parts = shuffled.chunk(settings.minibatches)
            most = None if jobs is None else most_of_any(jobs.index_select(0, shuffled), parts)
            for rows in parts:
                room = None if most is None else room_for(most, len(rows) * self._window(held))
                self._step(held, rows, room, is_actor_learning=is_actor_learning)
        policy_loss, kl, clip_share, steps, losses, value_losses = torch.cat(
            [self._figures, self._sums]
        ).tolist()
        return {
            "policy_loss": policy_loss,
            "kl": kl,
            "clip_share": clip_share,
            "loss": losses / steps if steps else float("nan"),
            "value_loss": value_losses / steps if steps else float("nan"),
            "gradient_steps": steps,
        }

    def _held(self, decisions: Decisions) -> Decisions:
        """Return the decisions in the memory that graphs read."""
        columns = {field.name: getattr(decisions, field.name) for field in fields(Decisions)}
        return Decisions(**{name: self._replays.hold(name, one) for name, one in columns.items()})

    @staticmethod
    def _window(held: Decisions) -> int:
        return held.masks.shape[1] - 1

    def _jobs(self, held: Decisions) -> Tensor | None:
        """Return how many legal jobs each choice had, if that matters."""
        if not self._network.looks_at_legal_jobs:
            return None
        return held.masks[:, :-1].sum(dim=1) * held.is_choice

    def _step(
        self, held: Decisions, rows: Tensor, room: int | None, *, is_actor_learning: bool
    ) -> None:
        """Learn from one minibatch."""
        fixed = self._rows.setdefault(len(rows), torch.zeros_like(rows))
        fixed.copy_(rows)

        def learn() -> None:
            self._learn_from(held, fixed, room, is_actor_learning=is_actor_learning)

        def rehearse() -> None:
            """Do the same with an optimiser that moves nothing, and figures that count nothing."""
            before = [number.clone() for number in self._is_held]
            for number in self._is_held:
                number.fill_(1.0)
            try:
                learn()
            finally:  # if it fails, learning goes on without graphs
                for number, one in zip(self._is_held, before, strict=True):
                    number.copy_(one)

        with self._on_device():
            self._replays.run(("learn", len(rows), room, is_actor_learning), learn, rehearse)

    @contextmanager
    def _on_device(self) -> Iterator[None]:
        """Let the optimiser take its rates from the device, for as long as this lasts.

        Otherwise it has plain numbers, as its state in a checkpoint does.
        """
        groups = self._optimiser.param_groups
        before = [group["lr"] for group in groups]
        for group, rate in zip(groups, self._rates, strict=True):
            group["lr"] = rate
        try:
            yield
        finally:
            for group, rate in zip(groups, before, strict=True):
                group["lr"] = rate

    def _learn_from(
        self, held: Decisions, rows: Tensor, room: int | None, *, is_actor_learning: bool
    ) -> None:
        """Take one step of the optimiser; nothing in here may look at a number."""
        settings = self._settings
        actor_held, critic_held = self._is_held
        of_critic = value_loss(
            self._value(held.summaries.index_select(0, rows)),
            held.returns.index_select(0, rows),
            held.values.index_select(0, rows),
            settings.value_clip,
        )
        value_part = settings.value_weight * of_critic
        loss = value_part
        was_going = critic_held == 0
        if is_actor_learning:
            of_actor = self._policy_part(held, rows, room)
            loss = value_part + of_actor
            self._descend(loss)
            shown = torch.where(actor_held == 0, loss, value_part)
        else:
            self._descend(loss)
            shown = loss
        counted = torch.stack([torch.ones_like(shown), shown, of_critic]).detach().double()
        is_going = was_going & (critic_held == 0)
        self._sums.add_(torch.where(is_going, counted, torch.zeros_like(counted)))

    def _policy_part(self, held: Decisions, rows: Tensor, room: int | None) -> Tensor:
        """Return the policy's loss less its bonus; note how far it is, and hold it if too far."""
        settings = self._settings
        actor_held, critic_held = self._is_held
        part, is_choice = Choices.of(held, rows), held.is_choice.index_select(0, rows)
        # Where there is no choice, no preference is asked for: what is illegal is not computed.
        asked = part.masks & is_choice.unsqueeze(1)
        shares = masking.log_probs(self._prefer(part.observations, asked, room), part.masks)
        number = is_choice.sum().clamp_min(1)

        def average(numbers: Tensor) -> Tensor:
            return torch.where(is_choice, numbers, torch.zeros_like(numbers)).sum() / number

        terms = policy_terms(
            shares, part, average, clip=settings.clip, clamp=settings.entropy_clamp
        )
        with torch.no_grad():
            latest = torch.stack([terms.loss, terms.kl, terms.clip_share]).double()
            self._figures.copy_(torch.where(actor_held == 0, latest, self._figures))
            if settings.target_kl is not None:
                # Not ">": a divergence that is no number is too far as well.
                is_too_far = (~(terms.kl <= settings.target_kl)).float()
                actor_held.copy_(torch.maximum(actor_held, is_too_far))
                if settings.kl_stops == "update":
                    critic_held.copy_(torch.maximum(critic_held, actor_held))
        return terms.loss - self._entropy_weight * terms.bonus

    def _descend(self, loss: Tensor) -> None:
        """Take one step down the gradient of a loss with those weights that are not held."""
        groups = self._optimiser.param_groups
        weights = [weight for group in groups for weight in group["params"]]
        # Not `backward`: it would add to gradients that other graphs have left.
        slopes = torch.autograd.grad(loss, weights, allow_unused=True)
        for weight, slope in zip(weights, slopes, strict=True):
            # The fused optimiser wants both laid out alike.
            weight.grad = None if slope is None else slope.contiguous()
        optimiser: Any = self._optimiser
        # It refuses to be captured otherwise, and warns if it is not captured although it could.
        is_captured = loss.is_cuda and torch.cuda.is_current_stream_capturing()
        try:
            for group, is_held in zip(groups, self._is_held, strict=True):
                if self._settings.max_grad_norm is not None:
                    gradients.shorten(group["params"], self._settings.max_grad_norm)
                optimiser.param_groups = [group]
                group["capturable"] = is_captured
                # As a `GradScaler` has the fused optimiser leave out a step, on the device.
                optimiser.found_inf = is_held
                optimiser.step()
        finally:
            optimiser.param_groups = groups
            optimiser.found_inf = None
            for group in groups:
                group["capturable"] = False
            gradients.forget(weights)


def most_of_any(numbers: Tensor, parts: Sequence[Tensor]) -> int:
    """Return the largest sum over any part of a column of numbers, cut as `parts` are."""
    lacking = len(parts) * len(parts[0]) - len(numbers)  # the last part may be shorter
    table = torch.nn.functional.pad(numbers, (0, lacking)).reshape(len(parts), -1)
    return int(table.sum(dim=1).max())
