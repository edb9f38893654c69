"""Python 3.13: NULL lies above the callable, keyword names on the stack, f-strings in two steps.

Also new: super-instructions that touch two locals, COMPARE_OP that makes a bool, and LOAD_FAST for
what was LOAD_CLOSURE (`normalise.py` tells them apart by the name).
"""

from __future__ import annotations

from compiler_core.capture.versions.base import ROWS
from compiler_core.capture.versions.py312 import SHARED, UNSUPPORTED_312
from compiler_core.capture.versions.table import Row, Version, steps

__all__ = ["SHARED_313", "UNSUPPORTED_313", "VERSION"]

SHARED_313: dict[str, Row] = {
    **SHARED,
    "LOAD_GLOBAL": steps("LOAD_GLOBAL value", "PUSH_NULL ?low"),
    "LOAD_ATTR": steps("LOAD_ATTR value", "PUSH_NULL ?low"),
    "LOAD_SUPER_ATTR": steps("LOAD_SUPER_ATTR value", "PUSH_NULL ?low"),
    "COMPARE_OP": steps("COMPARE_OP value ?plain", "COMPARE_OP_BOOL value ?bool"),
    "TO_BOOL": steps("TO_BOOL"),
    "CALL_KW": steps("CALL call"),
    "CONVERT_VALUE": steps("FORMAT_VALUE conversion"),
    "FORMAT_SIMPLE": steps("FORMAT_VALUE no_spec"),
    "FORMAT_WITH_SPEC": steps("FORMAT_VALUE with_spec"),
    "SET_FUNCTION_ATTRIBUTE": steps("SET_FUNCTION_ATTRIBUTE number"),
    "LOAD_FAST_LOAD_FAST": steps("LOAD_FAST first", "LOAD_FAST second"),
    "STORE_FAST_LOAD_FAST": steps("STORE_FAST first", "LOAD_FAST second"),
    "STORE_FAST_STORE_FAST": steps("STORE_FAST first", "STORE_FAST second"),
}

UNSUPPORTED_313: dict[str, str] = {
    **UNSUPPORTED_312,
    "LOAD_CLOSURE": "exists inside the compiler of CPython only: code objects have LOAD_FAST",
    "EXIT_INIT_CHECK": "ends the frame of __init__ in the interpreter, never in a code object",
    "ENTER_EXECUTOR": "written over a jump by the JIT; code objects show the original",
}

VERSION = Version(
    python=(3, 13),
    rows={
        **{op: row for op, row in ROWS.items() if op not in ("FORMAT_VALUE", "LOAD_CLOSURE")},
        **SHARED_313,
        "END_FOR": steps("POP_TOP"),
    },
    unsupported=UNSUPPORTED_313,
    groups=(("LOAD_CONST", "CALL_KW"),),
    skipped_after={"FOR_ITER": ("END_FOR", "POP_TOP"), "SEND": ("END_SEND",)},
    pop_null=(("LOAD_CONST", type(None)), ("SWAP", 2), ("CALL", 0), ("POP_TOP", None)),
)
