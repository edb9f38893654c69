"""Opcodes that mean the same from Python 3.11 on; the version files say what differs.

`ROWS` are handled; `UNSUPPORTED` names the others with the reason a graph break gives. An entry
that ends in `_` stands for every opcode that starts so.
"""

from __future__ import annotations

from compiler_core.capture.versions.table import Row, steps

__all__ = ["PSEUDO", "ROWS", "UNSUPPORTED"]

_SAME = """
    POP_TOP PUSH_NULL LOAD_BUILD_CLASS LOAD_ASSERTION_ERROR BINARY_SUBSCR STORE_SUBSCR DELETE_SUBSCR
    UNARY_NEGATIVE UNARY_INVERT UNARY_NOT GET_ITER GET_LEN RETURN_GENERATOR YIELD_VALUE
    GET_YIELD_FROM_ITER PUSH_EXC_INFO POP_EXCEPT CHECK_EXC_MATCH CHECK_EG_MATCH BEFORE_WITH
    END_ASYNC_FOR MATCH_MAPPING MATCH_SEQUENCE MATCH_KEYS RETURN_VALUE NOP
"""
_BY_NAME = """
    LOAD_FAST STORE_FAST DELETE_FAST LOAD_CLOSURE LOAD_DEREF STORE_DEREF DELETE_DEREF STORE_GLOBAL
    DELETE_GLOBAL LOAD_NAME STORE_NAME IMPORT_NAME IMPORT_FROM STORE_ATTR DELETE_ATTR
"""
_BY_NUMBER = """
    COPY SWAP BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_MAP BUILD_STRING BUILD_SLICE LIST_APPEND SET_ADD
    MAP_ADD LIST_EXTEND SET_UPDATE DICT_UPDATE DICT_MERGE UNPACK_SEQUENCE RAISE_VARARGS RERAISE
    MATCH_CLASS GET_AWAITABLE
"""
_JUMPS = "POP_JUMP_IF_FALSE POP_JUMP_IF_TRUE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE FOR_ITER SEND"

ROWS: dict[str, Row] = {
    **{op: steps(op) for op in _SAME.split()},
    **{op: steps(f"{op} value") for op in _BY_NAME.split()},
    **{op: steps(f"{op} number") for op in _BY_NUMBER.split()},
    **{op: steps(op) for op in _JUMPS.split()},
    "LOAD_CONST": steps("LOAD_CONST value"),
    "BINARY_OP": steps("BINARY_OP operator"),
    "COMPARE_OP": steps("COMPARE_OP value"),
    "IS_OP": steps("IS_OP flag"),
    "CONTAINS_OP": steps("CONTAINS_OP flag"),
    "BUILD_CONST_KEY_MAP": steps("BUILD_CONST_KEY_MAP number"),
    "UNPACK_EX": steps("UNPACK_EX before_after"),
    "FORMAT_VALUE": steps("FORMAT_VALUE format"),
    "JUMP_FORWARD": steps("JUMP"),
    "JUMP_BACKWARD": steps("JUMP"),
    "JUMP_BACKWARD_NO_INTERRUPT": steps("JUMP"),
    "CALL": steps("CALL call"),
    "CALL_FUNCTION_EX": steps("CALL_FUNCTION_EX flag"),
    "MAKE_FUNCTION": steps("MAKE_FUNCTION number"),
    "WITH_EXCEPT_START": steps("WITH_EXCEPT_START 3"),
    "RESUME": steps("NOP"),
    "MAKE_CELL": steps("NOP"),
    "COPY_FREE_VARS": steps("NOP"),
}

_ASYNC = "asynchronous code is run by an event loop, never traced"
_CLASS = "the body of a class or module runs in eager"

UNSUPPORTED: dict[str, str] = {
    "GET_AITER": _ASYNC,
    "GET_ANEXT": _ASYNC,
    "BEFORE_ASYNC_WITH": _ASYNC,
    "DELETE_NAME": _CLASS,
    "SETUP_ANNOTATIONS": _CLASS,
    "CACHE": "space for the interpreter's inline caches, no instruction",
    "EXTENDED_ARG": "part of the next instruction",
}

_PSEUDO = "exists inside the compiler of CPython only, never in a code object"
PSEUDO: dict[str, str] = {
    "INSTRUMENTED_": "written over an instruction by sys.monitoring; code objects show the original",
    "SETUP_": _PSEUDO,
    "POP_BLOCK": _PSEUDO,
    "JUMP": _PSEUDO,
    "JUMP_NO_INTERRUPT": _PSEUDO,
    "LOAD_METHOD": _PSEUDO,
    "LOAD_SUPER_METHOD": _PSEUDO,
    "LOAD_ZERO_SUPER_ATTR": _PSEUDO,
    "LOAD_ZERO_SUPER_METHOD": _PSEUDO,
    "STORE_FAST_MAYBE_NULL": _PSEUDO,
    "INTERPRETER_EXIT": "ends the C entry frame, never in a code object",
    "RESERVED": "has no meaning",
}
