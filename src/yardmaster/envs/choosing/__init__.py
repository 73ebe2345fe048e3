"""Choosing schedulers as environments: tasks over many regimes, rewards, batches, Gymnasium."""
