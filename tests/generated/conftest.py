"""The modules of this folder import each other by name; every test starts without compiled versions."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def afresh():
    import compiler_core as cc

    cc.reset()
    yield
    cc.reset()
