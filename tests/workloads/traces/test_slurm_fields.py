"""How Slurm writes durations, limits, states, memory and resources."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.workloads.traces.slurm import fields

COUNTS = st.integers(0, 512)


def as_slurm_writes(seconds: int) -> str:
    """A duration as `sacct` prints it."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    clock = f"{hour:02}:{minute:02}:{second:02}"
    return f"{days}-{clock}" if days else clock


@given(st.integers(0, 400 * 86_400))
def test_durations_come_back(seconds):
    """Days, hours, minutes and seconds add up again."""
    assert fields.duration_s(as_slurm_writes(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("05:30", 330), ("1-02:03:04", 93_784), ("00:00.250", 0), ("100:00:00", 360_000)],
)
def test_short_and_long_durations(text, seconds):
    """Minutes and seconds alone, fractions, and more than a day in hours."""
    assert fields.duration_s(text) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1440", 86_400), ("1-00:00:00", 86_400), ("00:10:00", 600), ("UNLIMITED", None),
        ("Partition_Limit", None), ("4294967295", None), ("4294967294", None), ("0", None),
    ],
)  # fmt: skip
def test_limits_are_minutes_or_durations_or_none(text, seconds):
    """Numbers are minutes; unlimited in words and in the database's numbers is no estimate."""
    assert fields.limit_s(text) == seconds


@pytest.mark.parametrize("text", ["abc", "-5", "1:2:3:4", "9" * 20, "1e5", "12:xx"])
def test_senseless_limits_are_refused(text):
    """Words, negative numbers and numbers of astronomic length are no limits."""
    with pytest.raises(ValueError):  # noqa: PT011  (only its type counts)
        fields.limit_s(text)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("COMPLETED", "COMPLETED"), ("CANCELLED by 1000", "CANCELLED"), ("CANCELLED+", "CANCELLED"),
        ("OUT_OF_ME+", "OUT_OF_MEMORY"), ("NODE_FAIL", "NODE_FAIL"), ("running", "RUNNING"),
        ("3", "COMPLETED"), ("4", "CANCELLED"), ("11", "OUT_OF_MEMORY"), ("0", "PENDING"),
        ("1024", "REQUEUED"), ("8193", "RESIZING"), ("32769", "RUNNING"), ("7.0", "NODE_FAIL"),
        ("RUNNING,COMPLETING", "RUNNING"),
    ],
)  # fmt: skip
def test_states_in_words_and_numbers(text, word):
    """Who cancelled, cut words, flags of the database: what counts is one word."""
    assert fields.state(text) == word


@pytest.mark.parametrize("text", ["?", "12", "255", "CO+", "-3", "||", "X9"])
def test_senseless_states_are_refused(text):
    """Numbers without a meaning and words cut too short say nothing."""
    with pytest.raises(ValueError):  # noqa: PT011  (only its type counts)
        fields.state(text)


@given(total=COUNTS, cpus=COUNTS, mib=st.integers(0, 2**22), is_typed=st.booleans())
def test_totals_and_types_are_the_same_gpus(total, cpus, mib, is_typed):
    """However Slurm writes them, GPUs are counted once."""
    typed = f",gres/gpu:a100={total}" if is_typed else ""
    rest = f"billing=7,cpu={cpus},mem={mib}M,node=2"
    both = fields.tres(f"{rest},gres/gpu={total}{typed}")
    only = fields.tres(f"{rest},gres/gpu:a100={total}")
    assert both.gpus == only.gpus == (total or None)
    assert both.types == ("A100" if is_typed and total else None)
    assert (both.cpus, both.memory_mib, both.guessed) == (cpus, mib, False)


@given(st.lists(st.integers(1, 64), min_size=2, max_size=4))
def test_numbered_resources_are_told_from_their_total(numbers):
    """Types 1002, 1003, … with their sum as 1001 count once; without it they add up."""
    types = ",".join(f"{1002 + place}={number}" for place, number in enumerate(numbers))
    total = sum(numbers)
    found = fields.tres(f"1=4,2=100,1001={total},{types}")
    assert (found.gpus, found.cpus, found.memory_mib, found.guessed) == (total, 4, 100.0, True)
    if max(numbers) * 2 != total:
        assert fields.tres(types).gpus == total


def test_named_numbers_are_not_guessed():
    """With the database's own names, a licence is no GPU."""
    names = fields.TRES_NAMES | {
        "1001": "license/matlab",
        "1002": "gres/gpu",
        "1003": "gres/gpu:v100",
    }
    found = fields.tres("1=2,1001=9,1002=2,1003=2", names)
    assert (found.gpus, found.types, found.guessed) == (2, "V100", False)


@pytest.mark.parametrize(
    ("text", "gpus", "types"),
    [
        ("gpu:v100:2", 2, "V100"), ("gpu:2", 2, None), ("gpu", 1, None), ("gpu:ada:2", 2, "ada"),
        ("gres:gpu:4", 4, None), ("gpu:a100:3(S:0-1)", 3, "A100"), ("7696487:4", 4, None),
        ("craynetwork:1,gpu:1", 1, None), ("craynetwork:1", None, None), ("gpu:0", None, None),
        ("PER_NODE:gpu:2", 2, None), ("gpu:v100:1,gpu:a100:1", 2, "V100|A100"),
    ],
)  # fmt: skip
def test_old_columns_of_generic_resources(text, gpus, types):
    """AllocGRES and ReqGRES, in the ways that Slurm wrote them over the years."""
    found = fields.gres(text)
    assert (found.gpus, found.types) == (gpus, types)


def test_shares_of_gpus_are_noted():
    """Shards and MPS percentages are no GPUs, but no absence of them either."""
    assert fields.tres("cpu=1,gres/shard=4").shares
    assert fields.tres("cpu=1,gres/mps=50").gpus is None
    assert fields.gres("shard:2").shares
    assert not fields.tres("cpu=1,gres/gpu=1").shares


@pytest.mark.parametrize(
    "text", ["cpu", "cpu=", "cpu=x", "gres/gpu=-1", "cpu=1,,", "gres/gpu=9" + "0" * 9]
)
def test_senseless_resources_are_refused(text):
    """Lists with holes, words for numbers, negative and absurd counts."""
    with pytest.raises(ValueError):  # noqa: PT011  (only its type counts)
        fields.tres(text)


@pytest.mark.parametrize(
    ("text", "mib", "each"),
    [
        ("4Gn", 4096, "n"), ("4Gc", 4096, "c"), ("128800M", 128_800, ""), ("1.50T", 1_572_864, ""),
        ("512K", 0.5, ""), ("0", 0, ""), ("0n", 0, "n"),
    ],
)  # fmt: skip
def test_requested_memory_is_for_nodes_cores_or_the_job(text, mib, each):
    """Units are powers of 1024; the last letter says whom the memory is for."""
    assert fields.requested_mib(text) == (mib, each)


def test_gpu_types_take_the_names_of_the_catalogue():
    """Known types by our names, others by their own."""
    assert fields.catalogued("nvidia_a100-sxm4-80gb") == "A100"
    assert fields.catalogued("rtx_2080ti") == "RTX2080Ti"
    assert fields.catalogued("volta") == "volta"
