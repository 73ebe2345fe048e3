"""A real, small Slurm cluster on one machine, without systemd, to try things on."""
