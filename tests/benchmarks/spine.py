"""How fast the spine is: cold compile, a tiny call, the import, what recording costs.

    python tests/benchmarks/spine.py [--rounds 5] [--calls] [--json tests/benchmarks/results/spine.json]

One process per compiler and round, alternated, each with empty caches. Times are wall seconds; the
machine's noise is in them, so read the ratios. Compile and import times are medians over the rounds; a
call's time is the fastest mean of 2000 calls in any round, the one figure that noise can only lengthen.
`--calls` measures the calls alone. torch loads parts of its own compiler when a
FakeTensorMode is first made; that import is timed apart ("fake_import") for both.
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

COMPILERS = ("cutaway", "inductor")


def child(compiler: str, calls_only: bool) -> dict[str, float]:
    """Measure one compiler in this process."""
    if calls_only:
        return _calls(_compiler(compiler))
    start = time.perf_counter()
    import torch

    seconds = {"import_torch": time.perf_counter() - start}
    start = time.perf_counter()
    compile_ = _compiler(compiler)
    seconds["import_compiler"] = time.perf_counter() - start
    start = time.perf_counter()
    from torch._subclasses.fake_tensor import FakeTensorMode

    FakeTensorMode()
    seconds["fake_import"] = time.perf_counter() - start

    def program(x, y):
        return torch.sin(x) + torch.cos(y)

    x, y = torch.randn(64, 64), torch.randn(64, 64)
    compiled = compile_(program)
    start = time.perf_counter()
    result = compiled(x, y)
    seconds["cold_compile"] = time.perf_counter() - start
    assert torch.allclose(result, program(x, y), atol=1e-6)
    return seconds | _calls(compile_)


def _calls(compile_) -> dict[str, float]:
    """Seconds of a call of a tiny function, compiled and in eager."""
    import torch

    def tiny(x):
        return x + 1

    small = torch.ones(4)
    compiled = _call_seconds(compile_(tiny), small)
    return {"tiny_call": compiled, "tiny_eager": _call_seconds(tiny, small)}


def _compiler(name: str):
    if name == "inductor":
        import torch

        return torch.compile
    import compiler_core as cc

    cc.compile  # noqa: B018  what a user's first use imports
    return lambda fn: cc.compile(fn, options={"strict": True})


def _call_seconds(fn, *args, calls: int = 2000, repeats: int = 9) -> float:
    """Fastest mean of a call over several repeats, after warming up."""
    for _ in range(50):
        fn(*args)
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(calls):
            fn(*args)
        best = min(best, (time.perf_counter() - start) / calls)
    return best


def recording_share(repeats: int = 5) -> float:
    """Share of compile time spent in recording decisions: seconds inside Recorder.decide over all."""
    import torch

    import compiler_core as cc
    from compiler_core.recording import Recorder
    from explorer.programs import MLP

    spent = 0.0
    plain = Recorder.decide

    def timed(self, *args, **kwargs):
        nonlocal spent
        start = time.perf_counter()
        try:
            return plain(self, *args, **kwargs)
        finally:
            spent += time.perf_counter() - start

    x, target = torch.randn(32, 64), torch.softmax(torch.randn(32, 64), -1)
    Recorder.decide = timed
    total = 0.0
    for _ in range(repeats):
        cc.reset()
        start = time.perf_counter()
        cc.compile(MLP())(x, target).backward()
        total += time.perf_counter() - start
    Recorder.decide = plain
    return spent / total


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--calls", action="store_true", help="measure calls only")
    parser.add_argument("--child", choices=COMPILERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print("RESULT " + json.dumps(child(options.child, options.calls)))
        return
    rounds = [
        (name, _in_process(name, options.calls))
        for _ in range(options.rounds)
        for name in COMPILERS
    ]
    table = {name: _summary([r for n, r in rounds if n == name]) for name in COMPILERS}
    ratios = {
        key: table["cutaway"][key] / table["inductor"][key]
        for key in ("cold_compile", "tiny_call")
        if key in table["cutaway"]
    }
    report = {
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": _versions(),
        "rounds": options.rounds,
        "seconds": table,
        "ratio_to_inductor": ratios,
    }
    if not options.calls:
        report["recording_share"] = recording_share()
    print(json.dumps(report, indent=1))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def _versions() -> dict[str, str]:
    from importlib import metadata

    return {name: metadata.version(name) for name in ("torch", "triton")}


def _summary(rows: list[dict[str, float]]) -> dict[str, float]:
    """The fastest of the calls, the median of the rest."""
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    return {
        key: (min if key.startswith("tiny") else statistics.median)(values)
        for key, values in columns.items()
    }


def _in_process(compiler: str, calls_only: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as cache:
        env = {
            **os.environ,
            "CUTAWAY_CACHE_DIR": f"{cache}/c",
            "TORCHINDUCTOR_CACHE_DIR": f"{cache}/i",
        }
        command = [sys.executable, __file__, "--child", compiler]
        command += ["--calls"] * calls_only
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
    return json.loads(line.removeprefix("RESULT "))


if __name__ == "__main__":
    main()
