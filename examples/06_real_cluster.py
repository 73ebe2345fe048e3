"""A cluster as it really is: GPU types, checkpoints, failures.

python examples/06_real_cluster.py
"""

import tempfile
from pathlib import Path

import yardmaster as ym
from yardmaster.report.rules import rules_in_words

DESCRIPTION = """
description = "two generations of GPUs"

[[nodes]]
count = 2
gpus = 8
gpu_type = "A100"

[[nodes]]
count = 4
gpus = 8
gpu_type = "V100"

[checkpoints]
every_s = 1800
save_s = 20
restore_s = 60

[failures]
mtbf_h = 200
mttr_h = 4
retries = 3
"""

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "ours.toml"
    path.write_text(DESCRIPTION)
    cluster = ym.load_cluster(str(path))

for topic, words in rules_in_words(cluster):
    print(f"{topic}: {words}")

jobs = ym.load_workload("venus-like:kinds=measured", jobs=300, load=0.9, gpus=cluster.gpus, seed=1)
print()
for scheduler in ("fifo+easy", "fifo+easy@fastest", "srpt+preemptive"):
    summary = ym.summarise(ym.simulate(jobs, cluster, scheduler))
    print(
        f"{scheduler:18s} mean JCT {summary['mean_jct_s'] / 3600:5.2f} h,"
        f" preemptions {summary['preemptions']:.0f}, restarts {summary['restarts']:.0f},"
        f" goodput {summary['goodput']:.3f}"
    )
