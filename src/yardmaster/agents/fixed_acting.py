"""Acting in environments on a GPU in shapes that never change, so that it can be played back.

A step is: read how many jobs are legal (the one number that leaves the GPU), draw noise, play back
"look, prefer, choose", step the environments, play back "keep what came of it".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from yardmaster.agents import masking
from yardmaster.agents.graphs import Replays, room_for
from yardmaster.agents.networks import ActorCritic
from yardmaster.agents.rollouts import Rollout
from yardmaster.agents.tensors import ResidentBatch

Preferences = Callable[[Tensor, Tensor, int | None], Tensor]
"""From observations, masks and room for legal jobs to logits."""


class FixedActing:
    """Fills a rollout with what a policy does; the same as doing it step by step."""

    def __init__(
        self,
        batch: ResidentBatch,
        network: ActorCritic,
        prefer: Preferences,
        *,
        rollout: Rollout,
        logits: Tensor,
        replays: Replays,
    ) -> None:
        """Keep what is read and written.

        Args:
            batch: The environments.
            network: The policy.
            prefer: What it prefers.
            rollout: Where steps are written to.
            logits: (steps, environments, actions) where preferences are written to.
            replays: What plays back.
        """
        self._batch, self._prefer, self._rollout = batch, prefer, rollout
        self._logits, self._replays = logits, replays
        self._needs_room = network.looks_at_legal_jobs
        self._step = torch.zeros(1, dtype=torch.int64, device=batch.device)
        self._noise = torch.zeros_like(logits[0])
        self._actions = torch.zeros(batch.size, dtype=torch.int64, device=batch.device)
        self._told = torch.zeros(2, dtype=torch.int64, device=batch.device)
        """Legal jobs now, and episodes that were cut off in the last step."""

    @torch.no_grad()
    def collect(self, generator: torch.Generator) -> None:
        """Let the policy act for the steps of the rollout."""
        batch, rollout, replays = self._batch, self._rollout, self._replays
        rollout.begin()
        replays.run("look", self._look)
        legal, _ = self._read()
        for step in range(rollout.steps):
            self._step.fill_(step)
            self._noise.uniform_(generator=generator)
            room = None
            if self._needs_room:
                room = room_for(legal, batch.size * batch.layout.window)
            replays.run(("act", room), partial(self._act, room))
            batch.step(self._actions)
            replays.run("keep", self._keep)
            legal, cut = self._read()
            if cut:
                rollout.keep_cut_off(step, batch)
        rollout.end(batch)

    def _read(self) -> tuple[int, int]:
        """Return what has to be known here; waits for the GPU only if something has."""
        if not self._needs_room and not self._batch.can_cut:
            return 0, 0
        legal, cut = self._told.tolist()
        return legal, cut

    def _look(self) -> None:
        self._told[0].copy_(self._batch.masks[:, :-1].sum())

    def _act(self, room: int | None) -> None:
        batch, rollout = self._batch, self._rollout
        seen, masks = batch.observations.to(rollout.observations.dtype), batch.masks
        rollout.write_seen(self._step, seen, masks, batch.groups)
        logits = self._prefer(seen, masks, room)
        self._logits.index_copy_(0, self._step, logits.unsqueeze(0))
        actions = masking.greedy(logits - masking.as_log_noise(self._noise.clone()), masks)
        rollout.actions.index_copy_(0, self._step, actions.unsqueeze(0))
        self._actions.copy_(actions)

    def _keep(self) -> None:
        truncated = self._rollout.write_outcome(self._step, self._batch)
        self._told[1].copy_(truncated.sum())
        self._look()
