"""Philly's machine list."""

from pathlib import Path

import pytest

from yardmaster.errors import TraceFormatError
from yardmaster.model.gpus import gpu_type
from yardmaster.workloads.machines.formats import import_machines
from yardmaster.workloads.machines.listing import MachineOptions
from yardmaster.workloads.traces.reading.options import ImportOptions

HEADER = "machineId, number of GPUs, single GPU mem\n"
ROWS = "m31,8, 24GB\nm32,8, 24GB\nm1,2, 12GB\nm2,0, 12GB\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "cluster_machine_list"
    path.write_text(text)
    return path


def test_types_are_told_by_their_memory(tmp_path: Path):
    """Blanks after commas do not matter; memory is the list's, speed a stated stand-in's."""
    imported = import_machines([written(tmp_path, HEADER + ROWS)])
    cluster = imported.cluster
    assert imported.account.format == "philly"
    assert (cluster.nodes, cluster.gpus) == (3, 18)
    sizes = {kind.name: kind.memory_gib for kind in cluster.gpu_types}
    assert sizes == {"GPU-24G": 24, "GPU-12G": 12}
    assert {kind.fp32_tflops for kind in cluster.gpu_types} == {gpu_type("P100").fp32_tflops}
    assert sum("P100 stand in" in remark for remark in imported.account.remarks) == 2
    assert imported.account.stages[-1].dropped[0].count == 1


def test_the_user_may_know_better(tmp_path: Path):
    """A stand-in can be named for one type or for all of them; memory stays the list's."""
    path = written(tmp_path, HEADER + ROWS)
    options = MachineOptions(stand_ins={"GPU-24G": "P40", "": "K80"})
    kinds = {kind.name: kind for kind in import_machines([path], options=options).cluster.gpu_types}
    assert kinds["GPU-24G"].fp32_tflops == gpu_type("P40").fp32_tflops
    assert kinds["GPU-12G"].fp32_tflops == gpu_type("K80").fp32_tflops
    assert kinds["GPU-12G"].memory_gib == 12


def test_memory_that_cannot_be_read_is_named_or_skipped(tmp_path: Path):
    """A size without a number stops the import with its machine, or the machine is dropped."""
    path = written(tmp_path, f"{HEADER}{ROWS}m9,8, lots\n")
    with pytest.raises(TraceFormatError, match="m9: its GPU memory"):
        import_machines([path])
    options = MachineOptions(rows=ImportOptions(skip_bad_rows=True))
    assert import_machines([path], options=options).cluster.nodes == 3
