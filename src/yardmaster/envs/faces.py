"""Gymnasium's two faces of a batch: a single environment, and many in step.

What the environments are about is the batch's business; here is what Gymnasium wants of any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from yardmaster.engine.picking.layout import Floats
from yardmaster.envs.numbered import MOST_SEEDS, NumberedRows, begin_episodes
from yardmaster.envs.observation import Observation, copied
from yardmaster.envs.picture import RENDER_MODES, checked_mode
from yardmaster.errors import YardmasterError
from yardmaster.model.workload import BoolArray

ROW = np.zeros(1, dtype=np.int64)
"""The one environment there is."""

METADATA: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 4}
VECTOR_METADATA: dict[str, Any] = METADATA | {"autoreset_mode": AutoresetMode.SAME_STEP}

Infos = dict[str, Any]
Steps = tuple[Observation, npt.NDArray[np.float64], BoolArray, BoolArray, Infos]


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """Environments, and how they are shown."""

    batch: NumberedRows
    space: gymnasium.Space[Any]
    """Where one observation lies."""
    arranged: Callable[[Floats], Observation]
    """Flat observations, (…, length) → observations as they are handed over."""
    picture: Callable[[int], str]
    """Environment → a picture of it as text."""

    @property
    def actions(self) -> spaces.Discrete:
        """What one environment can be told to do."""
        return spaces.Discrete(self.batch.masks.shape[1])


class SingleEnv(gymnasium.Env[Observation, np.int64]):
    """One environment with Gymnasium's face."""

    metadata = METADATA

    def __init__(self, shown: Shown, render_mode: str | None) -> None:
        self.render_mode = checked_mode(render_mode)
        self.batch = shown.batch
        self._shown = shown
        self.observation_space = shown.space
        self.action_space = shown.actions
        self._is_seeded = False
        self._is_over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; see "Seeding" above."""
        super().reset(seed=seed)
        if seed is None and not self._is_seeded:
            seed = int(self.np_random.integers(MOST_SEEDS, dtype=np.uint64))
        begin_episodes(self.batch, seed, options)
        self._is_seeded, self._is_over = True, False
        return self._observation(), self._info()

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Carry out an action and go on to the next decision or to the end of the episode."""
        if self._is_over:
            raise ResetNeeded("The episode is over, or none has begun: call reset() first.")
        batch = self.batch
        batch.step(np.array([action], dtype=np.int64))
        terminated, truncated = bool(batch.terminated[0]), bool(batch.truncated[0])
        self._is_over = terminated or truncated
        info = self._info()
        if self._is_over:
            scores = batch.scored(ROW).items()
            info["scores"] = {name: value.item() for name, value in scores}
        return self._observation(), float(batch.rewards[0]), terminated, truncated, info

    def _observation(self) -> Observation:
        return copied(self._shown.arranged(self.batch.observations[0]))

    def _info(self) -> dict[str, Any]:
        told = {name: value[0] for name, value in self.batch.told().items()}
        return {
            name: value.copy() if isinstance(value, np.ndarray) else value.item()
            for name, value in told.items()
        }

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which actions are legal now; what sb3-contrib's learners ask for."""
        return np.array(self.batch.masks[0])

    def render(self) -> str | None:
        """Return a picture of the environment as text, if `render_mode` asks for it."""
        return self._shown.picture(0) if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Let go of what the environment holds."""
        self.batch.close()


class ManyEnvs(VectorEnv[Observation, npt.NDArray[np.int64], npt.NDArray[Any]]):
    """Many environments in step; environment `i` is a single one reset with `seed + i`.

    What `step` returns is what Gymnasium's own `SyncVectorEnv` would return over single
    environments with `AutoresetMode.SAME_STEP`:

    - an environment whose episode ends begins the next one within the same step, so observation
      and info already belong to the new episode; the last observation is in `infos["final_obs"]`
      (an array of objects, None where no episode ended), the last info, with its scores and with
      the seconds the last step took, in `infos["final_info"]`;
    - `infos[key]` is an array over environments and `infos["_" + key]` says where it means
      anything: `action_mask` is `(num_envs, actions)` 8-bit integers.

    By default every step returns arrays of its own, as Gymnasium demands. With `copy=False`
    observations and masks are the arrays that the next step writes to: quicker, but what is kept
    must be copied. Rewards and ends are always copies.
    """

    metadata = VECTOR_METADATA

    def __init__(
        self, num_envs: int, show: Callable[[], Shown], *, copy: bool, render_mode: str | None
    ) -> None:
        self.closed = True  # until there is something to close: Gymnasium closes what it drops
        if num_envs < 1:
            raise YardmasterError(f"num_envs must be at least 1, got {num_envs}.")
        self.num_envs = num_envs
        self.copy = copy
        self.render_mode = checked_mode(render_mode)
        self._shown = show()
        self.batch = self._shown.batch
        self.single_observation_space = self._shown.space
        self.single_action_space = self._shown.actions
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._is_seeded = False
        self.closed = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Infos]:
        """Begin an episode everywhere; see "Seeding" of the single environment.

        `options={"episode": …}` takes one number for all or one per environment.
        """
        super().reset(seed=seed)
        if seed is None and not self._is_seeded:
            seed = int(self.np_random.integers(MOST_SEEDS, dtype=np.uint64))
        begin_episodes(self.batch, seed, options)
        self._is_seeded = True
        return self._observations(), self._infos()

    def step(self, actions: npt.NDArray[np.int64]) -> Steps:
        """Carry out one action in every environment."""
        if not self._is_seeded:
            raise YardmasterError("No episode has begun: call reset() first.")
        chosen = np.asarray(actions, dtype=np.int64)
        if chosen.shape != (self.num_envs,):
            raise YardmasterError(f"step needs {self.num_envs} actions, got shape {chosen.shape}.")
        batch = self.batch
        batch.step(chosen)
        ended = batch.terminated | batch.truncated
        final = self._finals(ended) if ended.any() else {}
        if final:
            batch.begin(np.flatnonzero(ended))
        infos = self._infos() | final
        return (
            self._observations(),
            batch.rewards.copy(),
            batch.terminated.copy(),
            batch.truncated.copy(),
            infos,
        )

    def _observations(self) -> Observation:
        observations = self._shown.arranged(self.batch.observations)
        return copied(observations) if self.copy else observations

    def _infos(self) -> Infos:
        """Return what is known beside the observations, by Gymnasium's convention."""
        values: Infos = {name: value.copy() for name, value in self.batch.told().items()}
        if not self.copy:
            values["action_mask"] = self.batch.legal
        return _marked(values, np.ones(self.num_envs, dtype=np.bool_))

    def _finals(self, ended: BoolArray) -> Infos:
        """Return the last observations and infos of episodes that have just ended."""
        batch = self.batch
        rows = np.flatnonzero(ended)
        last = np.full(self.num_envs, None, dtype=object)
        for row in rows.tolist():
            last[row] = copied(self._shown.arranged(batch.final_observations[row]))
        info: Infos = {name: _spread(value[rows], ended) for name, value in batch.told().items()}
        scores = {name: _spread(value, ended) for name, value in batch.scored(rows).items()}
        info["scores"] = _marked(scores, ended)
        return _marked({"final_obs": last, "final_info": _marked(info, ended)}, ended)

    def action_masks(self) -> BoolArray:
        """Return which actions are legal now, (num_envs, actions)."""
        return self.batch.masks.copy()

    def render(self) -> tuple[str, ...] | None:
        """Return a picture of each environment as text, if `render_mode` asks for it."""
        if self.render_mode != "ansi":
            return None
        return tuple(self._shown.picture(row) for row in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Let the threads go."""
        del kwargs
        self.batch.close()


def _marked(values: dict[str, Any], where: BoolArray) -> Infos:
    """Return values, and beside each a mask of the environments it means anything for."""
    return values | {f"_{name}": where.copy() for name in values}


def _spread(values: npt.NDArray[Any], where: BoolArray) -> npt.NDArray[Any]:
    """Return an array over all environments with these values in some of them, 0 elsewhere."""
    everywhere = np.zeros((len(where), *values.shape[1:]), dtype=values.dtype)
    everywhere[where] = values
    return everywhere
