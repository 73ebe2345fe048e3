"""The environment as Gymnasium knows it: observation, legal actions, reward; a rule plays it.

python examples/08_gymnasium.py
"""

import gymnasium
import numpy as np

import yardmaster  # noqa: F401  (registers the environments)

env = gymnasium.make(
    "yardmaster/PickJob-v0", cluster="2x V100:4", jobs=40, window=8, gpu_slots=8, reward="wait"
)
observation, info = env.reset(seed=1)
actions = len(info["action_mask"])
print(f"{len(observation)} numbers, {actions} actions: the jobs of the window, and waiting")

total, decisions, is_over = 0.0, 0, False
while not is_over:
    # The window is in the order of submission: the first legal job is FIFO that skips.
    action = int(np.flatnonzero(info["action_mask"])[0])
    observation, reward, terminated, truncated, info = env.step(action)
    total, decisions, is_over = total + float(reward), decisions + 1, terminated or truncated
print(f"{decisions} decisions; return {total:.4f}: minus the mean wait, in mean run times")
