"""Workloads made of workloads: parts, stretched ones, mixtures and samples."""
