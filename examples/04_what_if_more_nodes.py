"""Capacity questions: what would four more nodes bring, and what a fifth more work?

python examples/04_what_if_more_nodes.py
"""

import yardmaster as ym
from yardmaster.experiments.whatif import whatif
from yardmaster.experiments.whatif_changes import adding, removing, scaling_load

cluster = ym.load_cluster("demo")
workloads = [
    ym.generate("venus-like", jobs=400, load=0.9, gpus=cluster.gpus, seed=seed) for seed in range(4)
]
changes = [adding("4x V100:8"), removing("2x V100:8"), scaling_load(1.2)]
answer = whatif(workloads, cluster, "fifo+easy", changes, objective="mean_wait_s")
for row in answer.rows:
    wait, difference = row.metrics["mean_wait_s"], row.differences["mean_wait_s"]
    print(
        f"{row.change:17s} {row.gpus} GPUs, load ×{row.load:.1f}:"
        f" mean wait {wait.mean / 60:6.1f} min, {100 * difference.mean:+.0f} %"
        f" [{100 * difference.low:+.0f}, {100 * difference.high:+.0f}]"
    )
