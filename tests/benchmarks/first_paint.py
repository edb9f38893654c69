"""How long a reader waits for `%%compile`: from running the cell to the panes' data, in a fresh kernel.

    python tests/benchmarks/first_paint.py [--rounds 3] [--json tests/benchmarks/results/first_paint.json]

One process a round, with empty caches: an IPython shell in which torch is imported and the extension is loaded, as
a notebook's first cell does. "cold" is the first `%%compile` cell, "warm" the second, with another function. Both
until the output is made (the widget, its payload and both twins); the browser's part is in tests/explorer. A plain
shell has no event loop: "cpu" is a reader who does not pause at all between the first two cells. "paused" is one
who does, so that the kernel has loaded the stages by itself (explorer/preload.py).
Wall seconds have the machine's noise in them; CPU seconds (user + system, children included) have less.
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

CELLS = {
    "cold": "%%compile {line}f(x, y)\ndef f(x, y):\n    return torch.sin(x) + torch.cos(y)",
    "warm": "%%compile {line}g(x, y)\ndef g(x, y):\n    return torch.tanh(x) * (y - 1)",
}
TARGETS = {"cpu": "", "cpu_and_cuda": "--target cuda:90 ", "paused": ""}


def child(target: str) -> dict[str, dict[str, float]]:
    """Run both cells in this process and time them."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    setup = "import torch\nx, y = torch.randn(64, 32), torch.randn(64, 32)\n%load_ext explorer"
    shell.run_cell(setup, store_history=True).raise_error()
    if target == "paused":
        from explorer.preload import load_stages

        load_stages()
    found = {}
    for name, cell in CELLS.items():
        start = _clock()
        with open(os.devnull, "w") as nowhere:
            shown, sys.stdout = sys.stdout, nowhere
            try:
                done = shell.run_cell(cell.format(line=TARGETS[target]), store_history=True)
            finally:
                sys.stdout = shown
        done.raise_error()
        assert (
            "application/vnd.jupyter.widget-view+json"
            in shell.display_formatter.format(done.result)[0]
        )
        wall, cpu = (b - a for a, b in zip(start, _clock()))
        found[name] = {"wall": wall, "cpu": cpu}
    return found


def _clock() -> tuple[float, float]:
    times = os.times()
    cpu = times.user + times.system + times.children_user + times.children_system
    return time.perf_counter(), cpu


def measure(target: str, rounds: int) -> dict[str, dict[str, float]]:
    """Medians over rounds."""
    runs = [_round(target) for _ in range(rounds)]
    return {
        name: {
            clock: round(statistics.median(run[name][clock] for run in runs), 3)
            for clock in ("wall", "cpu")
        }
        for name in CELLS
    }


def _round(target: str) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        names = {"CUTAWAY_CACHE_DIR": folder, "TRITON_CACHE_DIR": folder, "IPYTHONDIR": folder}
        command = [sys.executable, __file__, "--child", target]
        done = subprocess.run(
            command, env={**os.environ, **names}, capture_output=True, text=True, check=True
        )
    result: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", choices=TARGETS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(options.child)))
        return
    import torch

    seconds = {target: measure(target, options.rounds) for target in TARGETS}
    result = {
        "seconds": seconds,
        "machine": {"python": platform.python_version(), "torch": torch.__version__, "cores": os.cpu_count(),
                    "load": round(os.getloadavg()[0], 1)},
    }  # fmt: skip
    print(json.dumps(result, indent=1))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
