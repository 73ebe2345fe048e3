"""Connecting to Ray."""

from __future__ import annotations

import time

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.experiments.ray_connection import connected


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:1", "Cannot connect to Ray at 127.0.0.1:1"),
        ("ray://head:10001", "is not the address of a head"),
        ("head", "is not the address of a head"),
        ("127.0.0.1:99999", "Cannot connect"),
    ],
)
def test_an_address_without_a_head_is_refused_at_once(address, said):
    """Ray would try for two minutes; the address is named within seconds."""
    began = time.monotonic()
    with pytest.raises(YardmasterError, match=said):
        connected(address, needed_by="a test")
    assert time.monotonic() - began < 10
