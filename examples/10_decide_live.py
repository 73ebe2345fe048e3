"""The same scheduler object decides for a real queue: a state in, starts, order and reasons out.

`yardmaster live local`, `live slurm` and `serve` do this in a loop.

python examples/10_decide_live.py
"""

import math

import numpy as np

import yardmaster as ym
from yardmaster.live.decision import Decider
from yardmaster.live.state import State

# Two nodes of four GPUs; one job runs since second 200, three wait at second 5,000.
state = State.of(
    time_s=5_000.0,
    columns={
        "id": ["running", "wide", "short", "broad"],
        "submit_s": [100.0, 4_000.0, 4_500.0, 4_600.0],
        "duration_s": [9_000.0, 600.0, 60.0, 7_200.0],  # what is believed of run times
        "gpus": [3, 8, 1, 4],
    },
    since_s=[200.0, math.nan, math.nan, math.nan],
    cluster=ym.Cluster.of("2x A100:4"),
    holdings=np.array([[0, 0, 3]]),
    node_names=["n1", "n2"],
)
for scheduler in ("fifo+strict", "fifo+easy", "sjf+skip"):
    decision = Decider(scheduler).decide(state)
    print(scheduler)
    for row in decision.order:
        print(f"  {state.jobs.id[row]:6s} {decision.why(row)}")
