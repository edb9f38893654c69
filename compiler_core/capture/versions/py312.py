"""Python 3.12: jumps lose their direction, comprehensions are inlined, super() has an opcode.

FOR_ITER and SEND jump to an END_FOR or END_SEND which they pass over or which takes one value off.
"""

from __future__ import annotations

from compiler_core.capture.versions import py311
from compiler_core.capture.versions.base import PSEUDO, ROWS, UNSUPPORTED
from compiler_core.capture.versions.table import Row, Version, steps

__all__ = ["SHARED", "UNSUPPORTED_312", "VERSION"]

# What 3.12 brought and later versions keep.
SHARED: dict[str, Row] = {
    "RETURN_CONST": steps("LOAD_CONST value", "RETURN_VALUE"),
    "BINARY_SLICE": steps("BINARY_SLICE"),
    "STORE_SLICE": steps("STORE_SLICE"),
    "LOAD_FAST_CHECK": steps("LOAD_FAST value"),
    "LOAD_FAST_AND_CLEAR": steps("LOAD_FAST_AND_CLEAR value"),
    "END_SEND": steps("SWAP 2", "POP_TOP"),
    "CLEANUP_THROW": steps("CLEANUP_THROW"),
    "CALL_INTRINSIC_1": steps("CALL_INTRINSIC_1 intrinsic"),
    "CALL_INTRINSIC_2": steps("CALL_INTRINSIC_2 intrinsic"),
}

_NAMESPACE = "the body of a class or module runs in eager"
UNSUPPORTED_312: dict[str, str] = {
    **UNSUPPORTED,
    **PSEUDO,
    "LOAD_LOCALS": _NAMESPACE,
    "LOAD_FROM_DICT_OR_DEREF": _NAMESPACE,
    "LOAD_FROM_DICT_OR_GLOBALS": _NAMESPACE,
}

VERSION = Version(
    python=(3, 12),
    rows={
        **ROWS,
        **SHARED,
        "LOAD_GLOBAL": steps("PUSH_NULL ?low", "LOAD_GLOBAL value"),
        "LOAD_ATTR": steps("LOAD_ATTR value", "PUSH_NULL ?low", "SWAP 2 ?low"),
        "LOAD_SUPER_ATTR": steps("LOAD_SUPER_ATTR value", "PUSH_NULL ?low", "SWAP 2 ?low"),
        "END_FOR": steps("POP_TOP", "POP_TOP"),
    },
    unsupported=UNSUPPORTED_312,
    groups=(("KW_NAMES", "CALL"),),
    skipped_after={"FOR_ITER": ("END_FOR",), "SEND": ("END_SEND",)},
    pop_null=tuple(step for step in py311.VERSION.pop_null if step[0] != "PRECALL"),
)
