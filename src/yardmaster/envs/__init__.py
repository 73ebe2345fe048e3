"""The engine as environments: pick a job; one, thousands, with or without Gymnasium."""
