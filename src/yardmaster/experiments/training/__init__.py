"""Training runs: a learner, a task, a folder; resumable, and judged on validation episodes."""

from yardmaster.experiments.training.config import TrainConfig, TrainSettings, read_config
from yardmaster.experiments.training.run import train
from yardmaster.experiments.training.standing import Progress, TrainResult

__all__ = ["Progress", "TrainConfig", "TrainResult", "TrainSettings", "read_config", "train"]
