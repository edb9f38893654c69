"""Python 3.14: borrowed locals, small integers in the instruction, BINARY_SUBSCR as an operator.

`with` is written with LOAD_SPECIAL there, which looks methods up on the type only; it breaks the
graph until the interpreter has such a lookup.
"""

from __future__ import annotations

from compiler_core.capture.versions.base import ROWS
from compiler_core.capture.versions.py313 import SHARED_313, UNSUPPORTED_313
from compiler_core.capture.versions.py313 import VERSION as PY313
from compiler_core.capture.versions.table import Version, steps

__all__ = ["VERSION"]

_GONE = (
    "BEFORE_WITH", "BEFORE_ASYNC_WITH", "BINARY_SUBSCR", "BUILD_CONST_KEY_MAP", "RETURN_CONST",
    "FORMAT_VALUE", "LOAD_CLOSURE", "LOAD_ASSERTION_ERROR",
)  # fmt: skip

VERSION = Version(
    python=(3, 14),
    rows={
        **{op: row for op, row in {**ROWS, **SHARED_313}.items() if op not in _GONE},
        "LOAD_FAST_BORROW": steps("LOAD_FAST value"),
        "LOAD_FAST_BORROW_LOAD_FAST_BORROW": steps("LOAD_FAST first", "LOAD_FAST second"),
        "LOAD_SMALL_INT": steps("LOAD_CONST number"),
        "LOAD_COMMON_CONSTANT": steps("LOAD_CONST value"),
        "BINARY_OP": steps("BINARY_SUBSCR ?subscript", "BINARY_OP operator ?operator"),
        "END_FOR": steps("POP_TOP"),
        "POP_ITER": steps("POP_TOP"),
        "NOT_TAKEN": steps("NOP"),
        "WITH_EXCEPT_START": steps("WITH_EXCEPT_START 4"),
    },
    unsupported={
        **UNSUPPORTED_313,
        "LOAD_SPECIAL": "a with statement of Python 3.14 looks its methods up on the type only",
        "BUILD_INTERPOLATION": "template strings are not traced",
        "BUILD_TEMPLATE": "template strings are not traced",
        "ANNOTATIONS_PLACEHOLDER": "exists inside the compiler of CPython only",
        "JUMP_IF_": "exists inside the compiler of CPython only",
    },
    groups=PY313.groups,
    skipped_after={"FOR_ITER": ("END_FOR", "POP_ITER"), "SEND": ("END_SEND",)},
    pop_null=PY313.pop_null,
)
