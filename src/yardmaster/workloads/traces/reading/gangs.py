"""What a job asks for as a gang: whole GPUs, part of one GPU, or slots of cores.

Importers put the GPUs a job asks for, summed over its tasks or workers, into the column `asked`
(a real number, null or 0 for none) and its cores into `cpus`.
"""

from __future__ import annotations

import polars as pl

from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.cells import LARGEST_COUNT
from yardmaster.workloads.traces.reading.delimited import Reason
from yardmaster.workloads.traces.reading.options import ImportOptions

ASKED, CORES = pl.col("asked"), pl.col("cpus")
_NO_GPU = ASKED.fill_null(0.0) <= 0.0


def too_large(options: ImportOptions) -> Reason:
    """Return the mistake of asking for more GPUs, or slots of cores, than anybody has."""
    return Reason(f"asked for more than {LARGEST_COUNT:,} GPUs", _size(options) > LARGEST_COUNT)


def no_gang(options: ImportOptions) -> Reason:
    """Return why a job cannot be a gang: it asks for no GPU, and cores are not taken as slots."""
    if options.slot_cores is None:
        return Reason("asked for no GPU (CPU job)", _NO_GPU)
    return Reason("asked for neither GPUs nor cores", _NO_GPU & (CORES.fill_null(0.0) <= 0.0))


def with_gangs(frame: pl.DataFrame, options: ImportOptions, ledger: Ledger) -> pl.DataFrame:
    """Turn the column `asked` into `gpus` and `milli_gpu`, and book what was rounded.

    Less than one GPU is a share of one; other fractions are rounded up to whole GPUs.
    """
    # Sums such as 0.1 + 0.2 miss round numbers by a hair; thousandths are as fine as shares get.
    asked = _size(options).round(3).clip(0.001)
    counted = frame.with_columns(asked.alias("asked"), _NO_GPU.alias("of_cores"))
    uneven = (ASKED > 1.0) & (ASKED.floor() != ASKED)
    ledger.change(
        "asked for fractions of several GPUs, rounded up to whole GPUs",
        counted.select(uneven.sum()).item(),
    )
    of_cores = int(counted["of_cores"].sum())
    if of_cores:
        cores = "every core" if options.slot_cores == 1 else f"every {options.slot_cores:g} cores"
        ledger.remark(
            f"{of_cores:,} jobs asked for cores only: {cores} is one slot, which counts as a GPU"
        )
    return counted.with_columns(
        gpus=ASKED.ceil().cast(pl.Int64),
        milli_gpu=pl.when(ASKED < 1.0)
        .then((ASKED * 1000.0).round(0))
        .otherwise(1000.0)
        .cast(pl.Int64),
    ).drop("asked", "of_cores")


def _size(options: ImportOptions) -> pl.Expr:
    """Return the GPUs a job asks for, or the slots where it asks for cores only."""
    if options.slot_cores is None:
        return ASKED
    return pl.when(_NO_GPU).then((CORES / options.slot_cores).ceil()).otherwise(ASKED)
