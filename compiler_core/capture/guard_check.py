"""Guards as code: one printable Python function for each version of a frame.

In: the facts of a capture. Out: a `GuardTable`: its `source`, a function `check(L)` over the
frame's locals; `explain(L)`, the verdict of every row; `root()`, the form torch's hook calls.

The one idea: the function is written, not assembled. Torch's state first, then plain values in the
order the trace met them (a value's type stands before its contents), then all tensors in one call
of torch's own checker, then what needs tensors to be what they were. A path that several
conditions share is walked once.
"""

from __future__ import annotations

import builtins
import linecache
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch._C._dynamo import guards as torch_guards

from compiler_core.capture import guard_predicates
from compiler_core.capture.guard_conditions import open_dimensions, symbolic_strides
from compiler_core.capture.guard_explain import explain_rows
from compiler_core.capture.guard_facts import Fact
from compiler_core.capture.guard_kinds import KINDS
from compiler_core.capture.guard_paths import Paths
from compiler_core.capture.guards import Guards
from compiler_core.capture.module_members import store_of
from compiler_core.errors import INTERNAL, InternalError
from compiler_core.stages import GuardRow

__all__ = ["GuardTable", "Verdict", "compile_guards"]

Verdict = tuple[GuardRow, bool, str]  # row, does it hold, the actual value as text


@dataclass(slots=True)
class GuardTable:
    """The guards of one version. `function` may raise; `check` never does.

    `hits` counts the calls through `root()` that ran this version.
    """

    rows: tuple[GuardRow, ...]
    source: str
    function: Callable[[dict[str, Any]], bool]
    namespace: dict[str, Any]
    hits: int = 0

    def check(self, L: dict[str, Any]) -> bool:
        """Do all guards hold for a frame with these locals? An exception means no."""
        try:
            return bool(self.function(L))
        except Exception:
            return False

    def explain(self, L: dict[str, Any]) -> list[Verdict]:
        """Every row on its own: does it hold, and what was found. Never raises."""
        return explain_rows(self.rows, self.namespace, L)

    def first_failure(self, L: dict[str, Any]) -> tuple[GuardRow, str] | None:
        """The first row that does not hold, and the actual value."""
        for row, holds, actual in self.explain(L):
            if not holds:
                return row, actual
        return None

    def root(self) -> Any:
        """A `RootGuardManager` with the function as its only guard (torch counts a raise as no)."""

        check = self.function

        def counted(L: dict[str, Any]) -> bool:
            if check(L):
                self.hits += 1
                return True
            return False

        root = torch_guards.RootGuardManager()
        root.add_lambda_guard(counted, [row.check for row in self.rows], None)
        return root


def compile_guards(
    rows: tuple[GuardRow, ...], guards: Guards, L: dict[str, Any], G: dict[str, Any]
) -> GuardTable:
    """The table of `guards`, whose rows are `rows`, for frames with globals `G`.

    Call it in the torch state of the frame (no fake mode): tensors' dispatch keys are read here.
    Raises InternalError when a guard fails on the very values `L` it was made from, since such a
    version would never be used and the frame compiled for ever.
    """
    facts = [fact for fact, _ in guards.facts()]
    namespace = _namespace(guards, facts, G)
    source, function = _compile(facts, guards, namespace)
    table = GuardTable(rows, source, function, namespace)
    if not table.check(L):
        failure = table.first_failure(L)
        detail = f"{failure[0].check} (now {failure[1]})" if failure else source
        raise InternalError(INTERNAL, f"a guard fails on the values it was made from: {detail}")
    return table


def _namespace(guards: Guards, facts: list[Fact], G: dict[str, Any]) -> dict[str, Any]:
    """What the check function can name besides `L`."""
    functions = {name: getattr(guard_predicates, name) for name in guard_predicates.__all__}
    own = {
        name: _tensor_checker([value]) if isinstance(value, Fact) else value
        for name, value in guards.constants.items()
    }
    return {**functions, **own, "torch": torch, "builtins": builtins, "G": G}


