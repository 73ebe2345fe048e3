"""Picking jobs one decision at a time: what a policy sees, does and earns, on the compiled core."""
