"""Real machines: the schedulers of the simulator, with a real clock, on jobs that really run."""
