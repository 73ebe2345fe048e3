"""Trained policies as schedulers: their files, and their networks as rows for the core."""
