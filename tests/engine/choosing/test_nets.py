"""The forward pass of choosers, against the same network in matrix form."""

from __future__ import annotations

import numpy as np
import pytest

from yardmaster.engine.choosing import compilation
from yardmaster.engine.choosing.driving import favourite
from yardmaster.engine.choosing.sight import ChoiceSight
from yardmaster.schedulers.meta.chooser_file import packed
from yardmaster.testing.choosing import random_chooser


def by_matrices(file, seen):
    """Return the preferences, written as one would on a blackboard."""
    sight, weights = file.sight, file.weights
    border = len(sight.layout().now_features)

    def layer(name, values):
        return values @ weights[f"{name}.weight"].astype(float) + weights[f"{name}.bias"]

    now, past = seen[:border].astype(float), seen[border:].astype(float)
    if "past.0.weight" in weights:
        past = np.maximum(layer("past.0", past), 0.0)
    hidden = np.maximum(layer("hidden.0", np.concatenate([now, past])), 0.0)
    return layer("head.0", hidden)


@pytest.mark.parametrize("past", [0, 3], ids=["no-past", "past"])
@pytest.mark.parametrize("functions", [compilation.plain, compilation.compiled])
def test_preferences_are_those_of_the_matrices(past, functions):
    """Plain and compiled, with an encoder and without, scores are right to 32 bits."""
    file = random_chooser(ChoiceSight(menu=("fifo", "sjf", "edf"), past=past))
    net = packed(file)
    scratch = np.full(net.scratch, np.nan, dtype=np.float32)
    dice = np.random.default_rng(1)
    for _ in range(20):
        seen = dice.uniform(-1, 1, file.sight.layout().length).astype(np.float32)
        scores = np.zeros(3, dtype=np.float32)
        functions().score_one(net.net, net.weights, seen, scores, scratch)
        expected = by_matrices(file, seen)
        assert scores == pytest.approx(expected, abs=1e-4)
        assert favourite(3, scores) == expected.argmax()


def test_the_first_of_equals_is_preferred():
    """Of several that are preferred alike, the first on the menu is put to work."""
    assert favourite(4, np.array([1.0, 3.0, 3.0, 2.0], dtype=np.float32)) == 1
