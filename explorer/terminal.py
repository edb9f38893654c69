"""The text twin of the demonstration: what happened, as rich tables.

In: outcomes. Out: printed text; nothing is computed here but layout.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from explorer.demo import Outcome

__all__ = ["print_outcome", "print_summary"]


def print_outcome(outcome: Outcome, console: Console) -> None:
    """One program: counts, stages with errors, phases, times."""
    console.print(
        Panel(
            _facts(outcome), title=f"[bold]{outcome.name}[/]  {outcome.about}", title_align="left"
        )
    )
    console.print(_stages(outcome))
    console.print(_phases(outcome))


def print_summary(outcomes: Iterable[Outcome], console: Console) -> None:
    """All programs in one table."""
    table = Table(title="cutaway demo", title_justify="left", box=None)
    table.add_column("program", no_wrap=True)
    for name in ("graphs", "breaks", "guards", "kernels", "falls", "compiled", "eager", ""):
        table.add_column(name, justify="right")
    for o in outcomes:
        counts = (o.graphs, o.breaks, o.guards, o.kernels, o.fallbacks)
        table.add_row(
            o.name, *map(str, counts), seconds(o.compiled_call), seconds(o.eager_call), _mark(o.ok)
        )
    console.print(table)


def seconds(value: float) -> str:
    """A duration with a unit that fits: 12.3 µs, 4.56 ms, 1.20 s."""
    if value < 1e-3:
        return f"{value * 1e6:.1f} µs"
    return f"{value * 1e3:.2f} ms" if value < 1 else f"{value:.2f} s"


def _mark(ok: bool) -> Text:
    return Text("ok", style="green") if ok else Text("WRONG", style="bold red")


def _facts(o: Outcome) -> Text:
    ratio = o.eager_call / o.compiled_call
    lines = [
        f"{o.calls} calls: {o.graphs} graph(s), {o.breaks} break(s), {o.recompiles} recompile(s), {o.guards} guards, "
        f"{o.kernels} kernels, {o.library_calls} library call(s), {o.fallbacks} fallback(s)",
        f"error against float64 {o.max_error:.2e}, allowed {o.tolerance:.2e}",
        f"a call: compiled {seconds(o.compiled_call)}, eager {seconds(o.eager_call)} ({ratio:.2f} x); "
        f"all {o.calls} calls with compiling {seconds(o.first_call)}",
        *(f"why: {reason.removesuffix(': ')}" for reason in o.reasons),
    ]
    return Text("\n".join(lines))


def _stages(o: Outcome) -> Table:
    table = Table("stage", "part", "target", box=None, pad_edge=True)
    for name in ("max error", "tolerance", ""):
        table.add_column(name, justify="right")
    for s in o.stages:
        table.add_row(
            s.name, s.part, s.target, f"{s.max_error:.2e}", f"{s.tolerance:.2e}", _mark(s.ok)
        )
    return table


def _phases(o: Outcome) -> Table:
    """A bar per phase, in proportion to the longest."""
    table = Table("phase", "time", "", box=None, pad_edge=True)
    longest = max(o.phases.values(), default=1.0)
    for phase, value in o.phases.items():
        table.add_row(phase, seconds(value), "█" * max(1, round(30 * value / longest)))
    return table
