"""What a compiled function returns has the strides of eager, in every layout of its inputs."""

from __future__ import annotations

import pytest
import torch
from agreement import STRICT, compiling

import compiler_core as cc


def made(*shape):
    return torch.rand(shape) + 0.5


LAYOUTS = {
    "columns": lambda: made(4, 3).t(),
    "channels last": lambda: made(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    "expanded": lambda: made(3, 1, 2).transpose(0, 2).expand(2, 4, 3),
    "every other": lambda: made(8, 6).t()[::2, ::2],
    "odd stride of one": lambda: made(3, 4).as_strided((3, 1, 4), (4, 7, 1)),
    "no elements": lambda: made(3, 0, 4).permute(2, 0, 1),
}
FUNCTIONS = {
    "numbers": lambda x: (2**x, x + 1, torch.xlogy(2.0, x), x > 1),
    "logsigmoid": lambda x: (torch.nn.functional.logsigmoid(x), x.exp()),
    "softmax": lambda x: (x.softmax(0), x.log_softmax(-1)),
    "two layouts": lambda x: (torch.xlogy(x.contiguous(), x), torch.copysign(x, x.contiguous())),
    "indexed": lambda x: (x.index_fill(-1, torch.tensor([0]), 1.0), x.roll(1, -1)) if x.numel() else x.flip(0),
    "kept": lambda x: (x.sum(-1, keepdim=True), x.amax(0, keepdim=True) if x.numel() else x * 2),
    "strides read": lambda x: ((2**x).stride(), (x + 1).stride(), torch.ldexp(x, torch.tensor(1))),
    "joined": lambda x: (torch.cat([x, x], -1), torch.stack([x, x]), x.masked_fill(x > 1, 0.0)),
}  # fmt: skip


CHOICES = [
    ("columns", "channels last", "expanded"),
    ("every other", "odd stride of one", "no elements"),
]


@pytest.mark.parametrize("chosen", CHOICES, ids=lambda c: c[0])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_strides(name, chosen):
    fn = FUNCTIONS[name]
    compiled = cc.compile(fn, options=STRICT)
    with compiling():
        for make in [*(LAYOUTS[k] for k in chosen), LAYOUTS[chosen[0]]]:
            for requires_grad in (False, True):
                x = make().requires_grad_(requires_grad)
                for ours, eager in zip(compiled(x), fn(x)):
                    if not isinstance(eager, torch.Tensor):
                        assert ours == eager
                        continue
                    assert (ours.shape, ours.stride()) == (eager.shape, eager.stride())
                    torch.testing.assert_close(ours, eager)
