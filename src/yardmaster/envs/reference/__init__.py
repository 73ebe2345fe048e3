"""The environment once more, as plain Python: short, readable, slow, and independent of the core.

It is the oracle that the compiled environment is tested against, and the place to read what the
environment does: `environment` for actions and time, `views` for what a policy sees, `earnings` for
rewards.
"""

from __future__ import annotations

from yardmaster.envs.reference.environment import ReferencePickJob

__all__ = ["ReferencePickJob"]
