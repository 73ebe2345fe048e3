"""What a job asks for as a gang: whole GPUs, part of one, or slots of cores."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.gangs import no_gang, too_large, with_gangs
from yardmaster.workloads.traces.reading.options import ImportOptions


def asking(*asked: float | None, cpus: float | None = 4.0) -> pl.DataFrame:
    return pl.DataFrame(
        {"asked": list(asked), "cpus": [cpus] * len(asked)},
        schema={"asked": pl.Float64, "cpus": pl.Float64},
    )


def gangs(frame: pl.DataFrame, options: ImportOptions, ledger: Ledger) -> list[tuple[int, int]]:
    return with_gangs(frame, options, ledger).select("gpus", "milli_gpu").rows()


@given(st.integers(1, 10**6))
def test_whole_gpus_stay(gpus: int):
    """Whole numbers of GPUs are gangs of whole GPUs, and nothing counts as altered."""
    ledger = Ledger("x", [])
    assert gangs(asking(float(gpus)), ImportOptions(), ledger) == [(gpus, 1000)]
    assert not ledger.changed


@given(st.integers(1, 999))
def test_part_of_a_gpu_is_a_share_of_one(milli: int):
    """Less than one GPU is one GPU in thousandths, and nothing counts as altered."""
    ledger = Ledger("x", [])
    assert gangs(asking(milli / 1000.0), ImportOptions(), ledger) == [(1, milli)]
    assert not ledger.changed


@given(st.integers(1, 1000), st.integers(1, 999))
def test_other_fractions_are_rounded_up(whole: int, milli: int):
    """More than one GPU in fractions becomes the next whole number, and is counted."""
    ledger = Ledger("x", [])
    assert gangs(asking(whole + milli / 1000.0), ImportOptions(), ledger) == [(whole + 1, 1000)]
    assert list(ledger.changed.values()) == [1]


def test_sums_that_miss_a_whole_number_by_a_hair_are_whole():
    """Ten times a tenth of a GPU is one GPU, and not two or a share."""
    ledger = Ledger("x", [])
    hair = [sum([0.1] * 10), 0.1 * 3 + 0.7, 2.0 + 1e-9]
    assert gangs(asking(*hair), ImportOptions(), ledger) == [(1, 1000), (1, 1000), (2, 1000)]
    assert not ledger.changed


@given(st.floats(0.1, 1000.0), st.floats(0.1, 64.0))
def test_cores_become_slots_only_where_no_gpu_is_asked_for(cores: float, slot: float):
    """With a slot size, CPU jobs are gangs of slots and GPU jobs stay what they are."""
    options, ledger = ImportOptions(slot_cores=slot), Ledger("x", [])
    frame = asking(None, 0.0, 2.0, cpus=cores)
    slots = math.ceil(cores / slot)
    assert gangs(frame, options, ledger) == [(slots, 1000), (slots, 1000), (2, 1000)]
    assert "2 jobs asked for cores only" in ledger.remarks[0]


def test_jobs_without_gpus_are_dropped_unless_cores_count():
    """No GPU is a reason to drop a job; with slots only jobs without cores are dropped."""
    frame = asking(None, 0.0, 0.5)
    assert frame.filter(no_gang(ImportOptions()).holds).height == 2
    with_slots = no_gang(ImportOptions(slot_cores=2.0)).holds
    assert frame.filter(with_slots).height == 0
    assert asking(None, 1.0, cpus=None).filter(with_slots).height == 1


@pytest.mark.parametrize("options", [ImportOptions(), ImportOptions(slot_cores=1e-6)])
def test_absurd_sizes_are_mistakes(options: ImportOptions):
    """A job of a hundred million GPUs, or as many slots, is a damaged row."""
    assert asking(1e8, 1e30).filter(too_large(options).holds).height == 2
    slots = asking(0.0, cpus=1e9).filter(too_large(options).holds).height
    assert slots == (options.slot_cores is not None)
