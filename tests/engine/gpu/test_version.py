"""Versions of environments on a GPU."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from yardmaster.engine.gpu.version import FOLDER, version


@pytest.mark.parametrize("name", ["kernels.py", "choosing_kernels.py", "alignment.py", "menus.py"])
def test_a_changed_file_is_another_version(name: str, tmp_path: Path):
    """A kernel or a layout that differs is told apart; the same files are not."""
    shutil.copytree(FOLDER, tmp_path / "gpu")
    assert version(tmp_path / "gpu") == version()
    with (tmp_path / "gpu" / name).open("a") as file:
        file.write("# changed")
    assert version(tmp_path / "gpu") != version()
