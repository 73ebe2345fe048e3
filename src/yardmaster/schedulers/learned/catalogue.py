"""Trained policies that come with Yardmaster: `policy:NAME`, and the model card of each.

A policy is two files in `shipped/`: `NAME.npz`, as `train` writes it, and its card `NAME.md`. What
lists show of it stands in the file's header (`about`): `steps`, and in words `objective` and
`trained_on`; where these two are not there, the reward and the jobs of its task are named.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.names import unknown

SHIPPED = Path(__file__).parent / "shipped"
"""Where the policies that come with Yardmaster are, with their cards."""


@dataclass(frozen=True, slots=True)
class ShippedPolicy:
    """What a policy that comes with Yardmaster is, in a few words."""

    name: str
    information: str
    """What it knows of run times before jobs have run: clairvoyant, estimate-based or blind."""
    objective: str
    trained_on: str
    steps: int
    """Decisions it was trained with."""


def shipped_names() -> list[str]:
    """Return the names of the policies that come with Yardmaster, sorted."""
    return sorted(path.stem for path in SHIPPED.glob("*.npz"))


def shipped_path(name: str) -> Path | None:
    """Return the file of a policy that comes with Yardmaster; None if none has this name."""
    return SHIPPED / f"{name}.npz" if name in shipped_names() else None


def describe_shipped(name: str) -> ShippedPolicy:
    """Return what a policy that comes with Yardmaster is.

    Raises:
        UnknownNameError: if there is none of this name.
        YardmasterError: if its file cannot be used.
    """
    from yardmaster.schedulers.language import POLICY_PREFIX, parse_scheduler
    from yardmaster.schedulers.learned.policy import load_policy

    path = _known(name)
    about = load_policy(path).file.about
    return ShippedPolicy(
        name=name,
        information=parse_scheduler(POLICY_PREFIX + name).information.value,
        objective=_objective(about),
        trained_on=_trained_on(about),
        steps=int(about.get("steps", 0)),
    )


def model_card(name: str) -> str:
    """Return the card of a policy that comes with Yardmaster: how it was made, what it can do.

    Raises:
        UnknownNameError: if there is no policy of this name.
        YardmasterError: if it has no card.
    """
    card = _known(name).with_suffix(".md")
    try:
        return card.read_text(encoding="utf-8")
    except OSError as error:
        raise YardmasterError(f"Cannot read the card {card}: {error.strerror}.") from None


def _known(name: str) -> Path:
    path = shipped_path(name)
    if path is None:
        raise unknown("policy", name, shipped_names())
    return path


def _objective(about: dict[str, Any]) -> str:
    reward = about.get("objective", _task(about).get("reward", "not stated"))
    if isinstance(reward, dict):
        return ", ".join(f"{weight:g} {term}" for term, weight in reward.items())
    return str(reward)


def _trained_on(about: dict[str, Any]) -> str:
    task = _task(about)
    if "trained_on" in about or "workload" not in task:
        return str(about.get("trained_on", "not stated"))
    return f"{task['workload']} on {task['cluster']}"


def _task(about: dict[str, Any]) -> dict[str, Any]:
    task = about.get("task")
    return task if isinstance(task, dict) else {}
