"""Commands that run experiments of many runs."""
