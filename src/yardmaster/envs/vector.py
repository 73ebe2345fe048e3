"""`yardmaster/PickJob-v0` as a vector environment: thousands stepped in one compiled call."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from yardmaster.envs.episodes import Split
from yardmaster.envs.numbered import MOST_SEEDS, begin_episodes, opened
from yardmaster.envs.observation import Observation, arranged, copied, space
from yardmaster.envs.picture import RENDER_MODES, checked_mode, picture
from yardmaster.envs.task import Task
from yardmaster.errors import YardmasterError
from yardmaster.model.workload import BoolArray

Infos = dict[str, Any]
METADATA: dict[str, Any] = {
    "render_modes": list(RENDER_MODES),
    "render_fps": 4,
    "autoreset_mode": AutoresetMode.SAME_STEP,
}
Steps = tuple[Observation, npt.NDArray[np.float64], BoolArray, BoolArray, Infos]


class PickJobVectorEnv(VectorEnv[Observation, npt.NDArray[np.int64], npt.NDArray[Any]]):
    """Many `PickJobEnv` in step; environment `i` is a single one reset with `seed + i`.

    See `PickJobEnv` for what they are. What `step` returns is what Gymnasium's own
    `SyncVectorEnv` would return over single environments with `AutoresetMode.SAME_STEP`:

    - an environment whose episode ends begins the next one within the same step, so observation
      and info already belong to the new episode; the last observation is in `infos["final_obs"]`
      (an array of objects, None where no episode ended), the last info, with its scores and with
      the seconds the last step took, in `infos["final_info"]`;
    - `infos[key]` is an array over environments and `infos["_" + key]` says where it means
      anything: `action_mask` is `(num_envs, window + 1)` 8-bit integers.

    By default every step returns arrays of its own, as Gymnasium demands. With `copy=False`
    observations and masks are the arrays that the next step writes to: quicker, but what is kept
    must be copied. Rewards and ends are always copies.
    """

    metadata = METADATA

    def __init__(
        self,
        num_envs: int = 1,
        *,
        task: str | Task = "default",
        split: Split = "train",
        observation: str = "flat",
        compiled: bool = True,
        threads: int = 1,
        copy: bool = True,
        render_mode: str | None = None,
        **changes: Any,
    ) -> None:
        """Open the environments.

        Args:
            num_envs: how many.
            task: a name of `TASKS`, or a task.
            split: which of its sets of episodes: train, val or report.
            observation: flat or dict.
            compiled: False runs the same functions as plain Python.
            threads: threads to step them on; each takes at least 64 environments.
            copy: whether each step returns arrays of its own.
            render_mode: None or ansi.
            **changes: settings of the task to change, by name; see `Task` and `Sight`.

        Raises:
            UnknownNameError: if a name or a setting is unknown.
            YardmasterError: if there is no environment at all.
        """
        self.closed = True  # until there is something to close: Gymnasium closes what it drops
        if num_envs < 1:
            raise YardmasterError(f"num_envs must be at least 1, got {num_envs}.")
        self.num_envs = num_envs
        self.copy = copy
        self.render_mode = checked_mode(render_mode)
        self.batch = opened(task, changes, split, size=num_envs, threads=threads, compiled=compiled)
        self._kind = observation
        self.single_observation_space = space(self.batch.task, observation)
        self.single_action_space = spaces.Discrete(self.batch.layout.actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._is_seeded = False
        self.closed = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Infos]:
        """Begin an episode everywhere; see "Seeding" of `PickJobEnv`.

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
        observations = arranged(self.batch.observations, self.batch.layout, self._kind)
        return copied(observations) if self.copy else observations

    def _told(self) -> dict[str, npt.NDArray[Any]]:
        """Return what is known beside the observations, as the next step will write it."""
        batch = self.batch
        return {
            "action_mask": batch.legal,
            "now_s": batch.now_s,
            "elapsed_s": batch.elapsed_s,
            "waiting": batch.waiting,
            "episode_number": batch.episode_numbers,
        }

    def _infos(self) -> Infos:
        """Return what is known beside the observations, by Gymnasium's convention."""
        values: Infos = {name: value.copy() for name, value in self._told().items()}
        if not self.copy:
            values["action_mask"] = self.batch.legal
        return _marked(values, np.ones(self.num_envs, dtype=np.bool_))

    def _finals(self, ended: BoolArray) -> Infos:
        """Return the last observations and infos of episodes that have just ended."""
        batch = self.batch
        rows = np.flatnonzero(ended)
        last = np.full(self.num_envs, None, dtype=object)
        for row in rows.tolist():
            final = arranged(batch.final_observations[row], batch.layout, self._kind)
            last[row] = copied(final)
        info: Infos = {name: _spread(value[rows], ended) for name, value in self._told().items()}
        scores = {name: _spread(value, ended) for name, value in batch.scores(rows).items()}
        info["scores"] = _marked(scores, ended)
        return _marked({"final_obs": last, "final_info": _marked(info, ended)}, ended)

    def action_masks(self) -> BoolArray:
        """Return which actions are legal now, (num_envs, window + 1)."""
        return self.batch.masks.copy()

    def render(self) -> tuple[str, ...] | None:
        """Return a picture of each environment as text, if `render_mode` asks for it."""
        if self.render_mode != "ansi":
            return None
        return tuple(picture(self.batch, row) for row in range(self.num_envs))

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
