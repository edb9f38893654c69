"""The compilers that the zoo runs under, and what each says of its graphs and breaks.

In: a name and a model. Out: `Watched`: the compiled model and a function that gives the counts so far
(`graphs`, `breaks`: [kind, reason, line, inner line], `guards`, …); the difference around a call is that call's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["COMPILERS", "Watched", "watched"]


@dataclass(frozen=True, slots=True)
class Watched:
    """A compiled model and the facts of its compiles so far."""

    call: Callable[..., Any]
    facts: Callable[[], dict[str, Any]]


@contextmanager
def _cutaway(model: torch.nn.Module, backend: str = "cutaway") -> Iterator[Watched]:
    import compiler_core as cc

    with cc.record() as recorder:
        recording = recorder.recording

        def facts() -> dict[str, Any]:
            versions = [v for frame in recording.frames for v in frame.versions]
            decisions = [d for v in versions for d in v.decisions]
            now = cc.stats()
            return {
                "graphs": now.graphs,
                "fallbacks": now.fallbacks,
                "recompiles": now.recompiles,
                "guards": sum(len(v.guards) for v in versions),
                "breaks": [_cutaway_break(d) for d in decisions if d.kind == "break"],
                "skipped": [[f.name, f.skipped] for f in recording.frames if f.skipped],
            }

        yield Watched(cc.compile(model, backend=backend, options={"strict": True}), facts)


def _cutaway_break(decision: Any) -> list[str]:
    inner = decision.data["stack"][-1] if decision.data.get("stack") else ""
    return [decision.outcome, decision.reason, _place(decision.data.get("where", "")), inner]


def _place(where: str) -> str:
    """A file of an installed package from the package on: the table is for every machine."""
    return where.rpartition("site-packages/")[2]


def _capture(model: torch.nn.Module) -> AbstractContextManager[Watched]:
    return _cutaway(model, "eager")


@contextmanager
def _dynamo(model: torch.nn.Module) -> Iterator[Watched]:
    from torch._dynamo.utils import counters

    graphs = 0

    def backend(graph: torch.fx.GraphModule, _: Any) -> Callable[..., Any]:
        nonlocal graphs
        graphs += 1
        return graph.forward

    def facts() -> dict[str, Any]:
        reasons = counters["graph_break"]
        return {
            "graphs": graphs,
            "breaks": [["", r, "", ""] for r, times in reasons.items() for _ in range(times)],
        }

    yield Watched(torch.compile(model, backend=backend), facts)


COMPILERS: dict[str, Callable[[torch.nn.Module], AbstractContextManager[Watched]]] = {
    "cutaway": _cutaway,
    "capture": _capture,
    "torch.compile": _dynamo,
}


@contextmanager
def watched(compiler: str, model: torch.nn.Module) -> Iterator[Watched]:
    """`model` under a row of COMPILERS, after the compiler has loaded what a first compile loads."""
    warm = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.0))
    with COMPILERS[compiler](warm) as warmed:
        warmed.call(torch.ones(3, 2)).sum().backward()
        warmed.call(torch.ones(4, 2))
    with COMPILERS[compiler](model) as under:
        yield under
