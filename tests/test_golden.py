"""The texts of the stages, kept in files and read like code.

`python -m pytest tests/test_golden.py --update-golden` writes them anew; the difference is reviewed.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

import compiler_core as cc

GOLDEN = Path(__file__).parent / "golden"
STAGES = ("capture", "joint", "forward", "backward", "lower", "fuse", "host", "kernels")


def wave(x, y):
    return torch.sin(x) + torch.cos(y)


def normed_rows(x, w):
    return torch.softmax(F.layer_norm(x @ w, (16,)), -1).sum()


def inputs(name: str) -> list[torch.Tensor]:
    torch.manual_seed(0)
    if name == "wave":
        return [torch.randn(8, 16), torch.randn(8, 16)]
    return [torch.randn(8, 32), torch.randn(32, 16, requires_grad=True)]


@pytest.mark.skipif(
    not torch.__version__.startswith("2.13."), reason="the texts are those of the pinned torch"
)
@pytest.mark.parametrize("program", [wave, normed_rows], ids=lambda f: f.__name__)
def test_stage_texts(program, pytestconfig: pytest.Config) -> None:
    with cc.record() as recorder:
        compiled = cc.compile(program, options={"strict": True, "also": ("cuda:90",), "threads": 1})
        for _ in range(2):
            values = inputs(program.__name__)
            torch.testing.assert_close(compiled(*values), program(*values))
    (version,) = recorder.recording.frames[0].versions
    parts = [
        f"======== {s.name} {s.part} {s.target}".rstrip() + f"\n{s.text.strip()}\n"
        for s in version.stages
        if s.name in STAGES
    ]
    text, path = "\n".join(parts), GOLDEN / f"{program.__name__}.txt"
    if pytestconfig.getoption("--update-golden"):
        path.write_text(text)
    assert text == path.read_text(), "see the module's docstring"
