"""An order of one's own: a function of a few lines, checked, then compared by its name.

python examples/02_own_order.py
"""

import numpy as np
import numpy.typing as npt

import yardmaster as ym


@ym.order("narrow-and-old", formula="GPUs, less one per hour waited")
def narrow_and_old(waiting: ym.JobsView, now: float) -> npt.NDArray[np.float64]:
    """Small jobs first, but who has waited goes up. Reads no run time, so anybody can deploy it."""
    return waiting.gpus - (now - waiting.submit_s) / 3600


ym.check_order(narrow_and_old)
print("narrow-and-old keeps what the engine relies on")

cluster = ym.Cluster.of("4x V100:8")
jobs = ym.generate("venus-like", jobs=600, load=1.0, gpus=cluster.gpus, seed=3)
for scheduler in ("fifo+skip", "smallest-first+skip", "narrow-and-old+skip"):
    summary = ym.summarise(ym.simulate(jobs, cluster, scheduler))
    mean_h, p99_h = summary["mean_wait_s"] / 3600, summary["p99_wait_s"] / 3600
    print(f"{scheduler:22s} mean wait {mean_h:6.2f} h, 99th percentile {p99_h:7.2f} h")
