"""What a call costs besides its operators, with 200 parameters: `python tests/benchmarks/call_overhead.py`.

The same captured graph runs under both compilers in eager, so the difference to the bare graph is guards and calling.
The two alternate and the least of many rounds counts, because the machine may be busy.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import compiler_core as cc

LAYERS, ROUNDS, CALLS = 100, 600, 10
RESULT = Path(__file__).parent / "results" / "call_overhead.json"


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS


def bare_graph(model: nn.Module, x: torch.Tensor) -> Callable[[], Any]:
    """The captured graph itself, on inputs at hand."""
    with cc.record(explore=True, inputs=True) as recorder:
        seen: list[Any] = []

        def backend(graph: Any, _: Any) -> Any:
            seen.append(graph.forward)
            return graph.forward

        cc.compile(model, backend=backend)(x)
    (inputs,) = recorder.inputs.values()
    return lambda: seen[0](*inputs)


def measure() -> dict[str, float]:
    """Microseconds a call, and the ratio of the overheads."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(LAYERS)))
    x = torch.randn(2, 4)
    with torch.no_grad():
        ours, theirs = cc.compile(model, backend="eager"), torch.compile(model, backend="eager")
        calls = {
            "graph": bare_graph(model, x),
            "cutaway": lambda: ours(x),
            "torch.compile": lambda: theirs(x),
        }
        for call in calls.values():
            call()
        best = dict.fromkeys(calls, float("inf"))
        for _ in range(ROUNDS):
            for name, call in calls.items():
                best[name] = min(best[name], seconds(call))
    found = {name: round(value * 1e6, 1) for name, value in best.items()}
    overheads = [best[name] - best["graph"] for name in ("cutaway", "torch.compile")]
    return found | {
        "parameters": 2 * LAYERS,
        "ratio of overheads": round(overheads[0] / overheads[1], 2),
    }


if __name__ == "__main__":
    result = measure()
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
