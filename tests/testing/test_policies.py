"""Policies for tests are policies."""

from __future__ import annotations

from yardmaster.engine.picking.sight import Sight
from yardmaster.schedulers.learned.policy import load_policy
from yardmaster.schedulers.learned.policy_file import write_policy
from yardmaster.testing.policies import random_policy


def test_a_random_policy_can_be_written_and_loaded(tmp_path):
    """It fits its sight, keeps what is said of it, and differs by seed."""
    sight = Sight(window=5, information="blind", gpu_slots=0)
    made = [random_policy(sight, seed=seed, steps=7) for seed in (1, 2)]
    write_policy(tmp_path / "a.npz", made[0])
    loaded = load_policy(tmp_path / "a.npz")
    assert loaded.sight == sight
    assert loaded.file.about == {"learner": "nobody", "steps": 7}
    assert (made[0].weights["head.0.weight"] != made[1].weights["head.0.weight"]).all()
