"""Makes `gymnasium.make("yardmaster/PickJob-v0")` work, without loading Gymnasium itself.

Gymnasium finds an environment only once the package that has it was imported. Importing this module
registers ours: at once if Gymnasium is loaded already, otherwise as soon as somebody loads it. So
the order of the imports does not matter, and whoever never asks for Gymnasium never waits for it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, cast

PICK_JOB = "yardmaster/PickJob-v0"
PICK_SCHEDULER = "yardmaster/PickScheduler-v0"
"""Names of the environments; the number goes up when the same actions mean something else."""

ENTRY_POINTS = {
    PICK_JOB: (
        "yardmaster.envs.pick_job:PickJobEnv",
        "yardmaster.envs.vector:PickJobVectorEnv",
    ),
    PICK_SCHEDULER: (
        "yardmaster.envs.choosing.pick_scheduler:PickSchedulerEnv",
        "yardmaster.envs.choosing.vector:PickSchedulerVectorEnv",
    ),
}
"""Where the single environment and the many in step are found."""


def register() -> None:
    """Tell Gymnasium of the environments, once."""
    import gymnasium

    for name, (single, many) in ENTRY_POINTS.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=single, vector_entry_point=many)


class _Loader:
    """Stands in for Gymnasium's loader once: hands over to it, then registers."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Let its own loader make the module."""
        module: ModuleType | None = self._own.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Let its own loader run the module, as if nobody had watched."""
        module.__loader__ = self._own
        if module.__spec__ is not None:
            module.__spec__.loader = self._own
        self._own.exec_module(module)
        register()


class _Watch:
    """Waits among the finders of modules until somebody imports Gymnasium."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Leave all modules but Gymnasium to the other finders."""
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            # A loader need only have two functions; the class to inherit from is slow to import.
            spec.loader = cast("Any", _Loader(spec.loader))
        return spec


if sys.modules.get("gymnasium") is not None:
    register()
else:
    sys.meta_path.insert(0, _Watch())
