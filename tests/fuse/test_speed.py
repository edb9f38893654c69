"""Fusion takes time in proportion to the program."""

from __future__ import annotations

import time
from types import SimpleNamespace

from compiler_core.ir.parse import parse_program
from compiler_core.options import Target
from compiler_core.stages import Lowered


def layers(count: int) -> str:
    """Rows minus their sum, again and again: 4 nests a layer."""
    buffers, nests, last = ["  in x0: f32[64, 64] stride [64, 1]"], [], "x0"
    for n in range(count):
        out = "out" if n == count - 1 else "temp"
        buffers += [
            f"  temp e{n}: f32[64, 64] stride [64, 1]", f"  temp s{n}: f32[64] stride [1]",
            f"  temp d{n}: f32[64, 64] stride [64, 1]", f"  {out} y{n}: f32[64, 64] stride [64, 1]",
        ]  # fmt: skip
        nests.append(
            f"""
  nest exp_{n} for ea{n} < 64, eb{n} < 64:
    ex{n}: f32 = load {last}[64*ea{n} + eb{n}]
    ey{n}: f32 = tanh ex{n}
    store e{n}[64*ea{n} + eb{n}] = ey{n}
  nest sum_{n} for sa{n} < 64:
    ss{n}: f32 = sum over sb{n} < 64:
      sx{n}: f32 = load e{n}[64*sa{n} + sb{n}]
      yield sx{n}
    store s{n}[sa{n}] = ss{n}
  nest div_{n} for da{n} < 64, db{n} < 64:
    dx{n}: f32 = load e{n}[64*da{n} + db{n}]
    dy{n}: f32 = load s{n}[da{n}]
    dz{n}: f32 = div dx{n} dy{n}
    store d{n}[64*da{n} + db{n}] = dz{n}
  nest neg_{n} for na{n} < 64, nb{n} < 64:
    nx{n}: f32 = load d{n}[64*na{n} + nb{n}]
    nz{n}: f32 = neg nx{n}
    store y{n}[64*na{n} + nb{n}] = nz{n}"""
        )
        last = f"y{n}"
    return "\n".join(["program p(x0):", *buffers, *nests, f"  return {last}"])


def test_two_thousand_nests_in_ten_seconds(fusing: SimpleNamespace) -> None:
    program = parse_program(layers(500))
    assert len(program.body) == 2000
    lowered = Lowered(program, Target.parse("cpu"), "forward")
    context = fusing.context()
    context = type(context)(context.options.with_(strict=False), type(context.recorder)())
    from compiler_core.fuse import fuse

    start = time.process_time()
    fused = fuse(lowered, context)
    seconds = time.process_time() - start
    assert len(fused.kernels) < 200
    assert seconds < 10, f"{seconds:.1f} s"
