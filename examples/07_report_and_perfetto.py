"""Look at it: one HTML page for a comparison, one trace file for ui.perfetto.dev.

Both are self-contained files. `yardmaster dashboard` shows whole folders of runs.

python examples/07_report_and_perfetto.py example-output
"""

import sys
import tempfile
from pathlib import Path

import yardmaster as ym
from yardmaster.report.perfetto import write_perfetto

out = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="yardmaster-"))
out.mkdir(exist_ok=True)

cluster = ym.Cluster.of("2x V100:8")
jobs = ym.generate("philly-like", jobs=150, load=0.9, gpus=cluster.gpus, seed=4)
comparison = ym.compare(jobs, cluster, ["fifo+strict", "sjf+easy"])

page = ym.write_report(comparison, out / "report.html")
print(f"{page.name}: {page.read_text('utf-8').count('<svg')} figures, no request leaves it")

trace = out / "schedule.json"
write_perfetto(comparison.schedules[0], trace, overwrite=True)
bars = trace.read_text("utf-8").count('"ph":"X"')
print(
    f"{trace.name}: {bars} bars on tracks of GPUs, the schedule of {comparison.rows[0].scheduler}"
)
