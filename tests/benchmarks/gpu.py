"""First GPU figures: eager, torch.compile and cutaway on memory-bound programs and a tiny call.

    python tests/benchmarks/gpu.py [--rounds 3] [--json tests/benchmarks/results/gpu.json]

One process per compiler and round, alternated, each with empty caches. Per program: `busy_us`, GPU
time of one call from CUDA events around a batch of calls that keeps the queue full; `cpu_us`, host
time to issue one call with the queue never full; error against float64. Inputs are random and rotate
among sets larger than the L2 cache. The roof is a measured device-to-device copy (bytes read + written).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMPILERS = ("eager", "inductor", "cutaway")


def programs():
    """name → (function, input shapes, bytes that one call must move)."""
    import torch
    from torch.nn import functional as F

    def sin_cos(x, y):
        return torch.sin(x) + torch.cos(y)

    def chain12(x, y):
        for _ in range(3):
            x = torch.tanh(x * 1.5 + y) - 0.5 * x
        return x

    def softmax(x):
        return torch.softmax(x, -1)

    def layer_norm(x, w, b):
        return F.layer_norm(x, (x.shape[-1],), w, b)

    big, rows = (16384, 8192), (8192, 4096)
    return {
        "sin_cos_16384x8192": (sin_cos, [big, big], 3 * 4 * big[0] * big[1]),
        "chain12_8192x4096": (chain12, [rows, rows], 3 * 4 * rows[0] * rows[1]),
        "softmax_8192x4096": (softmax, [rows], 2 * 4 * rows[0] * rows[1]),
        "layer_norm_8192x4096": (layer_norm, [rows, rows[1:], rows[1:]], 2 * 4 * rows[0] * rows[1]),
    }


def child(compiler: str) -> dict[str, dict[str, float]]:
    import torch

    compile_ = _compiler(compiler)
    results = {"copy": {"bytes_per_s": copy_bandwidth()}}
    for name, (fn, shapes, moved) in programs().items():
        sets = [[torch.randn(s, device="cuda") for s in shapes] for _ in range(2)]
        compiled = compile_(fn)
        start = time.perf_counter()
        result = compiled(*sets[0])
        torch.cuda.synchronize()
        first = time.perf_counter() - start
        part = [v[:64].double() if v.dim() == 2 else v.double() for v in sets[0]]
        error = (result[:64].double() - fn(*part)).abs().max().item()
        busy = busy_seconds(compiled, sets)
        results[name] = {
            "busy_us": busy * 1e6, "roof_share": moved / busy / results["copy"]["bytes_per_s"],
            "max_error": error, "first_call_s": first,
        }  # fmt: skip

    def tiny(x):
        return x + 1

    results["tiny_call"] = {
        "cpu_us": cpu_seconds(compile_(tiny), torch.ones(16, device="cuda")) * 1e6
    }
    return results


def _compiler(name: str):
    if name == "eager":
        return lambda fn: fn
    if name == "inductor":
        import torch

        return torch.compile
    import compiler_core as cc

    return lambda fn: cc.compile(fn, options={"strict": True})


def copy_bandwidth() -> float:
    """Bytes per second of a large device-to-device copy, read plus written."""
    import torch

    source = torch.randn(1 << 28, device="cuda")
    target = torch.empty_like(source)
    seconds = busy_seconds(lambda a: target.copy_(a), [[source]])
    return 2 * source.numel() * 4 / seconds


def busy_seconds(fn, sets, calls: int = 20, repeats: int = 7) -> float:
    """GPU seconds of a call: events around `calls` calls queued behind a sleeping kernel, median."""
    import torch

    for inputs in sets:
        fn(*inputs)
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(20_000_000)  # about 10 ms: the queue fills while the GPU waits
        start.record()
        for k in range(calls):
            fn(*sets[k % len(sets)])
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3 / calls)
    return statistics.median(times)


def cpu_seconds(fn, x, calls: int = 500, repeats: int = 9) -> float:
    """Host seconds to issue a call, best of several means; the device is drained in between."""
    import torch

    for _ in range(20):
        fn(x)
    best = float("inf")
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            fn(x)
        best = min(best, (time.perf_counter() - start) / calls)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", choices=COMPILERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print("RESULT " + json.dumps(child(options.child)))
        return
    rounds = [(name, _in_process(name)) for _ in range(options.rounds) for name in COMPILERS]
    medians = {name: _medians([r for n, r in rounds if n == name]) for name in COMPILERS}
    report = {
        "machine": _machine(),
        "versions": _versions(),
        "rounds": options.rounds,
        "medians": medians,
    }
    print(json.dumps(report, indent=1))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def _machine() -> str:
    import torch

    return f"{torch.cuda.get_device_name()}, Python {platform.python_version()}"


def _versions() -> dict[str, str]:
    from importlib import metadata

    return {name: metadata.version(name) for name in ("torch", "triton")}


def _medians(rows: list[dict]) -> dict:
    return {
        name: {key: statistics.median(row[name][key] for row in rows) for key in rows[0][name]}
        for name in rows[0]
    }


def _in_process(compiler: str) -> dict:
    with tempfile.TemporaryDirectory() as cache:
        env = {
            **os.environ,
            "CUTAWAY_CACHE_DIR": f"{cache}/c",
            "TORCHINDUCTOR_CACHE_DIR": f"{cache}/i",
        }
        env["TRITON_CACHE_DIR"] = f"{cache}/t"
        command = [sys.executable, __file__, "--child", compiler]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{compiler} failed:\n{done.stderr[-3000:]}")
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
    return json.loads(line.removeprefix("RESULT "))


if __name__ == "__main__":
    main()
