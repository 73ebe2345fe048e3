"""When will my job start? A forecast with an interval, from a moment in the middle of a queue.

python examples/05_when_will_it_start.py
"""

import yardmaster as ym
from yardmaster.experiments.eta import predict
from yardmaster.experiments.snapshot import snapshot_of, typical_moment, with_newcomer

cluster = ym.Cluster.of("4x V100:8")
jobs = ym.generate("venus-like", jobs=400, load=1.0, gpus=cluster.gpus, seed=2)
schedule = ym.simulate(jobs, cluster, "fifo+easy")

moment = with_newcomer(snapshot_of(schedule, typical_moment(schedule)), gpus=8, estimate_s=4 * 3600)
ours = moment.queued[-1:]
print(f"{len(moment.running)} jobs run, {len(moment.queued)} wait, ours the last of them")

forecast = predict(moment, ours, simulations=100)
low_h, likely_h, high_h = (float(forecast.quantile(share)[0]) / 3600 for share in (0.1, 0.5, 0.9))
print(f"8 GPUs for 4 hours would start in {likely_h:.1f} h (80 %: {low_h:.1f} to {high_h:.1f} h)")
print(f"within 12 hours with probability {forecast.within(12 * 3600.0)[0]:.2f}")
