"""Guards print the same text in every process: names, not addresses."""

from __future__ import annotations

import torch
from agreement import STRICT

import compiler_core as cc


class Scale:
    """An object without a name, compared by identity."""

    factor = 2.0


SCALE = Scale()


def uses_globals(x):
    return torch.sin(x) * SCALE.factor + torch.nn.functional.relu(x)


def test_no_addresses():
    with cc.record() as recorder:
        cc.compile(uses_globals, options=STRICT)(torch.ones(3))
    rows = [row for frame in recorder.recording.frames for v in frame.versions for row in v.guards]
    assert any(row["kind"] == "identity" for row in rows)
    assert not any(" at 0x" in str(row) for row in rows)
    assert any(row["expected"] == "module torch" for row in rows)
