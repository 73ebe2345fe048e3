"""Slots: the node's GPUs, whole or shared."""

from __future__ import annotations

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.live.local.slots import Device, Slots, pretended, type_named

CARDS = (Device(0, "GPU-aaa", "NVIDIA H200"), Device(1, "GPU-bbb", "NVIDIA H200"))


def test_jobs_see_their_own_gpus_by_uuid():
    """A job's environment names its GPUs by UUID, each once, in the order of the bus."""
    slots = Slots(CARDS, slots_per_gpu=2)
    first = slots.choose(2)
    assert {slots.device_of(slot).uuid for slot in first} == {"GPU-aaa", "GPU-bbb"}
    environment = slots.environment(first)
    assert environment["CUDA_VISIBLE_DEVICES"] == "GPU-aaa,GPU-bbb"
    assert environment["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert slots.environment((0, 1))["CUDA_VISIBLE_DEVICES"] == "GPU-aaa"
    assert Slots(pretended(2)).environment((0,))["CUDA_VISIBLE_DEVICES"] == ""


def test_a_slot_is_held_by_one_job():
    """Slots that are held are not chosen nor given to another, until they are released."""
    slots = Slots(pretended(4))
    slots.hold(slots.choose(3), "a")
    assert slots.free == 1
    with pytest.raises(YardmasterError):
        slots.choose(2)
    with pytest.raises(YardmasterError):
        slots.hold((0,), "b")
    slots.release("a")
    assert slots.free == 4


def test_shared_gpus_are_filled_evenly():
    """With two slots a GPU, the second job goes to the empty GPU."""
    slots = Slots(CARDS, slots_per_gpu=2)
    for name in "abcd":
        slots.hold(slots.choose(1), name)
    assert slots.free == 0
    slots.release("a")
    slots.release("c")
    freed = slots.choose(2)
    assert len(freed) == 2


def test_the_node_is_a_cluster_to_the_simulator():
    """Every slot counts as a GPU of the card's own type; unknown cards get a type of their own."""
    cluster = Slots(CARDS, slots_per_gpu=4).cluster("here")
    assert cluster.gpus == 8
    assert cluster.gpu_types[0].name == "H200"
    assert type_named("NVIDIA A100-SXM4-80GB").name == "A100"
    assert type_named("Voodoo 2").name == "Voodoo 2"


@pytest.mark.parametrize("make", [lambda: Slots(()), lambda: Slots(CARDS, 0), lambda: pretended(0)])
def test_nothing_to_run_on_is_said(make):
    """No GPU, no slot a GPU and no pretended GPU are refused."""
    with pytest.raises(YardmasterError):
        make()
