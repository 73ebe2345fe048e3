"""What is in a workload, as numbers: arrivals, demand, sizes, owners, and what the trace lacks."""
