"""One node: a workload of real commands on its GPUs, or on slots that stand for some."""
