"""A trained policy as a file that needs nothing but NumPy to read.

It is an uncompressed `.npz` of 32-bit weights and a header in JSON. A layer `x` is `x.weight`,
inputs × units, and `x.bias`. By architecture:

- `mlp`: `hidden.0`, `hidden.1`, … over the whole observation;
- `kernel`: the first layer in two parts, `token` (no bias) and `context` (globals, then GPU slots);
  `noop`, which the no-op has in place of what `token` makes of a job; `hidden.0`, …;
- `self-attention`: `job.0`, `job.1` and `noop` make tokens; `query`, `key`, `value`, `out` and
  `norm` (`.scale`, `.shift`) let them look at each other; then as `kernel`, without its `noop`;
- `cross-attention`: `job.0`, `job.1`, `gpu.0`, `gpu.1`, and if there are globals `globals.0`,
  `globals.1` make tokens; jobs look at GPU slots as above; `add_globals`; `last_norm`.

Then `head.0`, …, of which the last is linear, for one action or with `mlp` for all; and except with
`mlp` a `noop_bias`. If there is a `support`, the head makes logits of a distribution over these
values, and preferences are expectations; with `state.0`, … (from the mean embedding; the last is
linear) a dueling network's, whose advantages are averaged over legal actions.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from yardmaster.engine.picking.layout import Layout
from yardmaster.schedulers.learned.weights_file import (
    PolicyFileError,
    Weights,
    read_weights,
    write_weights,
)

__all__ = ["PolicyFile", "PolicyFileError", "Weights", "read_policy", "write_policy"]

FORMAT = "yardmaster policy"
VERSION = 1
CHOICES = ("best", "majority")


@dataclass(frozen=True, eq=False, slots=True)
class PolicyFile:
    """A trained policy: what it looks at, its network, and where it comes from."""

    architecture: str
    layout: Layout
    sight: dict[str, Any]
    """Settings of what it sees, as plain values."""
    weights: Weights
    """32-bit arrays by name; see above."""
    about: dict[str, Any] = field(default_factory=dict)
    """Learner, steps, scores: plain values, for people."""
    choice: str = "best"
    """How preferences become a decision. `best`: the highest. `majority`: they are logarithms of
    shares, and the no-op is chosen if its share is larger than that of all jobs together, else the
    best job is: many jobs that are all alike have small shares each."""


def write_policy(path: Path, policy: PolicyFile) -> None:
    """Write a policy; a file of that name is replaced only when all is written.

    Raises:
        YardmasterError: if the file cannot be written.
    """
    header = {
        "format": FORMAT,
        "version": VERSION,
        "architecture": policy.architecture,
        "layout": asdict(policy.layout),
        "sight": policy.sight,
        "about": policy.about,
        "choice": policy.choice,
    }
    write_weights(path, header, policy.weights)


def read_policy(path: Path) -> PolicyFile:
    """Read a policy.

    Raises:
        YardmasterError: if the file is not there.
        PolicyFileError: if it is damaged, no policy, or of another version.
    """
    header, weights = read_weights(path, FORMAT, VERSION)
    try:
        return PolicyFile(
            architecture=str(header["architecture"]),
            layout=_layout(header["layout"]),
            sight=dict(header["sight"]),
            weights=weights,
            about=dict(header["about"]),
            choice=_choice(header),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise PolicyFileError(
            f"{path} is a damaged policy file: its header lacks {error}."
        ) from None


def _choice(header: dict[str, Any]) -> str:
    choice = str(header.get("choice", "best"))
    if choice not in CHOICES:
        raise ValueError(f"a choice among {', '.join(CHOICES)}")
    return choice


def _layout(plain: dict[str, Any]) -> Layout:
    tuples = ("job_features", "global_features", "globals_at")
    return Layout(**(plain | {name: tuple(plain[name]) for name in tuples}))
