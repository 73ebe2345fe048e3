"""Learners, networks and checkpoints; the only place that knows torch."""
