"""Behaviour cloning: a network that decides as its teacher, and a critic that knows the worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from yardmaster.agents.cloning import CloneSettings, clone
from yardmaster.agents.learners import greedy
from yardmaster.agents.networks import NetworkSettings, actor_critic
from yardmaster.agents.ppo import PPO, PPOSettings
from yardmaster.errors import ConformanceError, InvalidConfigError
from yardmaster.testing.toys import OneMachine

QUICK = CloneSettings(steps=4_096, held_out=1_024, epochs=8, minibatch=128, learning_rate=3e-3)


def shortest_first(batch: OneMachine) -> np.ndarray:
    """The teacher, whose decisions are the best there are."""
    return np.where(batch.masks[:, :-1], batch.lengths, np.inf).argmin(axis=1)


def longest_first(batch: OneMachine) -> np.ndarray:
    """A teacher as bad as can be, so that nobody arrives at it by learning to earn."""
    return np.where(batch.masks[:, :-1], batch.lengths, -np.inf).argmax(axis=1)


def fresh(arch: str = "kernel", seed: int = 0):
    settings = NetworkSettings(arch=arch, hidden=(64, 64) if arch == "mlp" else (32, 32))
    return actor_critic(settings, OneMachine(1).layout, seed)


def agreement(network, teacher) -> float:
    """Share of decisions of the teacher's that are the network's too, on unseen draws."""
    batch = OneMachine(256)
    batch.reset(1_000_000)
    same = []
    while not batch.terminated.any():
        actions = teacher(batch)
        if batch.masks[0].sum() > 1:
            same.append(greedy(network)(batch) == actions)
        batch.step(actions)
    return float(np.mean(same))


@pytest.mark.parametrize("teacher", [shortest_first, longest_first])
@pytest.mark.parametrize("arch", ["kernel", "mlp"])
def test_the_clone_decides_as_its_teacher(arch, teacher):
    """At least 95 % agreement on what was never learned from, as reported and as measured."""
    network = fresh(arch)
    scalars = clone(network, OneMachine(16), teacher, QUICK, seed=0)
    assert scalars["agreement"] >= 0.95
    assert agreement(network, teacher) >= 0.95
    assert scalars["loss"] < 0.2
    assert scalars["steps"] == 4_096 + 1_024


def test_agreement_is_measured_where_there_is_a_choice():
    """A network that prefers the opposite agrees nowhere, forced last picks not counted."""
    network = fresh()
    clone(network, OneMachine(16), longest_first, QUICK, seed=0)
    untaught = replace(QUICK, steps=16, epochs=1, learning_rate=1e-12)
    scalars = clone(network, OneMachine(16), shortest_first, untaught, seed=1)
    assert scalars["agreement"] <= 0.05


@pytest.mark.parametrize("normalise", [False, True])
def test_the_critic_learns_what_the_teacher_earns(normalise):
    """Its values of first states are the returns that shortest-first has from there."""
    network = fresh()
    settings = replace(QUICK, gamma=1.0, normalise_rewards=normalise, epochs=12)
    scalars = clone(network, OneMachine(16), shortest_first, settings, seed=0)
    assert (scalars["reward_scale"] == 1.0) != normalise
    batch = OneMachine(256)
    batch.reset(1_000_000)
    with torch.no_grad():
        values = network.value(torch.from_numpy(batch.observations)).numpy()
    errors = values * scalars["reward_scale"] - batch.best_returns
    assert np.abs(errors).mean() < 0.1 * np.abs(batch.best_returns).mean()
    # Of lengths uniform over 0.01 … 1: the mean i-th shortest is 0.01 + 0.99 i / 5.
    expected = -sum((5 - place) * (0.01 + 0.99 * place / 5) for place in (1, 2, 3, 4))
    assert scalars["episode_return"] == pytest.approx(expected, rel=0.03)


def test_watching_the_networks_own_mistakes_also_teaches():
    """With rounds in which the network acts, decisions learned from are still the teacher's."""
    network = fresh()
    settings = replace(QUICK, rounds=3, learner_share=1.0, epochs=3)
    scalars = clone(network, OneMachine(16), shortest_first, settings, seed=0)
    assert scalars["agreement"] >= 0.95


def test_the_learner_acts_only_from_the_second_round_on():
    """The first round follows the teacher alone; later ones follow the network as asked."""
    taken: list[np.ndarray] = []
    wanted: list[np.ndarray] = []

    class Recording(OneMachine):
        """Keeps what is carried out."""

        def step(self, actions: np.ndarray) -> None:
            """Keep the actions."""
            taken.append(actions.copy())
            super().step(actions)

    def teacher(batch: OneMachine) -> np.ndarray:
        wanted.append(longest_first(batch))
        return wanted[-1]

    settings = replace(
        *(QUICK,), steps=512, held_out=64, rounds=2, learner_share=0.5, learning_rate=1e-9, epochs=1
    )
    clone(fresh(), Recording(16), teacher, settings, seed=0)
    differs = np.array(taken) != np.array(wanted)
    assert not differs[:16].any()
    # Half of the decisions are the network's, which is as good as random: wrong in 23 of 48.
    assert differs[16:32].mean() == pytest.approx(0.5 * 23 / 48, abs=0.08)
    assert not differs[32:].any()


def test_cloning_repeats_exactly():
    """The same seed gives the same weights."""
    runs = []
    for _ in range(2):
        network = fresh()
        scalars = clone(
            network, OneMachine(8), shortest_first, replace(QUICK, steps=512, epochs=2), seed=4
        )
        runs.append((scalars, {name: part.clone() for name, part in network.state_dict().items()}))
    assert runs[0][0] == runs[1][0]
    assert all(torch.equal(part, runs[1][1][name]) for name, part in runs[0][1].items())


def test_learning_goes_on_from_the_clone():
    """PPO that begins with the worst teacher's clone unlearns it and finds the optimum."""
    network = fresh()
    clone(network, OneMachine(16), longest_first, replace(QUICK, epochs=2), seed=0)
    assert agreement(network, longest_first) >= 0.95
    settings = PPOSettings(
        total_steps=16_384,
        steps_per_update=1_024,
        minibatches=4,
        learning_rate=3e-3,
        critic_first=1,
    )
    learner = PPO(OneMachine(16), settings, 0, network=network)
    while learner.steps < settings.total_steps:
        learner.update()
    assert agreement(network, shortest_first) >= 0.95


def test_a_teacher_that_breaks_the_rules_is_refused():
    """An illegal action of the teacher is an error that says so."""
    with pytest.raises(ConformanceError, match="illegal"):
        clone(fresh(), OneMachine(4), lambda batch: np.full(batch.size, 4), QUICK, seed=0)


def test_settings_that_make_no_sense_are_refused():
    """All mistakes are listed at once."""
    with pytest.raises(InvalidConfigError) as error:
        CloneSettings(steps=0, gamma=0.0, learning_rate=-1.0, learner_share=0.5)
    assert len(error.value.mistakes) == 4
