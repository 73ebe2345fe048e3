"""Rebuild the table of measured speeds: `python benchmarks/build_throughputs.py`.

Reads `simulation_throughputs.json` from the folder `shared` beside the repository and writes
`src/yardmaster/model/data/throughputs.toml`, which says at its top what each number means.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from yardmaster.model.gpus import GpuType, gpu_type
from yardmaster.model.speeds import peak_compute_tflops

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / ".." / "shared" / "traces" / "perf_gavel" / "simulation_throughputs.json"
TARGET = ROOT / "src" / "yardmaster" / "model" / "data" / "throughputs.toml"
TYPES = ("K80", "P100", "V100")
SIZES = (2, 4, 8)
STEPS = 100
"""Exponents are found to one part in so many."""

ABOUT = {
    "A3C": "reinforcement learning, Pong",
    "CycleGAN": "image translation, monet2photo",
    "LM": "recurrent language model, Wikitext-2",
    "Recommendation": "autoencoder, ML-20M",
    "ResNet-18": "image classification, CIFAR-10",
    "ResNet-50": "image classification, ImageNet",
    "Transformer": "translation, Multi30k",
}

HEADER = """\
# How fast jobs of known kinds run, where, with how many GPUs and beside whom.
# Written by benchmarks/build_throughputs.py; change that, not this.
#
# Source of everything measured: simulation_throughputs.json of stanford-futuredata/gavel
# (Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads",
# OSDI 2020; MIT licence, copyright 2020 Stanford Future Data Systems): training steps/s of 26 kinds
# of jobs on K80, P100 and V100 with 1, 2, 4 and 8 GPUs, within a node and spread over nodes
# ("unconsolidated"), and of pairs of single-GPU jobs that share a GPU. The figures are carried as
# they are; some are not what the age of a GPU suggests (Recommendation is slower on the V100).
#
# [families.NAME]  how speed grows from one GPU type to another. A type nobody measured is estimated
# from the most similar one of the three, by FP32, FP16 and bandwidth: M60 and P4 from the K80, P40
# from the P100, everything newer from the V100.
#   compute, bandwidth
#       speed ~ (peak compute) ^ compute × (memory bandwidth) ^ bandwidth, where peak compute is the
#       geometric mean of FP32 and FP16 peaks (data/gpus.toml). Fitted to the family's measured K80
#       and P100 speeds relative to the V100: least squares in logarithms, both at least 0, together
#       at most 1, in hundredths. Together below 1: part of the time no GPU makes shorter.
#   misses_by
#       factor by which this rule typically (root mean square) misses those measurements. ESTIMATE:
#       for types newer than the V100 it is an extrapolation and may be further off.
#
# [kinds.NAME]
#   steps_per_s  measured, one GPU, alone: K80, P100, V100
#   speed_up     measured steps/s with 2, 4 and 8 GPUs of one node over those with 1; geometric mean
#                over the types on which all four were measured. Absent: only measured with 1 GPU.
#   spread       measured steps/s of 2, 4 and 8 GPUs spread over nodes over those within one node;
#                geometric mean over the types on which both were measured. The network was that of
#                the cloud in 2020; on V100 alone spreading costs more than on the older types.
#   beside       measured on V100: steps/s while sharing the GPU with each kind, in the order of
#                this file, over steps/s alone. 0: the two could not run together.
"""


@dataclass(frozen=True)
class Measured:
    """The source's figures, by GPU type, kind and number of GPUs."""

    tables: dict[str, dict[str, dict[str, Any]]]

    def kinds(self) -> list[str]:
        """Return the kinds by family and batch size."""
        names = [ast.literal_eval(key) for key in self.tables["v100"]]
        return sorted((kind for kind, gpus in names if gpus == 1), key=in_order)

    def alone(self, table: str, kind: str, gpus: int = 1) -> float:
        """Return steps/s; 0 where it was not measured."""
        return float(self.tables[table].get(str((kind, gpus)), {}).get("null", 0.0))

    def beside(self, kind: str, other: str) -> float:
        """Return steps/s of one of two jobs that share a V100."""
        return float(self.tables["v100"][str((kind, 1))][str((other, 1))][0])


def in_order(kind: str) -> tuple[str, int]:
    """Return a key that sorts batch sizes as numbers."""
    family, batch = split(kind)
    return family, batch or 0


