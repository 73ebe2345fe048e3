"""Where the oracles lie: a folder `shared` beside the repository."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared"


@pytest.fixture(scope="session")
def shared():
    """Return the folder of traces and oracle workloads, or skip."""
    if not SHARED.is_dir():
        pytest.skip("the folder 'shared' with traces and oracles is not beside the repository")
    return SHARED
