"""How a reduction folds in C: one row per kind, with columns for floats and for integers.

In: a kind of `ir/ops.py: REDUCTIONS`, the types of the value and the result. Out: a `Fold`: the
accumulators to declare, the statement that takes in one value, the statement that merges two
accumulators, the result.

Two patterns are measured rather than believed. Sums of floats run in `double`: the conversion costs
less than the memory that it waits for, and the error stays below that of eager's pairwise sums.
Largest and smallest keep a second accumulator for NaN: one comparison that also tests for NaN is a
chain four times as long, and `reduction(max:)`, which is fast, drops NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compiler_core.codegen.cpp.half import rounded
from compiler_core.ir.dtypes import DType

__all__ = ["Accumulator", "Fold", "fold_of"]


@dataclass(frozen=True, slots=True)
class Accumulator:
    """A variable: what is added to the reduction's name, its C type, its start."""

    suffix: str
    c_type: str
    start: str


@dataclass(frozen=True, slots=True)
class Fold:
    """A reduction over accumulators. Texts have `{a0}`, `{a1}` for them, `{value}`, `{position}`,
    and `{b0}`, `{b1}` for accumulators of a later part."""

    accumulators: tuple[Accumulator, ...]
    take: tuple[str, ...]
    merge: tuple[str, ...]
    result: str
    simd: str = ""  # the clause that lets a loop keep one accumulator per lane; "" if none does


def fold_of(kind: str, value: DType, result: DType) -> Fold:
    """The row for a kind and types. Raises KeyError for a kind without a row."""
    return _ROWS[kind](value, result)


def _sum(value: DType, result: DType) -> Fold:
    """In `double` for smaller floats; in the type itself for doubles, with what roundings lose beside it."""
    if not result.is_float:
        return _plain("+", "0", "", result)
    if result.name != "f64":
        return _wide("+", Accumulator("_wide", "double", "0.0"), result, simd=True)
    return Fold(
        (Accumulator("_sum", "double", "0.0"), Accumulator("_lost", "double", "0.0")),
        ("{a1} += v_lost({a0}, {value});", "{a0} += {value};"),
        ("{a1} += {b1} + v_lost({a0}, {b0});", "{a0} += {b0};"),
        "v_is_finite({a1}) ? {a0} + {a1} : {a0}",
        "reduction(+ : {a0}, {a1})",
    )


def _product(value: DType, result: DType) -> Fold:
    """In `double` for smaller floats, in `long double` (no vector lanes) for doubles."""
    if not result.is_float:
        return _plain("*", "1", "", result)
    if result.name == "f64":
        return _wide("*", Accumulator("_wide", "long double", "1.0L"), result, simd=False)
    return _wide("*", Accumulator("_wide", "double", "1.0"), result, simd=True)


def _wide(operator: str, accumulator: Accumulator, result: DType, simd: bool) -> Fold:
    """An operator in a type wider than the result's, rounded once."""
    return Fold(
        (accumulator,),
        (f"{{a0}} {operator}= {{value}};",),
        (f"{{a0}} {operator}= {{b0}};",),
        rounded(f"({result.c_compute}){{a0}}", result),
        f"reduction({operator} : {{a0}})" if simd else "",
    )


def _plain(operator: str, start: str, test: str, result: DType) -> Fold:
    """An operator that C and OpenMP have on the type itself."""
    accumulator = Accumulator("", result.c_compute, start)
    take = f"{{a0}} {operator}= {{value}}{test};"
    merge = f"{{a0}} {operator}= {{b0}};"
    return Fold((accumulator,), (take,), (merge,), "{a0}", f"reduction({operator} : {{a0}})")


def _extreme(word: str) -> Callable[[DType, DType], Fold]:
    """max and min."""

    def fold(value: DType, result: DType) -> Fold:
        if result.kind == "bool":
            return _plain("|" if word == "max" else "&", "0" if word == "max" else "1", "", result)
        sign = ">" if word == "max" else "<"
        best = Accumulator("", result.c_compute, _bound(word, result))
        take = f"{{a0}} = {{value}} {sign} {{a0}} ? {{value}} : {{a0}};"
        merge = f"{{a0}} = {{b0}} {sign} {{a0}} ? {{b0}} : {{a0}};"
        clause = f"reduction({word} : {{a0}})"
        if not result.is_float:
            return Fold((best,), (take,), (merge,), "{a0}", clause)
        best = Accumulator("_best", best.c_type, best.start)
        nan = Accumulator("_nan", "int", "0")
        return Fold(
            (best, nan),
            (take, "{a1} |= {value} != {value};"),
            (merge, "{a1} |= {b1};"),
            "{a1} ? NAN : {a0}",
            f"{clause} reduction(| : {{a1}})",
        )

    return fold


def _bound(word: str, dtype: DType) -> str:
    """The value that every other beats."""
    if dtype.is_float:
        return "-INFINITY" if word == "max" else "INFINITY"
    bits = 8 * dtype.bytes
    if dtype.kind == "uint":
        return "0" if word == "max" else f"UINT{bits}_MAX"
    return f"INT{bits}_{'MIN' if word == 'max' else 'MAX'}"


def _place(sign: str) -> Callable[[DType, DType], Fold]:
    """argmax and argmin: the first of equals wins, and the first NaN beats all."""

    def fold(value: DType, result: DType) -> Fold:
        best = Accumulator("_best", value.c_compute, "0")
        place = Accumulator("_at", "int64_t", "-1")
        return Fold(
            (best, place),
            _replacement("{value}", "{position}", sign, value),
            _replacement("{b0}", "{b1}", sign, value, present="({b1} >= 0) & "),
            "{a1}",
        )

    return fold


def _replacement(
    value: str, position: str, sign: str, dtype: DType, present: str = ""
) -> tuple[str, ...]:
    """Take in a value and its position if it beats the best so far, or if there is none."""
    beats = f"({value} {sign} {{a0}})"
    if dtype.is_float:
        beats = f"({{a0}} == {{a0}}) & (({value} {sign} {{a0}}) | ({value} != {value}))"
    return (
        f"const int {{better}} = {present}(({{a1}} < 0) | ({beats}));",
        f"{{a0}} = {{better}} ? {value} : {{a0}};",
        f"{{a1}} = {{better}} ? {position} : {{a1}};",
    )


def _any(value: DType, result: DType) -> Fold:
    return _plain("|", "0", " != 0" if value.kind != "bool" else "", result)


def _all(value: DType, result: DType) -> Fold:
    return _plain("&", "1", " != 0" if value.kind != "bool" else "", result)


_ROWS: dict[str, Callable[[DType, DType], Fold]] = {
    "sum": _sum,
    "prod": _product,
    "max": _extreme("max"),
    "min": _extreme("min"),
    "argmax": _place(">"),
    "argmin": _place("<"),
    "any": _any,
    "all": _all,
}
