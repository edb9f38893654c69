"""Python 3.11: calls in up to three instructions, directed jumps, LOAD_METHOD, intrinsics as opcodes.

`LOAD_METHOD` leaves `NULL, bound method`, the form of its result that `CALL` also takes.
"""

from __future__ import annotations

from compiler_core.capture.versions.base import ROWS, UNSUPPORTED
from compiler_core.capture.versions.table import Row, Step, Version, steps

__all__ = ["VERSION"]

_CONDITIONS = ("FALSE", "TRUE", "NONE", "NOT_NONE")

_JUMPS: dict[str, Row] = {
    f"POP_JUMP_{way}_IF_{condition}": steps(f"POP_JUMP_IF_{condition}")
    for way in ("FORWARD", "BACKWARD")
    for condition in _CONDITIONS
}


def _intrinsic(number: int, name: str) -> Row:
    return (Step(f"CALL_INTRINSIC_{number}", "fixed", value=f"INTRINSIC_{name}"),)


VERSION = Version(
    python=(3, 11),
    rows={
        **{op: row for op, row in ROWS.items() if not op.startswith("POP_JUMP_IF_")},
        **_JUMPS,
        "JUMP_IF_FALSE_OR_POP": steps("JUMP_IF_FALSE_OR_POP"),
        "JUMP_IF_TRUE_OR_POP": steps("JUMP_IF_TRUE_OR_POP"),
        "LOAD_GLOBAL": steps("PUSH_NULL ?low", "LOAD_GLOBAL value"),
        "LOAD_ATTR": steps("LOAD_ATTR value"),
        "LOAD_METHOD": steps("LOAD_ATTR value", "PUSH_NULL", "SWAP 2"),
        "LOAD_CLASSDEREF": steps("LOAD_CLASSDEREF value"),
        "LIST_TO_TUPLE": steps("LIST_TO_TUPLE"),
        "UNARY_POSITIVE": steps("UNARY_POSITIVE"),
        "PRINT_EXPR": _intrinsic(1, "PRINT"),
        "IMPORT_STAR": _intrinsic(1, "IMPORT_STAR"),
        "ASYNC_GEN_WRAP": _intrinsic(1, "ASYNC_GEN_WRAP"),
        "PREP_RERAISE_STAR": _intrinsic(2, "PREP_RERAISE_STAR"),
    },
    unsupported=UNSUPPORTED,
    groups=(("KW_NAMES", "PRECALL", "CALL"), ("PRECALL", "CALL")),
    skipped_after={},
    pop_null=(("LOAD_CONST", type(None)), ("PRECALL", 0), ("CALL", 0), ("POP_TOP", None)),
)
