"""Gymnasium finds the environment, in whatever order things are imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

SMALL = "compiled=False, jobs=10, episodes=2, window=4"
MAKE = f"""
env = gymnasium.make("yardmaster/PickJob-v0", {SMALL})
env.reset(seed=0)
print(env.action_space)
"""


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "imports",
    [
        "import gymnasium, yardmaster.envs.registration",
        "import yardmaster.envs.registration, gymnasium",
        "import yardmaster.envs.registration, gymnasium.vector, gymnasium",
        "import gymnasium, yardmaster.envs.registration as ours\nours.register()",
    ],
    ids=["after", "before", "before-a-part", "again"],
)
def test_the_order_of_imports_does_not_matter(imports: str):
    """The environment is registered once, whether Gymnasium is loaded before or after."""
    assert run_python(f"{imports}\n{MAKE}").strip() == "Discrete(5)"


def test_many_are_made_without_importing_yardmaster():
    """The name with its module works in a fresh process that has imported Gymnasium alone."""
    name = "yardmaster.envs.registration:yardmaster/PickJob-v0"
    code = f"""
import gymnasium
envs = gymnasium.make_vec("{name}", num_envs=3, vectorization_mode="vector_entry_point", {SMALL})
observations, infos = envs.reset(seed=0)
print(type(envs).__name__, observations.shape, infos["action_mask"].shape)
"""
    assert run_python(code).strip() == "PickJobVectorEnv (3, 90) (3, 5)"


def test_registering_loads_nothing():
    """Importing the registration loads neither Gymnasium nor NumPy."""
    code = "import sys, yardmaster.envs.registration\nprint(*sys.modules)"
    assert not {"gymnasium", "numpy"} & set(run_python(code).split())


def test_gymnasium_is_loaded_as_if_nobody_had_watched():
    """After Gymnasium was loaded, its loader is its own and nobody looks at imports any more."""
    code = """
import sys
finders = list(sys.meta_path)
import yardmaster.envs.registration
assert sys.meta_path != finders
import gymnasium
print(sys.meta_path == finders, type(gymnasium.__spec__.loader).__name__,
      gymnasium.__loader__ is gymnasium.__spec__.loader)
"""
    assert run_python(code).split() == ["True", "SourceFileLoader", "True"]


def test_both_environments_are_registered():
    """Picking jobs and picking schedulers are both found, singly and many in step."""
    code = """
import gymnasium, yardmaster.envs.registration as ours
for name, (single, many) in ours.ENTRY_POINTS.items():
    spec = gymnasium.spec(name)
    assert (spec.entry_point, spec.vector_entry_point) == (single, many)
env = gymnasium.make(ours.PICK_SCHEDULER, compiled=False, regimes=["base-low-2"], episodes=1)
env.reset(seed=0)
print(env.action_space)
"""
    assert run_python(code).strip() == "Discrete(5)"
