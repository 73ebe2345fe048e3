"""Experiments of many runs: stated as factors, run by many processes or machines, never lost."""
