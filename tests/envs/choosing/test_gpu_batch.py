"""Environments of choosing on a GPU, without one: on a GPU that Numba plays."""

from __future__ import annotations

import pytest


@pytest.mark.slow
def test_choosing_on_a_played_gpu(passes_on_played_gpu):
    """What `make test-gpu` checks on a GPU holds on one that is played too."""
    assert passes_on_played_gpu("test_choosing.py")
