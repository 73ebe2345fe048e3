"""Train a policy in a run folder, and use it like any other scheduler.

So short a training learns little, and what it learns depends on the machine's arithmetic, so no
results are printed. For a real one: yardmaster train --steps 1000000 -o runs/mine

python examples/09_train_a_policy.py example-output
"""

import sys
import tempfile
from pathlib import Path

import yardmaster as ym
from yardmaster.experiments.training import read_config, train

out = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="yardmaster-")) / "mine"
config = read_config(
    None,
    {
        "task": {"cluster": "1x V100:8", "jobs": 32, "window": 8, "gpu_slots": 8, "episodes": 32},
        "learner": {"name": "ppo", "steps_per_update": 1024},
        "train": {"steps": 4096, "envs": 16, "eval_every": 2048, "eval_episodes": 4, "threads": 1},
    },
)
result = train(config, out=out, overwrite=True)
print(f"training {result.status}; wrote {', '.join(sorted(one.name for one in out.glob('p*')))}")

cluster = ym.Cluster.of("1x V100:8")
jobs = ym.generate("lognormal", jobs=80, load=0.9, gpus=cluster.gpus, seed=9)
schedule = ym.simulate(jobs, cluster, f"policy:{out}")
print(f"the policy ran {ym.summarise(schedule)['finished']:.0f} of {len(jobs)} jobs, without torch")
