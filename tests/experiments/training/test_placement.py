"""Where the environments of a training run are, and what is said about it."""

from __future__ import annotations

import pytest

from yardmaster.agents.learners import LEARNERS
from yardmaster.engine.gpu import availability
from yardmaster.engine.gpu.availability import GpuStatus
from yardmaster.envs.choosing.task import CHOOSING_TASKS
from yardmaster.envs.task import Task
from yardmaster.errors import YardmasterError
from yardmaster.experiments.training.choosing import Choosing
from yardmaster.experiments.training.picking import Picking
from yardmaster.experiments.training.placement import (
    CHOOSE_ON_GPU,
    ON_GPU,
    in_whole_tiles,
    why_not_on_gpu,
)
from yardmaster.testing.toys import OneMachine


@pytest.fixture
def status(monkeypatch: pytest.MonkeyPatch):
    """Return a function that lets a GPU be there, or not."""

    def found(why: str = "", *, is_usable: bool = False) -> None:
        answer = GpuStatus(is_usable=is_usable, device="", why=why)
        monkeypatch.setattr(availability, "gpu_status", lambda: answer)

    return found


@pytest.fixture
def torch_has_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let torch have a GPU; nothing is ever put there."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)


def opened(kind, told: list[str], task: object, **options):
    settings = {"size": 5, "seed": 0, "threads": 1, "device": "cuda", "learner": "ppo"}
    return kind.open_batch(task, announce=told.append, **(settings | options))


@pytest.mark.slow
def test_training_on_a_played_gpu(passes_on_played_gpu):
    """Runs finish, are resumed, imitate first, and say what is where."""
    assert passes_on_played_gpu("test_training.py")


@pytest.mark.usefixtures("toy", "torch_has_cuda")
@pytest.mark.parametrize("learner", [name for name in LEARNERS if name not in ON_GPU])
def test_learners_that_remember_stay_on_the_cpu(learner: str, status):
    """Even with a GPU; one sentence says so."""
    status(is_usable=True)
    told: list[str] = []
    assert isinstance(opened(Picking(), told, Task(), learner=learner), OneMachine)
    (line,) = told
    assert line.startswith("The network is on the GPU, the environments stay on the CPU: ")
    assert learner in line


@pytest.mark.usefixtures("toy", "torch_has_cuda")
def test_without_its_compiler_environments_stay_on_the_cpu(status):
    """What is missing is the reason given."""
    status("numba-cuda is not installed; it is needed.")
    told: list[str] = []
    assert isinstance(opened(Picking(), told, Task()), OneMachine)
    (line,) = told
    assert line.endswith("stay on the CPU: numba-cuda is not installed; it is needed.")


@pytest.mark.usefixtures("toy")
def test_on_the_cpu_nothing_is_said(status):
    """A training on the CPU does not talk about GPUs."""
    status(is_usable=True)
    told: list[str] = []
    assert isinstance(opened(Picking(), told, Task(), device="cpu"), OneMachine)
    assert not told


@pytest.mark.parametrize(
    ("kind", "task"), [(Picking(), Task()), (Choosing(), CHOOSING_TASKS["regimes"])]
)
def test_without_cuda_nothing_is_opened(kind, task, monkeypatch: pytest.MonkeyPatch):
    """Torch must have the device before environments are laid out; nothing is announced."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    told: list[str] = []
    with pytest.raises(YardmasterError, match="no CUDA device"):
        opened(kind, told, task)
    assert not told


@pytest.mark.parametrize(("asked", "given"), [(1, 32), (32, 32), (33, 64), (64, 64)])
def test_environments_are_rounded_up(asked: int, given: int):
    """To a multiple of 32, and said where it changes anything."""
    told: list[str] = []
    assert in_whole_tiles(asked, told.append) == given
    assert [f"there are {given} in place of envs = {asked}" in line for line in told] == (
        [] if asked == given else [True]
    )
    assert in_whole_tiles(asked, None) == given


def test_ppo_needs_nothing_but_a_gpu(status):
    """With one there is no reason against it; where schedulers are chosen, nor against MetaDQN."""
    status(is_usable=True)
    assert why_not_on_gpu("ppo") is None
    assert why_not_on_gpu("meta-dqn", CHOOSE_ON_GPU) is None
    assert why_not_on_gpu("sac", CHOOSE_ON_GPU) == (
        "sac remembers its steps there; ppo and meta-dqn do not"
    )
