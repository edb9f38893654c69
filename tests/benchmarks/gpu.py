"""GPU figures: eager, torch.compile and cutaway on memory-bound programs, reductions and a tiny call.

    python tests/benchmarks/gpu.py [--rounds 3] [--only SUBSTRING …] [--json tests/benchmarks/results/gpu.json]

One process per compiler and round, alternated, each with empty caches. Per program: `busy_us`, GPU
time of one call from CUDA events around a batch of calls that keeps the queue full; `cpu_us`, host
time to issue one call with the queue never full; error against float64, also in ulp of the output's
scale. A program that trains is called forward and backward. Inputs are random and rotate among sets larger
than the L2 cache. The roof is a measured device-to-device copy (bytes read + written); `moved` counts what
a call must read and write if each pass over the data is a kernel of its own.
A program that one compiler cannot run is listed under `failed` with the error.
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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gpu_programs import Program, caller, programs

COMPILERS = ("eager", "inductor", "cutaway")


def child(compiler: str, only: Sequence[str]) -> dict[str, dict[str, Any]]:
    import torch

    compile_ = _compiler(compiler)
    results: dict[str, dict[str, Any]] = {"copy": {"bytes_per_s": copy_bandwidth()}}
    roof = results["copy"]["bytes_per_s"]
    for name, program in programs().items():
        if only and not any(word in name for word in only):
            continue
        try:
            results[name] = measured(program, compile_, roof)
        except Exception as error:  # one compiler's failure must not cost the others' figures
            results[name] = {"failed": f"{type(error).__name__}: {error}"[:500]}
        torch.cuda.empty_cache()

    def tiny(x):
        return x + 1

    tiny_us = cpu_seconds(compile_(tiny), torch.ones(16, device="cuda")) * 1e6
    results["tiny_call"] = {"cpu_us": tiny_us}
    return results


def measured(program: Program, compile_: Callable[..., Any], roof: float) -> dict[str, float]:
    """The figures of one program under one compiler."""
    import torch

    torch.manual_seed(0)
    sets = [[draw() for draw in program.draw] for _ in range(2)]
    call = caller(program, compile_(program.fn))
    start = time.perf_counter()
    results = call(*sets[0])
    torch.cuda.synchronize()
    first = time.perf_counter() - start
    wide = [v.double() if v.is_floating_point() else v for v in sets[0]]
    truths = caller(program, program.fn)(*wide)
    errors = [(r.double() - t).abs().max().item() for r, t in zip(results, truths)]
    scales = [t.abs().max().item() * 2.0**-23 for t in truths]
    del results, truths, wide
    busy = busy_seconds(call, sets)
    return {
        "busy_us": busy * 1e6, "roof_share": program.moved / busy / roof,
        "max_error": max(errors), "max_error_ulp": max(e / s for e, s in zip(errors, scales)),
        "first_call_s": first,
    }  # fmt: skip


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
    parser.add_argument("--only", nargs="*", default=[], help="parts of the programs' names")
    parser.add_argument("--child", choices=COMPILERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print("RESULT " + json.dumps(child(options.child, options.only)))
        return
    rounds = [
        (name, _in_process(name, options.only)) for _ in range(options.rounds) for name in COMPILERS
    ]
    medians = {name: _medians([r for n, r in rounds if n == name]) for name in COMPILERS}
    report = {
        "machine": _machine(),
        "versions": _versions(),
        "rounds": options.rounds,
        "medians": medians,
        "failed": [
            (n, program, row["failed"])
            for n, r in rounds
            for program, row in r.items()
            if "failed" in row
        ],
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
        if not any("failed" in row[name] for row in rows)
    }


def _in_process(compiler: str, only: Sequence[str]) -> dict:
    with tempfile.TemporaryDirectory() as cache:
        env = {
            **os.environ,
            "CUTAWAY_CACHE_DIR": f"{cache}/c",
            "TORCHINDUCTOR_CACHE_DIR": f"{cache}/i",
        }
        env["TRITON_CACHE_DIR"] = f"{cache}/t"
        command = [sys.executable, __file__, "--child", compiler, "--only", *only]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{compiler} failed:\n{done.stderr[-3000:]}")
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
    return json.loads(line.removeprefix("RESULT "))


if __name__ == "__main__":
    main()
