"""Where everything stands in an observation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Layout:
    """The parts of a flat observation: a token per job, a number per GPU slot, and globals.

    Action `i` starts the job of token `i`; action `window` is the no-op.
    """

    window: int
    """Job tokens."""
    job_features: tuple[str, ...]
    """Names of the numbers of a job token."""
    gpu_slots: int
    """Numbers that say when GPUs become free; 0 if the observation has none."""
    global_features: tuple[str, ...]
    jobs_at: int
    """Where the first job token begins."""
    gpus_at: int
    globals_at: tuple[int, ...]
    """Where each of the globals stands."""

    @property
    def length(self) -> int:
        """Numbers in the flat observation."""
        jobs = self.window * len(self.job_features)
        return jobs + self.gpu_slots + len(self.global_features)

    @property
    def actions(self) -> int:
        """Number of actions: one per job token, and the no-op."""
        return self.window + 1

    def jobs(self, observations: Floats) -> Floats:
        """Return the job tokens of flat observations, (…, window, features), as a view."""
        features = len(self.job_features)
        part = observations[..., self.jobs_at : self.jobs_at + self.window * features]
        return part.reshape(*observations.shape[:-1], self.window, features)

    def gpus(self, observations: Floats) -> Floats:
        """Return the numbers of the GPU slots, (…, slots), as a view."""
        return observations[..., self.gpus_at : self.gpus_at + self.gpu_slots]

    def globals(self, observations: Floats) -> Floats:
        """Return the globals, (…, globals), as a copy."""
        return observations[..., list(self.globals_at)]
