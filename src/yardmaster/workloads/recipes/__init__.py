"""Recipes: workloads composed of processes, one for each thing that jobs have."""
