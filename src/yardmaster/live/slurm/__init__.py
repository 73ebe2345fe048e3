"""Beside a Slurm that already runs: read its queue, decide, and nudge its order by SiteFactor."""
