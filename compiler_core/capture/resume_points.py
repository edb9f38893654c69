"""Functions that go on where a graph broke, each made once.

In: the code object, the offset of an instruction group, the stack and the locals there. Out: the
global name of a function `name(closure, *stack, *locals)`; where `splice.uses_super` holds of the
original, `name(closure, None, *stack, *locals)`:

    __resume_at_42_main    the original from offset 42 on; intercepted and compiled like any other
    __step_at_42_main      runs the group at 42 natively, then calls the resume behind it
    __native_at_42_main    as a resume, but never compiled: `skip.py` knows the name

A resume inside a resume maps back to the original code, so nothing grows with the number of breaks.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType
from typing import Any

from compiler_core.capture.by_code import ByCode
from compiler_core.capture.normalise import decode, opcode_at
from compiler_core.capture.splice import (
    CannotEnter,
    Tail,
    enter_at,
    is_pair,
)
from compiler_core.provenance import Instruction

__all__ = ["Root", "entry_of", "forget", "resume_function", "root_of", "step_function"]


@dataclass(frozen=True, slots=True)
class Root:
    """The user's own code behind a code object, and where an offset lies in it."""

    code: CodeType
    offset: int


# Resume code → original, offsets, where it enters; original → globals and what was asked → global name.
_ORIGIN: ByCode[tuple[weakref.ref[CodeType], dict[int, int], int]] = ByCode()
_MADE: ByCode[dict[tuple[Any, ...], str]] = ByCode()


def root_of(code: CodeType, offset: int) -> Root:
    """The original of a resume function's code; of any other code, and if that is gone, itself.

    Raises CannotEnter for an offset in the resume's own head, or between two halves of one
    instruction of the original.
    """
    origin = _ORIGIN.get(code)
    original = origin[0]() if origin is not None else None
    if origin is None or original is None:
        return Root(code, offset)
    offsets = origin[1]
    if offset not in offsets:
        raise CannotEnter(f"{code.co_name}: offset {offset} lies inside one original instruction")
    return Root(original, offsets[offset])


def entry_of(code: CodeType) -> Root | None:
    """The original of a resume function's code, and the offset there at which it goes on; else None."""
    origin = _ORIGIN.get(code)
    original = origin[0]() if origin is not None else None
    return Root(original, origin[2]) if origin is not None and original is not None else None


def resume_function(
    code: CodeType,
    offset: int,
    nulls: Sequence[bool],
    names: Sequence[str],
    globals: dict[str, Any],
    *,
    native: bool = False,
    handled: Sequence[int] = (),
) -> str:
    """The global name of a function that goes on at the group at `offset`.

    It takes the closure (cells of the original, sorted by name; None without cells), the stack's
    values from the bottom (no NULLs), and the locals `names`. See `splice.enter_at` for `nulls`
    and `handled`. Raises CannotEnter.
    """
    root = root_of(code, offset)
    kind = "native" if native else "resume"
    key = (kind, root.offset, tuple(nulls), tuple(names), tuple(handled))
    return _made(root, key, globals, lambda name: _resume(root, key, name, native))


def step_function(
    code: CodeType,
    offset: int,
    nulls: Sequence[bool],
    names: Sequence[str],
    globals: dict[str, Any],
    *,
    handled: Sequence[int] = (),
) -> str:
    """The global name of a function that runs the group at `offset` natively and then resumes.

    Arguments as for `resume_function`, for the stack in front of the group. If the group raises,
    the original's own handlers run, natively, to the end of the function. Raises CannotEnter when
    the group is not one that can run alone (`EFFECTS`).
    """
    root = root_of(code, offset)
    key = ("step", root.offset, tuple(nulls), tuple(names), tuple(handled))
    return _made(root, key, globals, lambda name: _step(root, key, name, globals))


def forget(code: CodeType) -> None:
    """Drop what was made for a code object. Functions that still run keep their own code."""
    _MADE.pop(code)
    _ORIGIN.drop_if(lambda origin: origin[0]() is code)


# ------------------------------------------------------------------------------ making


def _made(
    root: Root, key: tuple[Any, ...], globals: dict[str, Any], make: Callable[[str], CodeType]
) -> str:
    """The name of what was made for this key in these globals; made and put there at first."""
    known = _MADE.made(root.code, lambda _: {})
    full_key = (id(globals), *key)
    name = known.get(full_key)
    if name is None or name not in globals:
        name = _free_name(f"__{key[0]}_at_{root.offset}_{root.code.co_name.strip('_<>')}", globals)
        globals[name] = trampoline(make(name), globals)
        known[full_key] = name
    return name


def _free_name(stem: str, globals: dict[str, Any]) -> str:
    name, number = stem, 2
    while name in globals:
        name, number = f"{stem}_{number}", number + 1
    return name


def trampoline(code: CodeType, globals: dict[str, Any]) -> Callable[..., Any]:
    """Call `code` with a closure given at run time."""

    def enter(closure: tuple[CellType, ...] | None, *arguments: Any, **named: Any) -> Any:
        return FunctionType(code, globals, code.co_name, None, closure)(*arguments, **named)

    return enter


def _resume(root: Root, key: tuple[Any, ...], name: str, native: bool) -> CodeType:
    _, offset, nulls, names, handled = key
    made = enter_at(root.code, offset, nulls, names, name, handled=handled)
    if native:
        return _under_its_name(made, root)
    same = _same_instructions(made, root.code)
    _ORIGIN.put(made, (weakref.ref(root.code), same, offset))
    return made


