"""What block sizes, warps, parts and hints do to three reductions: the grounds of the fixed rules.

    python tests/benchmarks/reduction_shapes.py [--json FILE]

Times hand-written kernels of the same form as generated ones, by `busy_seconds` of gpu.py: layer norm of
8192 x 4096 (`codegen/triton/configs.py`), the parts of a sum over 1e8 elements and of one down 1024 columns of 65536 rows
(`fuse/split_rules.py`). Prints each variant with its share of the roof, best first.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path

import torch
import triton
import triton.language as tl
from gpu import busy_seconds, copy_bandwidth
from triton.language.extra import libdevice


@triton.jit
def layer_norm(
    x_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, y_ptr,
    XBLOCK: tl.constexpr, RBLOCK: tl.constexpr, EARLY: tl.constexpr, HINTS: tl.constexpr,
):  # fmt: skip
    row = (tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK))[:, None]
    column = tl.arange(0, RBLOCK)[None, :]
    once: tl.constexpr = "evict_first" if HINTS else ""
    often: tl.constexpr = "evict_last" if HINTS else ""
    x = tl.load(x_ptr + row * RBLOCK + column, eviction_policy=once)
    if EARLY:
        w = tl.load(w_ptr + column, eviction_policy=often)
        b = tl.load(b_ptr + column, eviction_policy=often)
    mean = tl.div_rn(tl.sum(x, 1, keep_dims=True), 4096.0)
    tl.store(mean_ptr + row, mean)
    centred = x - mean
    rstd = libdevice.rsqrt(tl.div_rn(tl.sum(centred * centred, 1, keep_dims=True), 4096.0) + 1e-5)
    tl.store(rstd_ptr + row, rstd)
    if not EARLY:
        w = tl.load(w_ptr + column, eviction_policy=often)
        b = tl.load(b_ptr + column, eviction_policy=often)
    y = centred * rstd * w + b
    tl.store(y_ptr + row * RBLOCK + column, y, eviction_policy=once)


@triton.jit
def sum_parts(
    x_ptr, parts_ptr, length, RBLOCK: tl.constexpr, PART: tl.constexpr, WIDE: tl.constexpr
):
    start = tl.program_id(0) * PART
    if PART == RBLOCK:
        place = start + tl.arange(0, RBLOCK)
        x = tl.load(x_ptr + place, mask=place < length, other=0.0)
        total = tl.sum(x.to(tl.float64) if WIDE else x, 0)
    else:
        part = tl.full([RBLOCK], 0.0, tl.float32)
        lost = tl.full([RBLOCK], 0.0, tl.float32)
        for first in range(0, PART, RBLOCK):
            place = start + first + tl.arange(0, RBLOCK)
            x = tl.load(x_ptr + place, mask=place < length, other=0.0)
            after = part + x
            added = after - part
            lost += (part - (after - added)) + (x - added)
            part = after
        total = tl.sum(part.to(tl.float64) + lost.to(tl.float64), 0)
    tl.store(parts_ptr + tl.program_id(0), total.to(tl.float64))


@triton.jit
def column_parts(
    x_ptr, parts_ptr,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    xindex = (tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK))[:, None]
    column, block = xindex % COLUMNS, xindex // COLUMNS
    part = tl.full([XBLOCK, RBLOCK], 0.0, tl.float32)
    lost = tl.full([XBLOCK, RBLOCK], 0.0, tl.float32)
    for first in range(0, ROWS, RBLOCK):
        row = (first + tl.arange(0, RBLOCK))[None, :]
        x = tl.load(x_ptr + ROWS * COLUMNS * block + COLUMNS * row + column)
        if EXACT:
            after = part + x
            added = after - part
            lost += (part - (after - added)) + (x - added)
            part = after
        else:
            part += x
    total = tl.sum(part.to(tl.float64) + lost.to(tl.float64), 1, keep_dims=True)
    tl.store(parts_ptr + xindex, total.to(tl.float32))


def layer_norms(roof: float):
    sets = [[torch.randn(8192, 4096, device="cuda")] for _ in range(2)]
    w, b = torch.randn(4096, device="cuda"), torch.randn(4096, device="cuda")
    mean, rstd = torch.empty(8192, device="cuda"), torch.empty(8192, device="cuda")
    y = torch.empty(8192, 4096, device="cuda")
    moved = 2 * y.numel() * 4
    for rows, warps, early, hints in itertools.product((1, 2), (4, 8, 16), (0, 1), (0, 1)):

        def call(x, rows=rows, warps=warps, early=early, hints=hints):
            layer_norm[(8192 // rows,)](
                x, w, b, mean, rstd, y, rows, 4096, early, hints, num_warps=warps
            )

        seconds = busy_seconds(call, sets)
        torch.testing.assert_close(y, torch.nn.functional.layer_norm(sets[-1][0], (4096,), w, b))
        yield {
            "rows": rows,
            "warps": warps,
            "early": early,
            "hints": hints,
            **_figures(seconds, moved, roof),
        }


def sums(roof: float):
    sets = [[torch.randn(10**8, device="cuda")] for _ in range(2)]
    parts = torch.zeros(10**8 // 1024 + 1, dtype=torch.float64, device="cuda")
    for (part, block), warps, wide in itertools.product(
        ((4096, 4096), (8192, 8192), (16384, 16384), (16384, 2048), (32768, 4096), (65536, 4096)),
        (4, 8, 16),
        (0, 1),
    ):
        if part != block and wide:
            continue
        count = -(-(10**8) // part)

        def call(x, part=part, block=block, warps=warps, wide=wide, count=count):
            sum_parts[(count,)](x, parts, 10**8, block, part, wide, num_warps=warps)

        seconds = busy_seconds(call, sets)
        torch.testing.assert_close(
            parts[:count].sum(), sets[-1][0].sum(dtype=torch.float64), rtol=1e-3, atol=1e-1
        )
        yield {
            "part": part,
            "block": block,
            "warps": warps,
            "wide": wide,
            **_figures(seconds, 4 * 10**8, roof),
        }


def columns(roof: float):
    sets = [[torch.randn(65536, 1024, device="cuda")] for _ in range(2)]
    parts = torch.empty(65536 // 128, 1024, device="cuda")
    for rows, (xblock, rblock), warps, exact in itertools.product(
        (256, 512, 1024), ((32, 64), (64, 32), (64, 64), (128, 16), (128, 32)), (4, 8), (0, 1)
    ):
        count = 65536 // rows

        def call(x, rows=rows, xblock=xblock, rblock=rblock, warps=warps, exact=exact, count=count):
            grid = (count * 1024 // xblock,)
            column_parts[grid](x, parts, 1024, rows, xblock, rblock, exact, num_warps=warps)

        seconds = busy_seconds(call, sets)
        torch.testing.assert_close(parts[:count].sum(0), sets[-1][0].sum(0), rtol=1e-3, atol=1e-2)
        shape = {"rows": rows, "xblock": xblock, "rblock": rblock, "warps": warps, "exact": exact}
        yield {**shape, **_figures(seconds, 4 * 65536 * 1024, roof)}


def _figures(seconds: float, moved: int, roof: float) -> dict[str, float]:
    return {"busy_us": round(seconds * 1e6, 2), "roof_share": round(moved / seconds / roof, 4)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    roof = copy_bandwidth()
    report = {"roof_bytes_per_s": roof}
    for family in (layer_norms, sums, columns):
        rows = sorted(family(roof), key=lambda row: row["busy_us"])
        report[family.__name__] = rows
        print(family.__name__, *rows, sep="\n  ")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
