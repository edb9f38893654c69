"""The text twin of the demonstration: what happened, as rich tables.

In: outcomes. Out: printed text; nothing is computed here but layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from compiler_core.devtools.compare_stages import StageCheck
from explorer.demo import Outcome

__all__ = ["print_outcome", "print_summary", "print_times"]


def print_outcome(outcome: Outcome, console: Console) -> None:
    """One program: counts, and its stages with their errors, frame by frame."""
    console.print(Panel(_facts(outcome), title=f"[bold]{outcome.name}[/]", title_align="left"))
    versions = list(dict.fromkeys(s.version for s in outcome.stages))
    for version in versions:
        title = f"{version}" if len(versions) > 1 else None
        console.print(_stages([s for s in outcome.stages if s.version == version], title))


def print_summary(outcomes: Iterable[Outcome], console: Console) -> None:
    """All programs in one table."""
    table = Table(title="cutaway demo", title_justify="left", box=None, padding=(0, 1, 0, 0))
    table.pad_edge = False  # nine columns fit into eighty
    table.add_column("program", no_wrap=True)
    for name in ("graphs", "breaks", "guards", "kernels", "falls", "compiled", "eager", ""):
        table.add_column(name, justify="right", no_wrap=True)
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
        o.about,
        f"{o.calls} calls: {o.graphs} graph(s), {o.breaks} break(s), {o.recompiles} recompile(s), {o.guards} guards, "
        f"{o.kernels} kernels, {o.library_calls} library call(s), {o.fallbacks} fallback(s)",
        f"error against float64 {o.max_error:.2e}, allowed {o.tolerance:.2e}",
        f"a call: compiled {seconds(o.compiled_call)}, eager {seconds(o.eager_call)} ({ratio:.2f} x); "
        f"all {o.calls} calls with compiling {seconds(o.first_call)}",
        *(f"why: {reason.removesuffix(': ')}" for reason in o.reasons),
    ]
    return Text("\n".join(lines))


def _stages(stages: Iterable[StageCheck], title: str | None) -> Table:
    table = Table("stage", "part", "target", box=None, pad_edge=True, title=title)
    table.title_justify, table.title_style = "left", "bold"
    for name in ("max error", "tolerance", ""):
        table.add_column(name, justify="right")
    for s in stages:
        table.add_row(
            s.name, s.part, s.target, f"{s.max_error:.2e}", f"{s.tolerance:.2e}", _mark(s.ok)
        )
    return table


def print_times(outcomes: Iterable[Outcome], console: Console) -> None:
    """Where the time of compiling went: a bar per program and stage, all on one scale."""
    times = {o.name: stage_times(o.phases) for o in outcomes}
    longest = max((value for row in times.values() for value in row.values()), default=1.0)
    table = Table(title="time of compiling, all on one scale", title_justify="left", box=None)
    for name in ("program", "stage"):
        table.add_column(name, no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name, row in times.items():
        for k, (stage, value) in enumerate(row.items()):
            shown = "" if k else name
            table.add_row(shown, stage, seconds(value), bar(value / longest, 30))
    console.print(table)


def stage_times(phases: Mapping[str, float]) -> dict[str, float]:
    """Seconds by stage: parts and targets of one stage are one (`lower forward cpu` is `lower`)."""
    totals: dict[str, float] = {}
    for phase, value in phases.items():
        stage = phase.partition(" ")[0]
        totals[stage] = totals.get(stage, 0.0) + value
    return totals


def bar(share: float, width: int) -> str:
    """A bar to an eighth of a column, so that small values differ too."""
    eighths = max(1, round(share * width * 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8]


_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
