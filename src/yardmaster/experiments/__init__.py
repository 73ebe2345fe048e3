"""Many runs: comparisons, the run directories they leave, and benchmarks."""
