"""Networks from observations to decisions: interchangeable bodies, and heads for every learner."""

from yardmaster.agents.networks.actor_critic import ActorCritic, actor_critic
from yardmaster.agents.networks.q_network import QNetwork, q_network
from yardmaster.agents.networks.settings import (
    ARCHITECTURES,
    FOR_CHOOSING,
    FOR_PICKING,
    NetworkSettings,
)

__all__ = [
    "ARCHITECTURES",
    "FOR_CHOOSING",
    "FOR_PICKING",
    "ActorCritic",
    "NetworkSettings",
    "QNetwork",
    "actor_critic",
    "q_network",
]
