"""Compare schedulers on the same jobs, and read the table.

python examples/01_compare_schedulers.py
"""

import yardmaster as ym

cluster = ym.Cluster.of("4x V100:8")
workloads = [
    ym.generate("venus-like", jobs=300, load=0.9, gpus=cluster.gpus, seed=seed) for seed in range(4)
]
table = ym.compare(workloads, cluster, ["fifo+easy", "sjf+easy", "qssf+skip", "las+preemptive"])
print(ym.table(table))

# Everything in the table is there for programs too.
best = table.rows[0]
print(f"\nfirst: {best.scheduler}, {best.information}; clear winner: {best.is_winner}")
