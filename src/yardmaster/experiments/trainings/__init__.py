"""Studies of many trainings: each a run folder, several at a time, resumable, then judged."""
