"""One row per operation of the loop IR: its Triton text by the class of its operands.

Classes: `f32` (f32 and every half type, which computes in f32), `f64`, `int` (signed), `uint`, `bool`.
A row names templates for classes; `float` stands for both floating classes, `number` for all but bool,
`any` for all. `{a}`, `{b}`, `{c}` are operands, `{bits}` the width of their type, `{t}` its Triton type.
Functions of `libdevice` are used where `tl` has only an approximate instruction: their error is 1 or 2
ulp over the whole range, while `tl.exp` is 2 ulp of the *scaled argument*.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler_core.codegen.triton.casts import cast, rounded
from compiler_core.codegen.triton.helper_functions import HELPERS
from compiler_core.ir.dtypes import DType

__all__ = ["TEMPLATES", "class_of", "expression", "takes_literals", "template"]


def _libdevice(*names: str) -> dict[str, dict[str, str]]:
    return {name: {"float": f"libdevice.{name}({{a}})"} for name in names}


def _infix(operator: str, **others: str) -> dict[str, str]:
    return {"any": f"{{a}} {operator} {{b}}", **others}


def _compare(operator: str) -> dict[str, str]:
    as_numbers = f"{{a}}.to(tl.int8) {operator} {{b}}.to(tl.int8)"  # True is -1 as a signed bit
    return {"number": f"{{a}} {operator} {{b}}", "bool": as_numbers}


_NAN = "propagate_nan=tl.PropagateNan.ALL"
_NEVER = "{a} != {a}"

TEMPLATES: dict[str, dict[str, str]] = {
    # one operand
    "neg": {"float": "{a} * -1.0", "int": "-{a}", "uint": "-{a}"},  # 0 - a would lose the sign of 0
    "abs": {"number": "tl.abs({a})", "uint": "{a}"},
    "sign": {
        "float": "tl.where({a} > 0, 1.0, tl.where({a} < 0, -1.0, 0.0))",
        "number": "({a} > 0).to({t}) - ({a} < 0).to({t})",
        "uint": "({a} > 0).to({t})",
        "bool": "{a}",
    },
    **_libdevice(
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "rsqrt", "sin", "cos", "tan", "asin", "acos",
        "atan", "sinh", "cosh", "tanh", "erf",
    ),
    "sqrt": {"f32": "tl.sqrt_rn({a})", "f64": "tl.sqrt({a})"},
    "reciprocal": {"f32": "tl.div_rn(1.0, {a})", "f64": "1.0 / {a}"},
    "sigmoid": {
        "f32": "tl.div_rn(1.0, 1.0 + libdevice.exp(-{a}))",
        "f64": "1.0 / (1.0 + libdevice.exp(-{a}))",
    },
    "floor": {"float": "tl.floor({a})", "number": "{a}"},
    "ceil": {"float": "tl.ceil({a})", "number": "{a}"},
    "trunc": {"float": "libdevice.trunc({a})", "number": "{a}"},
    "round": {"float": "libdevice.nearbyint({a})", "number": "{a}"},
    "isnan": {"any": _NEVER},
    "isinf": {"float": 'tl.abs({a}) == float("inf")', "any": _NEVER},
    "not": {"int": "~{a}", "uint": "~{a}", "bool": "~{a}"},
    "cast": {"any": "{a}"},  # `casts.cast` writes it
    # two operands
    "add": _infix("+", bool="{a} | {b}"),
    "sub": {"number": "{a} - {b}"},
    "mul": _infix("*", bool="{a} & {b}"),
    "div": {"f32": "tl.div_rn({a}, {b})", "f64": "{a} / {b}"},
    "floordiv": {
        "f32": "float_floor_div({a}, {b}, tl.div_rn({a}, {b}))",
        "f64": "float_floor_div({a}, {b}, {a} / {b})",
        "int": "floor_div({a}, {b})",
        "uint": "{a} // {b}",
    },
    "truncdiv": {
        "f32": "libdevice.trunc(tl.div_rn({a}, {b}))",
        "f64": "libdevice.trunc({a} / {b})",
        "number": "{a} // {b}",
    },
    "remainder": {
        "float": "float_floor_mod({a}, {b})",
        "int": "floor_mod({a}, {b})",
        "uint": "{a} % {b}",
    },
    "fmod": {"float": "libdevice.fmod({a}, {b})", "number": "{a} % {b}"},
    "pow": {
        "float": "libdevice.pow({a}, {b})",
        "int": "int_pow({a}, {b})",
        "uint": "unsigned_pow({a}, {b})",
    },
    "maximum": {
        "float": f"tl.maximum({{a}}, {{b}}, {_NAN})",
        "number": "tl.maximum({a}, {b})",
        "bool": "{a} | {b}",
    },
    "minimum": {
        "float": f"tl.minimum({{a}}, {{b}}, {_NAN})",
        "number": "tl.minimum({a}, {b})",
        "bool": "{a} & {b}",
    },
    "atan2": {"float": "libdevice.atan2({a}, {b})"},
    "copysign": {"float": "libdevice.copysign({a}, {b})"},
    "and": {"int": "{a} & {b}", "uint": "{a} & {b}", "bool": "{a} & {b}"},
    "or": {"int": "{a} | {b}", "uint": "{a} | {b}", "bool": "{a} | {b}"},
    "xor": {"int": "{a} ^ {b}", "uint": "{a} ^ {b}", "bool": "{a} ^ {b}"},
    # a shift by the width or more has no meaning on the machine; in torch the bits are gone
    "shl": {
        "int": "tl.where(({b} >= 0) & ({b} < {bits}), {a} << ({b} & ({bits} - 1)), 0).to({t})",
        "uint": "tl.where({b} < {bits}, {a} << ({b} & ({bits} - 1)), 0).to({t})",
    },
    "shr": {
        "int": "{a} >> tl.where(({b} >= 0) & ({b} < {bits}), {b}, {bits} - 1)",
        "uint": "tl.where({b} < {bits}, {a} >> ({b} & ({bits} - 1)), 0).to({t})",
    },
    "eq": _infix("=="),
    "ne": _infix("!="),
    "lt": _compare("<"),
    "le": _compare("<="),
    "gt": _compare(">"),
    "ge": _compare(">="),
    # three operands
    "where": {"any": "tl.where({a}, {b}, {c})"},
}  # fmt: skip

# The result of these is one of the operands, or a number that every floating type has: no rounding.
_EXACT = frozenset(
    {"neg", "abs", "sign", "floor", "ceil", "trunc", "round", "maximum", "minimum", "copysign", "fmod", "where"}
)  # fmt: skip

# A number among their operands takes the type of the other operand.
_LITERALS = frozenset(
    {"add", "sub", "mul", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge", "where"}
)

_GROUPS = {
    "f32": ("f32", "float", "number", "any"),
    "f64": ("f64", "float", "number", "any"),
    "int": ("int", "number", "any"),
    "uint": ("uint", "number", "any"),
    "bool": ("bool", "any"),
}


def class_of(dtype: DType) -> str:
    """The class of an operand."""
    if dtype.is_float:
        return "f64" if dtype.name == "f64" else "f32"
    return dtype.kind


def template(op: str, dtype: DType) -> str | None:
    """The text of an operation on operands of a type; None where it has none (sine of integers)."""
    row = TEMPLATES[op]
    return next((row[group] for group in _GROUPS[class_of(dtype)] if group in row), None)


def takes_literals(op: str, dtype: DType) -> bool:
    """May a constant operand stand in the text as a plain number?"""
    if op == "div":
        return class_of(dtype) == "f32"
    return op in _LITERALS and dtype.name in ("f32", "f16", "bf16", "i32", "i64")


def expression(
    op: str, args: Sequence[str], operand: DType, result: DType, helpers: set[str]
) -> str | None:
    """The text of one Value, rounded to its type and held. None if the row has no text for the operand type.

    `helpers` collects the names of the functions that the text calls.
    """
    if op == "cast":
        return cast(args[0], operand, result, helpers)
    row = template(op, operand)
    if row is None:
        return None
    helpers.update(name for name in HELPERS if row.startswith(f"{name}("))
    text = row.format(**dict(zip("abc", args)), bits=operand.bytes * 8, t=operand.triton)
    return text if op in _EXACT else rounded(text, result, helpers)