def _under_its_name(made: CodeType, root: Root) -> CodeType:
    """What runs natively bears the user's name, as loggers and tracebacks show it."""
    return made.replace(co_name=root.code.co_name, co_qualname=made.co_name)


def _same_instructions(made: CodeType, original: CodeType) -> dict[int, int]:
    """Offsets in a resume's code → offsets in the original: its body is the end of the resume's."""
    theirs: list[int | None] = []
    for offset in decode(original).last:
        is_two = is_pair(opcode_at(original, decode(original).last[offset]))
        theirs += [offset, None] if is_two else [offset]
    ours = list(decode(made).last)
    body = zip(ours[len(ours) - len(theirs) :], theirs)
    return {here: there for here, there in body if there is not None}


def _step(root: Root, key: tuple[Any, ...], name: str, globals: dict[str, Any]) -> CodeType:
    _, offset, nulls, names, handled = key
    decoded = decode(root.code)
    pops, results = effect(decoded.group(offset))
    below = nulls[: len(nulls) - pops]
    kept = tuple(i for i in handled if i < len(below))
    after = resume_function(
        root.code, decoded.after[offset], (*below, *results), names, globals, handled=kept
    )
    jump = decoded.group(offset)[0]
    exhausted = None
    if jump.op == "FOR_ITER" and jump.target is not None:
        exhausted = resume_function(
            root.code, jump.target, below[:-1], names, globals, handled=kept
        )
    tail = Tail(decoded.last[offset], pops, results.count(False), after, exhausted)
    return _under_its_name(enter_at(root.code, offset, nulls, names, name, tail, handled), root)


# ------------------------------------------------------------------------------ effects

_Effect = Callable[[Any], tuple[int, int]]


def _fixed(pops: int, pushes: int) -> _Effect:
    return lambda arg: (pops, pushes)


# Groups that can run alone: slots taken and left, given the argument. What is missing either
# cannot fail (stack work, constants), jumps (the replacement branches itself) or belongs to a
# frame that is suspended.
EFFECTS: dict[str, _Effect] = {
    **dict.fromkeys(
        ("LOAD_ATTR", "UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT", "UNARY_NOT", "TO_BOOL",
         "GET_ITER", "CHECK_EXC_MATCH", "CALL_INTRINSIC_1", "LIST_TO_TUPLE"), _fixed(1, 1)
    ),
    **dict.fromkeys(
        ("BINARY_SUBSCR", "BINARY_OP", "COMPARE_OP", "COMPARE_OP_BOOL", "IS_OP", "CONTAINS_OP",
         "IMPORT_NAME", "CALL_INTRINSIC_2"), _fixed(2, 1)
    ),
    **dict.fromkeys(("BINARY_SLICE", "LOAD_SUPER_ATTR", "MATCH_CLASS"), _fixed(3, 1)),
    **dict.fromkeys(
        ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_BUILD_CLASS",
         "LOAD_ASSERTION_ERROR", "IMPORT_FROM", "GET_LEN", "MATCH_MAPPING", "MATCH_SEQUENCE",
         "MATCH_KEYS", "WITH_EXCEPT_START", "FOR_ITER"), _fixed(0, 1)
    ),
    **dict.fromkeys(
        ("POP_TOP", "STORE_GLOBAL", "STORE_NAME", "STORE_DEREF", "DELETE_ATTR", "LIST_APPEND",
         "SET_ADD", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE"), _fixed(1, 0)
    ),
    **dict.fromkeys(("STORE_ATTR", "DELETE_SUBSCR", "MAP_ADD"), _fixed(2, 0)),
    **dict.fromkeys(("NOP", "DELETE_GLOBAL", "DELETE_DEREF"), _fixed(0, 0)),
    **dict.fromkeys(
        ("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING", "BUILD_SLICE"),
        lambda n: (n, 1),
    ),
    "BUILD_MAP": lambda n: (2 * n, 1),
    "BUILD_CONST_KEY_MAP": lambda n: (n + 1, 1),
    "STORE_SUBSCR": _fixed(3, 0),
    "STORE_SLICE": _fixed(4, 0),
    "UNPACK_SEQUENCE": lambda n: (1, n),
    "UNPACK_EX": lambda sides: (1, sides[0] + 1 + sides[1]),
    "FORMAT_VALUE": lambda form: (1 + form[1], 1),
    "CALL": lambda call: (call[0] + 2, 1),
    "CALL_FUNCTION_EX": lambda keywords: (3 + keywords, 1),
    "MAKE_FUNCTION": lambda flags: (1 + bin(flags).count("1"), 1),
    "SET_FUNCTION_ATTRIBUTE": _fixed(2, 1),
    "BEFORE_WITH": _fixed(1, 2),
}  # fmt: skip


def effect(group: Sequence[Instruction]) -> tuple[int, tuple[bool, ...]]:
    """Slots that a group takes from the stack, and what it leaves: True where that is NULL.

    Raises CannotEnter for a group that cannot run alone.
    """
    taken, left = 0, [False] * 0
    if not any(i.op in EFFECTS for i in group):
        raise CannotEnter(f"{group[0].op} cannot run alone in a step function")
    for i in group:
        if i.op == "PUSH_NULL":
            left.append(True)
        elif i.op == "SWAP" and len(left) >= i.arg:
            left[-1], left[-i.arg] = left[-i.arg], left[-1]
        elif i.op in EFFECTS:
            pops, pushes = EFFECTS[i.op](i.arg)
            taken += max(0, pops - len(left))
            left[max(0, len(left) - pops) :] = [False] * pushes
        else:
            raise CannotEnter(f"{i.op} cannot run alone in a step function")
    return taken, tuple(left)
