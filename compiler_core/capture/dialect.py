"""The canonical bytecode dialect: what the interpreter sees, whatever CPython version wrote the code.

`versions/py3xx.py` says what changed in a version (data); `normalise.py` turns a code object into
`Instruction`s of this dialect. One physical instruction may become several canonical ones; they
share its offset, and a graph break always falls in front of the first of them (a *group*).

The symbolic stack mirrors the physical one slot by slot (NULLs too), because a resume function
re-enters the original code with exactly that stack. A call finds `NULL, callable` (3.11, 3.12) or
`callable, NULL` (3.13 on) or `function, self` below its arguments: `CALL` accepts all three.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BINARY_OPERATORS", "COMPARISONS", "DIALECT", "ExceptionEntry", "Form"]


@dataclass(frozen=True, slots=True)
class Form:
    """One canonical operation: its argument, the stack effect ('pops -> pushes', n = arg), what it does."""

    op: str
    arg: str
    effect: str
    doc: str


@dataclass(frozen=True, slots=True)
class ExceptionEntry:
    """A range [start, end) of offsets protected by a handler: unwind to `depth`, push lasti?, the exception, jump."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


_FORMS = (
    # stack
    Form(
        "NOP",
        "",
        "0 -> 0",
        "nothing (RESUME, CACHE, MAKE_CELL, COPY_FREE_VARS … decode to it or vanish)",
    ),
    Form("POP_TOP", "", "1 -> 0", "drop"),
    Form("COPY", "n", "0 -> 1", "push the n-th slot from the top again"),
    Form("SWAP", "n", "0 -> 0", "exchange the top with the n-th slot"),
    Form("PUSH_NULL", "", "0 -> 1", "push NULL"),
    # constants and names
    Form(
        "LOAD_CONST",
        "value",
        "0 -> 1",
        "a constant of the code object (also RETURN_CONST's, LOAD_SMALL_INT's)",
    ),
    Form("LOAD_FAST", "name", "0 -> 1", "a local; raises UnboundLocalError"),
    Form(
        "LOAD_FAST_AND_CLEAR",
        "name",
        "0 -> 1",
        "a local or NULL, and unbind it (inlined comprehensions)",
    ),
    Form("STORE_FAST", "name", "1 -> 0", "bind a local; storing NULL unbinds it"),
    Form("DELETE_FAST", "name", "0 -> 0", "unbind a local"),
    Form("LOAD_CLOSURE", "name", "0 -> 1", "the cell itself"),
    Form("LOAD_DEREF", "name", "0 -> 1", "a cell's content; raises NameError or UnboundLocalError"),
    Form("LOAD_CLASSDEREF", "name", "0 -> 1", "class namespace first, then the cell"),
    Form("STORE_DEREF", "name", "1 -> 0", "set a cell's content"),
    Form("DELETE_DEREF", "name", "0 -> 0", "empty a cell"),
    Form("LOAD_GLOBAL", "name", "0 -> 1", "globals, then builtins"),
    Form("STORE_GLOBAL", "name", "1 -> 0", "set a global"),
    Form("DELETE_GLOBAL", "name", "0 -> 0", "delete a global"),
    Form("LOAD_NAME", "name", "0 -> 1", "locals mapping, globals, builtins"),
    Form("STORE_NAME", "name", "1 -> 0", "set in the locals mapping"),
    Form("LOAD_BUILD_CLASS", "", "0 -> 1", "builtins.__build_class__"),
    Form("LOAD_ASSERTION_ERROR", "", "0 -> 1", "AssertionError"),
    Form("IMPORT_NAME", "name", "2 -> 1", "level, fromlist -> module"),
    Form("IMPORT_FROM", "name", "0 -> 1", "attribute of the module on top, which stays"),
    # attributes and items
    Form("LOAD_ATTR", "name", "1 -> 1", "getattr"),
    Form(
        "LOAD_SUPER_ATTR",
        "name",
        "3 -> 1",
        "super type, class, self -> attribute of super(class, self)",
    ),
    Form("STORE_ATTR", "name", "2 -> 0", "value, object"),
    Form("DELETE_ATTR", "name", "1 -> 0", "delattr"),
    Form("BINARY_SUBSCR", "", "2 -> 1", "container, key"),
    Form("STORE_SUBSCR", "", "3 -> 0", "value, container, key"),
    Form("DELETE_SUBSCR", "", "2 -> 0", "container, key"),
    Form("BINARY_SLICE", "", "3 -> 1", "container, start, stop"),
    Form("STORE_SLICE", "", "4 -> 0", "value, container, start, stop"),
    # operators
    Form("BINARY_OP", "symbol", "2 -> 1", "a key of BINARY_OPERATORS, such as '+' or '+='"),
    Form("COMPARE_OP", "symbol", "2 -> 1", "a member of COMPARISONS"),
    Form("COMPARE_OP_BOOL", "symbol", "2 -> 1", "3.13: compare, then bool of the result"),
    Form("IS_OP", "invert", "2 -> 1", "identity"),
    Form("CONTAINS_OP", "invert", "2 -> 1", "membership: needle, container"),
    Form("UNARY_NEGATIVE", "", "1 -> 1", "-a"),
    Form("UNARY_POSITIVE", "", "1 -> 1", "+a"),
    Form("UNARY_INVERT", "", "1 -> 1", "~a"),
    Form("UNARY_NOT", "", "1 -> 1", "not a"),
    Form("TO_BOOL", "", "1 -> 1", "bool(a)"),
    # building
    Form("BUILD_TUPLE", "n", "n -> 1", ""),
    Form("BUILD_LIST", "n", "n -> 1", ""),
    Form("BUILD_SET", "n", "n -> 1", ""),
    Form("BUILD_MAP", "n", "2n -> 1", "key, value pairs"),
    Form("BUILD_CONST_KEY_MAP", "n", "n+1 -> 1", "values, tuple of keys"),
    Form("BUILD_STRING", "n", "n -> 1", "join"),
    Form("BUILD_SLICE", "n", "n -> 1", "2 or 3 parts"),
    Form("LIST_APPEND", "n", "1 -> 0", "to the list n below, after the pop"),
    Form("SET_ADD", "n", "1 -> 0", "to the set n below, after the pop"),
    Form("MAP_ADD", "n", "2 -> 0", "key, value into the dict n below, after the pops"),
    Form("LIST_EXTEND", "n", "1 -> 0", "the list n below, after the pop"),
    Form("SET_UPDATE", "n", "1 -> 0", "the set n below, after the pop"),
    Form("DICT_UPDATE", "n", "1 -> 0", "the dict n below, after the pop"),
    Form("DICT_MERGE", "n", "1 -> 0", "as DICT_UPDATE; a duplicate key raises TypeError"),
    Form("LIST_TO_TUPLE", "", "1 -> 1", ""),
    Form("UNPACK_SEQUENCE", "n", "1 -> n", "first item on top"),
    Form("UNPACK_EX", "(before, after)", "1 -> before+1+after", "a, *b, c"),
    Form(
        "FORMAT_VALUE",
        "(conversion, has_spec)",
        "1+spec -> 1",
        "conversion: None, str, repr or ascii as text",
    ),
    # control
    Form("JUMP", "", "0 -> 0", "to target, forward or backward"),
    Form("POP_JUMP_IF_FALSE", "", "1 -> 0", "by truth"),
    Form("POP_JUMP_IF_TRUE", "", "1 -> 0", "by truth"),
    Form("POP_JUMP_IF_NONE", "", "1 -> 0", "by identity"),
    Form("POP_JUMP_IF_NOT_NONE", "", "1 -> 0", "by identity"),
    Form("JUMP_IF_FALSE_OR_POP", "", "1 -> 0 or 1", "keep the value when it jumps"),
    Form("JUMP_IF_TRUE_OR_POP", "", "1 -> 0 or 1", "keep the value when it jumps"),
    Form("GET_ITER", "", "1 -> 1", "iter(a)"),
    Form("GET_LEN", "", "0 -> 1", "len of the top, which stays"),
    Form(
        "FOR_ITER",
        "",
        "0 -> 1",
        "next item; exhausted: pop the iterator (END_FOR vanishes) and go to target",
    ),
    Form("RETURN_VALUE", "", "1 -> 0", ""),
    Form("RETURN_GENERATOR", "", "0 -> 0", "this code makes a generator or coroutine"),
    Form("YIELD_VALUE", "", "1 -> 1", ""),
    Form("GET_YIELD_FROM_ITER", "", "1 -> 1", ""),
    Form("SEND", "", "0 -> 0", "yield from / await"),
    Form("GET_AWAITABLE", "", "1 -> 1", ""),
    # calls and functions
    Form(
        "CALL",
        "(n, keyword names)",
        "n+2 -> 1",
        "n arguments, the last of them by keyword; two slots below them",
    ),
    Form("CALL_FUNCTION_EX", "has_keywords", "3+kw -> 1", "callable (with NULL), tuple, dict"),
    Form("CALL_INTRINSIC_1", "name", "1 -> 1", "INTRINSIC_… of CPython"),
    Form("CALL_INTRINSIC_2", "name", "2 -> 1", "INTRINSIC_… of CPython"),
    Form(
        "MAKE_FUNCTION",
        "flags",
        "1+flags -> 1",
        "1 defaults, 2 keyword defaults, 4 annotations, 8 closure, below the code",
    ),
    Form("SET_FUNCTION_ATTRIBUTE", "flag", "2 -> 1", "3.13: attribute, function"),
    # exceptions and context managers
    Form("RAISE_VARARGS", "n", "n -> 0", "raise, raise a, raise a from b"),
    Form(
        "RERAISE", "n", "1+ -> 0", "raise the exception on top again; n: lasti lies n slots below"
    ),
    Form("PUSH_EXC_INFO", "", "1 -> 2", "exception -> previous exception, exception"),
    Form("POP_EXCEPT", "", "1 -> 0", "restore the previous exception"),
    Form("CHECK_EXC_MATCH", "", "1 -> 1", "type -> bool against the exception below, which stays"),
    Form("CHECK_EG_MATCH", "", "2 -> 2", "except*"),
    Form("CLEANUP_THROW", "", "3 -> 2", "generators"),
    Form("BEFORE_WITH", "", "1 -> 2", "manager -> bound __exit__, result of __enter__"),
    Form(
        "WITH_EXCEPT_START",
        "n",
        "0 -> 1",
        "call the __exit__ n slots below the exception; push its result",
    ),
    Form("END_ASYNC_FOR", "", "2 -> 0", ""),
    # matching
    Form("MATCH_MAPPING", "", "0 -> 1", "is the top a mapping"),
    Form("MATCH_SEQUENCE", "", "0 -> 1", "is the top a sequence"),
    Form("MATCH_KEYS", "", "0 -> 1", "values of the keys or None"),
    Form("MATCH_CLASS", "n", "3 -> 1", "subject, class, keyword names -> tuple or None"),
    # no meaning in this dialect: a graph break whose reason is the argument
    Form(
        "UNSUPPORTED", "reason", "?", "an opcode that is listed as unsupported, or not known at all"
    ),
)

DIALECT: dict[str, Form] = {form.op: form for form in _FORMS}

COMPARISONS = ("<", "<=", "==", "!=", ">", ">=")
BINARY_OPERATORS = (
    "+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^",
    "+=", "&=", "//=", "<<=", "@=", "*=", "%=", "|=", "**=", ">>=", "-=", "/=", "^=",
)  # fmt: skip