def split(kind: str) -> tuple[str, int | None]:
    """Return the family and the batch size of a kind."""
    match = re.fullmatch(r"(.+) \(batch size (\d+)\)", kind)
    return (match[1], int(match[2])) if match else (kind, None)


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of positive numbers."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def speed_up(measured: Measured, kind: str) -> list[float]:
    """Return the speed-up with 2, 4 and 8 GPUs of one node; empty if not measured."""
    types = [
        name.lower()
        for name in TYPES
        if all(measured.alone(name.lower(), kind, gpus) > 0 for gpus in (1, *SIZES))
    ]
    return [
        geometric_mean(
            measured.alone(name, kind, gpus) / measured.alone(name, kind) for name in types
        )
        for gpus in SIZES
        if types
    ]


def spread(measured: Measured, kind: str) -> list[float]:
    """Return the slow-down of 2, 4 and 8 GPUs by spreading; empty if not measured."""
    ratios = []
    for gpus in SIZES:
        together = [measured.alone(name.lower(), kind, gpus) for name in TYPES]
        apart = [measured.alone(f"{name.lower()}_unconsolidated", kind, gpus) for name in TYPES]
        both = [a / t for a, t in zip(apart, together, strict=True) if a > 0 and t > 0]
        ratios += [geometric_mean(both)] if both else []
    return ratios


def exponents(measured: Measured, kinds: Sequence[str]) -> tuple[float, float, float]:
    """Fit the exponents of compute and bandwidth; return them and the typical factor missed by."""
    newest = gpu_type("V100")
    points = [
        (
            math.log(measured.alone(name.lower(), kind) / measured.alone("v100", kind)),
            *_logs(gpu_type(name), newest),
        )
        for kind in kinds
        for name in TYPES[:-1]
    ]

    def missed(trial: tuple[float, float]) -> float:
        return sum((y - (trial[0] * c + trial[1] * b)) ** 2 for y, c, b in points)

    hundredths = range(STEPS + 1)
    trials = [(c / STEPS, b / STEPS) for c, b in product(hundredths, hundredths) if c + b <= STEPS]
    best = min(trials, key=missed)
    return *best, math.exp(math.sqrt(missed(best) / len(points)))


def _logs(kind: GpuType, newest: GpuType) -> tuple[float, float]:
    compute = math.log(peak_compute_tflops(kind) / peak_compute_tflops(newest))
    return compute, math.log(kind.memory_gb_s / newest.memory_gb_s)


def document(measured: Measured) -> str:
    """Return the text of the data file."""
    kinds = measured.kinds()
    lines = [HEADER]
    for family in dict.fromkeys(split(kind)[0] for kind in kinds):
        compute, bandwidth, factor = exponents(
            measured, [kind for kind in kinds if split(kind)[0] == family]
        )
        lines += [
            f"[families.{family}]",
            f'about = "{ABOUT[family]}"',
            f"compute = {compute:.2f}",
            f"bandwidth = {bandwidth:.2f}",
            f"misses_by = {factor:.2f}",
            "",
        ]
    for kind in kinds:
        lines += [f'[kinds."{kind}"]', *kind_lines(measured, kind), ""]
    return "\n".join(lines)


def kind_lines(measured: Measured, kind: str) -> list[str]:
    """Return the figures of one kind."""
    family, batch = split(kind)
    steps = ", ".join(f"{name} = {measured.alone(name.lower(), kind):.6g}" for name in TYPES)
    alone = measured.alone("v100", kind)
    beside = [measured.beside(kind, other) / alone for other in measured.kinds()]
    lines = [f'family = "{family}"']
    lines += [] if batch is None else [f"batch = {batch}"]
    lines += [f"steps_per_s = {{ {steps} }}"]
    for key, ratios in (
        ("speed_up", speed_up(measured, kind)),
        ("spread", spread(measured, kind)),
        ("beside", beside),
    ):
        numbers = ", ".join(f"{ratio:.4g}" for ratio in ratios)
        lines += [f"{key} = [{numbers}]"] if ratios else []
    return lines


def main() -> None:
    """Write the file, or say whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare, do not write")
    arguments = parser.parse_args()
    text = document(Measured(json.loads(SOURCE.read_text("utf-8"))))
    if not arguments.check:
        TARGET.write_text(text, "utf-8")
    elif text != TARGET.read_text("utf-8"):
        raise SystemExit(f"{TARGET.relative_to(ROOT)} differs from what its source gives.")


if __name__ == "__main__":
    main()
