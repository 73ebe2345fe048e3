"""The core's modules as plain Python, whatever other tests have compiled in this process."""

import importlib
import sys

import pytest

import yardmaster.engine
import yardmaster.engine.core
from yardmaster.engine import compilation

PACKAGE = "yardmaster.engine.core"


@pytest.fixture
def plain(monkeypatch):
    """Return a function that imports a fresh copy of one module of the core, uncompiled."""
    before = yardmaster.engine.core
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        monkeypatch.delitem(sys.modules, name)
    # Kernels of the copies must not be compiled later on behalf of the real ones.
    monkeypatch.setattr(compilation, "_kernels", {})
    yield lambda name: importlib.import_module(f"{PACKAGE}.{name}")
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        del sys.modules[name]
    yardmaster.engine.core = before
