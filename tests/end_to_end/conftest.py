"""These tests share `agreement.py` and `programs.py`, which lie beside them; each starts without compiled versions."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def no_versions_of_earlier_tests():
    """Tests run the same small functions again and again: each begins as a new process would."""
    import torch

    import compiler_core as cc

    cc.reset()
    torch.manual_seed(0)