def _tensor_checker(facts: list[Fact]) -> Callable[..., bool]:
    """Torch's compiled checker of type, dtype, device, keys, sizes and strides of tensors."""
    sizes, strides = zip(*map(_sizes_and_strides, facts))
    checker: Callable[..., bool] = torch_guards.TensorGuards(
        *(fact.value for fact in facts),
        dynamic_dims_sizes=list(sizes),
        dynamic_dims_strides=list(strides),
    ).check
    return checker


def _sizes_and_strides(fact: Fact) -> tuple[list[int | None], list[int | None]]:
    """Sizes and strides to compare; None for those that `open_dimensions` speaks about."""
    tensor, dynamic = fact.value, fact.dynamic
    sizes = [None if i in dynamic else n for i, n in enumerate(tensor.shape)]
    if tensor.layout != torch.strided:
        return sizes, [None] * tensor.dim()
    follows = symbolic_strides(tensor, dynamic)
    return sizes, [None if i in follows else n for i, n in enumerate(tensor.stride())]


# ------------------------------------------------------------------------------ the function


def _compile(
    facts: list[Fact], guards: Guards, namespace: dict[str, Any]
) -> tuple[str, Callable[[dict[str, Any]], bool]]:
    view = guards.view
    source = _function_source(facts, guards, namespace)
    name = f"<guards of {view.code.co_name} at {view.where}>"
    scope = dict(namespace)
    exec(compile(source, name, "exec"), scope)
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    return source, scope["check"]


def _function_source(facts: list[Fact], guards: Guards, namespace: dict[str, Any]) -> str:
    plain = [f for f in facts if KINDS[f.kind].rank < 2]
    plain.sort(key=lambda f: KINDS[f.kind].rank)
    late = [f for f in facts if KINDS[f.kind].rank > 2]
    view = guards.view
    paths = Paths(facts, guards.inject, lambda source: store_of(source, view.locals, view.globals))
    lines = [line for fact in plain for line in _condition(fact, paths, guards)]
    lines += _tensor_lines([f for f in facts if f.kind == "tensor"], paths, guards, namespace)
    lines += [line for fact in late for line in _condition(fact, paths, guards)]
    return "\n".join(["def check(L):", *(f"    {line}" for line in lines), "    return True", ""])


def _condition(fact: Fact, paths: Paths, guards: Guards) -> Iterable[str]:
    """The lines that end the check when a fact no longer holds."""
    if fact.source is None:
        return [_refuse(KINDS[fact.kind].check(fact.place, fact, guards.inject), fact)]
    text = paths.text(fact.source)
    return [
        *paths.new_lines(),
        _refuse(KINDS[fact.kind].check(text, fact, guards.inject), fact),
    ]


def _refuse(condition: str, fact: Fact) -> str:
    note = f"{fact.line}: {fact.reason}" if fact.line else fact.reason
    return f"if not ({condition}): return False  # {note}".replace("\n", " ")


def _tensor_lines(
    facts: list[Fact], paths: Paths, guards: Guards, namespace: dict[str, Any]
) -> list[str]:
    """One call for all tensor objects; a tensor found at a second source is checked on its own."""
    if not facts:
        return []
    first = {id(fact.value): fact for fact in reversed(facts)}
    together = [fact for fact in facts if first[id(fact.value)] is fact]
    namespace["check_tensors"] = _tensor_checker(together)
    names = {id(fact): paths.text(fact.source) for fact in facts if fact.source}
    lines = [*paths.new_lines()]
    call = ", ".join(names[id(fact)] for fact in together)
    lines.append(f"if not check_tensors({call}): return False")
    for fact in facts:
        own = [] if fact in together else [f"{guards.inject(fact, 'tensor')}({names[id(fact)]})"]
        conditions = [*own, *open_dimensions(names[id(fact)], fact)]
        lines += [_refuse(" and ".join(conditions), fact)] if conditions else []
    return lines
