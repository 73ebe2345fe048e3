"""Replay fidelity: simulated waits held against those that a trace recorded."""
