"""Starting from a heuristic: the network first learns to decide as that does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from yardmaster.errors import YardmasterError
from yardmaster.experiments.training.config import TrainConfig

if TYPE_CHECKING:
    from yardmaster.agents.learners import Learner
    from yardmaster.agents.networks import ActorCritic
    from yardmaster.envs.experts import Seen


def refuse_impossible(config: TrainConfig, learner: Learner) -> None:
    """Complain, before anything is written, about a learner that cannot imitate.

    Raises:
        YardmasterError: if it has no policy, or the heuristic is unknown or not for this task.
    """
    from yardmaster.agents.networks import ActorCritic
    from yardmaster.envs.experts import expert

    if config.train.warm_start is None:
        return
    if not isinstance(learner.network, ActorCritic):
        raise YardmasterError(
            f"{config.learner} learns values of actions and has no policy that could imitate a"
            " heuristic; --warm-start works with ppo and sac."
        )
    expert(config.train.warm_start, cast("Seen", config.task))


def warm_start(
    config: TrainConfig,
    task: Any,
    learner: Learner,
    heuristic: str,
    announce: Callable[[str], None],
) -> dict[str, float]:
    """Teach the learner's network a heuristic, in environments of its own; return scalars.

    Args:
        config: what the run is asked to do.
        task: its task, laid out.
        learner: whose network is taught.
        heuristic: the teacher.
        announce: told in sentences what happens.
    """
    from yardmaster.agents.cloning import CloneSettings, clone
    from yardmaster.envs.experts import expert

    train = config.train
    announce(f"Learning {heuristic} first, from {train.warm_start_steps:,} decisions.")
    settings = CloneSettings(
        steps=train.warm_start_steps,
        held_out=train.warm_start_steps // 8 + 1,
        gamma=config.settings.gamma,
        discount_per_s=config.settings.discount_per_s,
    )
    batch = config.kind.open_batch(
        task,
        size=train.envs,
        seed=train.seed,
        threads=1,
        device="cpu",
        learner=config.learner,
        announce=None,
    )
    network, choose = (
        cast("ActorCritic", learner.network),
        cast("Any", expert(heuristic, task)),
    )
    device = next(network.parameters()).device
    scalars = clone(network.cpu(), batch, choose, settings, train.seed)
    network.to(device)
    announce(
        f"The network decides as {heuristic} in {scalars['agreement']:.1%} of the cases with a"
        " choice."
    )
    return scalars
