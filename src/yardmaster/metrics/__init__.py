"""What happened: numbers computed from a schedule, and from nothing else."""
