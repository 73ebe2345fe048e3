"""Two chores before and after a simulation, done here because they touch every job."""

from __future__ import annotations

from yardmaster.engine.compilation import entry_point
from yardmaster.engine.core.bits import WORD_BITS, lowest_bit
from yardmaster.engine.state import (
    Ints,
)


@entry_point
def number_slots(by_rank: Ints, shape: Ints, fill: Ints, slot: Ints, slot_job: Ints) -> None:
    """Number the jobs of every shape in order of rank.

    `fill` holds each shape's first slot and is used up; a job that can never be placed gets none.
    """
    for place in range(len(by_rank)):
        job = by_rank[place]
        kind = shape[job]
        if kind >= 0:
            slot[job] = fill[kind]
            slot_job[fill[kind]] = job
            fill[kind] += 1


@entry_point
def expand_records(records: Ints, first_gpu: Ints, ends: Ints, gpus: Ints) -> None:
    """Turn recorded words of GPU bits into GPU numbers; note where each record's GPUs end."""
    place = 0
    for index in range(len(records)):
        word = records[index] >> WORD_BITS
        bits = records[index] & 0xFFFFFFFF
        while bits != 0:
            gpus[place] = first_gpu[word] + lowest_bit(bits)
            place += 1
            bits &= bits - 1
        ends[index] = place
