"""A reference interpreter of the bytecode dialect over real values, for tests.

In: a function and arguments. Out: what calling it gives, or its state in front of any step: stack,
locals, cells, handled exceptions. It exists so that decoding and entering can be compared with
CPython itself at every instruction, in every version.
"""

import builtins
import operator
from dataclasses import dataclass, field
from types import CellType, FunctionType

from compiler_core.capture.normalise import decode

NULL = type("NULL", (), {"__repr__": lambda self: "NULL"})()

BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow, "@": operator.matmul,
    "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul,
    "/=": operator.itruediv, "//=": operator.ifloordiv, "%=": operator.imod, "|=": operator.ior,
}  # fmt: skip
COMPARE = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq,
    "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
UNARY = {
    "UNARY_NEGATIVE": operator.neg, "UNARY_POSITIVE": operator.pos, "UNARY_NOT": operator.not_,
    "UNARY_INVERT": operator.invert, "TO_BOOL": bool, "GET_ITER": iter, "LIST_TO_TUPLE": tuple,
}  # fmt: skip


class Unsupported(Exception):
    pass


@dataclass
class Previous:
    """The slot that PUSH_EXC_INFO leaves: what was handled before, and what is handled now."""

    before: object
    now: object


@dataclass
class Machine:
    function: FunctionType
    arguments: tuple
    stack: list = field(default_factory=list)
    locals: dict = field(default_factory=dict)
    cells: dict = field(default_factory=dict)
    handled: list = field(default_factory=list)  # exceptions, innermost last
    result: object = NULL

    def __post_init__(self):
        self.code = self.function.__code__
        self.decoded = decode(self.code)
        names = self.code.co_varnames
        assert len(self.arguments) == self.code.co_argcount, "positional arguments only"
        self.locals = dict(zip(names, self.arguments))
        self.cells = dict(zip(self.code.co_freevars, self.function.__closure__ or ()))
        for name in self.code.co_cellvars:
            known = name in self.locals
            self.cells[name] = CellType(self.locals.pop(name)) if known else CellType()
        self.offset = self.decoded.instructions[0].offset

    def run(self, steps=None):
        """Run to the end, or `steps` groups. True when the function has not returned yet."""
        while self.result is NULL and steps != 0:
            self.step()
            steps = None if steps is None else steps - 1
        return self.result is NULL

    def step(self):
        """One group."""
        group = self.decoded.group(self.offset)
        goto = None
        try:
            for instruction in group:
                goto = self.execute(instruction)
        except Unsupported:
            raise
        except BaseException as error:
            goto = self.unwind(error)
        self.offset = self.decoded.after.get(self.offset) if goto is None else goto

    def unwind(self, error):
        entry = self.decoded.handler(self.offset)
        if entry is None:
            raise error
        del self.stack[entry.depth :]
        if entry.lasti:
            self.stack.append(self.offset)
        self.stack.append(error)
        return entry.target

    def pop(self, n):
        if n == 0:
            return []
        values = self.stack[-n:]
        del self.stack[-n:]
        return values

    def execute(self, i):
        push, pop = self.stack.append, self.stack.pop
        op, arg = i.op, i.arg
        if op in UNARY:
            push(UNARY[op](pop()))
        elif op == "BINARY_OP":
            a, b = self.pop(2)
            push(BINARY[arg](a, b))
        elif op == "COMPARE_OP":
            a, b = self.pop(2)
            push(COMPARE[arg](a, b))
        elif op == "COMPARE_OP_BOOL":
            a, b = self.pop(2)
            push(bool(COMPARE[arg](a, b)))
        elif op == "IS_OP":
            a, b = self.pop(2)
            push((a is b) != arg)
        elif op == "CONTAINS_OP":
            a, b = self.pop(2)
            push((a in b) != arg)
        else:
            handler = getattr(self, f"op_{op}", None)
            if handler is None:
                raise Unsupported(f"{op} {arg}")
            return handler(i)

    # ---- stack, names
    def op_NOP(self, i): ...
    def op_POP_TOP(self, i):
        self.stack.pop()

    def op_PUSH_NULL(self, i):
        self.stack.append(NULL)

    def op_COPY(self, i):
        self.stack.append(self.stack[-i.arg])

    def op_SWAP(self, i):
        s = self.stack
        s[-1], s[-i.arg] = s[-i.arg], s[-1]

    def op_LOAD_CONST(self, i):
        self.stack.append(i.arg)

    def op_LOAD_FAST(self, i):
        if i.arg not in self.locals:
            raise UnboundLocalError(i.arg)
        self.stack.append(self.locals[i.arg])

    def op_LOAD_FAST_AND_CLEAR(self, i):
        self.stack.append(self.locals.pop(i.arg, NULL))

    def op_STORE_FAST(self, i):
        value = self.stack.pop()
        if value is NULL:
            self.locals.pop(i.arg, None)
        else:
            self.locals[i.arg] = value

    def op_DELETE_FAST(self, i):
        del self.locals[i.arg]

    def op_LOAD_CLOSURE(self, i):
        self.stack.append(self.cells[i.arg])

    def op_LOAD_DEREF(self, i):
        self.stack.append(self.cells[i.arg].cell_contents)

    def op_STORE_DEREF(self, i):
        self.cells[i.arg].cell_contents = self.stack.pop()

    def op_LOAD_GLOBAL(self, i):
        scope = self.function.__globals__
        self.stack.append(scope[i.arg] if i.arg in scope else getattr(builtins, i.arg))

    def op_LOAD_ASSERTION_ERROR(self, i):
        self.stack.append(AssertionError)

    def op_IMPORT_NAME(self, i):
        level, fromlist = self.pop(2)
        self.stack.append(__import__(i.arg, self.function.__globals__, None, fromlist, level))

    def op_IMPORT_FROM(self, i):
        self.stack.append(getattr(self.stack[-1], i.arg))

    # ---- attributes, items
    def op_LOAD_ATTR(self, i):
        self.stack.append(getattr(self.stack.pop(), i.arg))

    def op_LOAD_SUPER_ATTR(self, i):
        kind, cls, me = self.pop(3)
        self.stack.append(getattr(kind(cls, me), i.arg))

    def op_STORE_ATTR(self, i):
        value, target = self.pop(2)
        setattr(target, i.arg, value)

    def op_BINARY_SUBSCR(self, i):
        a, b = self.pop(2)
        self.stack.append(a[b])

    def op_STORE_SUBSCR(self, i):
        value, target, key = self.pop(3)
        target[key] = value

    def op_DELETE_SUBSCR(self, i):
        target, key = self.pop(2)
        del target[key]

    def op_BINARY_SLICE(self, i):
        a, start, stop = self.pop(3)
        self.stack.append(a[start:stop])

    def op_STORE_SLICE(self, i):
        value, a, start, stop = self.pop(4)
        a[start:stop] = value

    # ---- builders
    def op_BUILD_TUPLE(self, i):
        self.stack.append(tuple(self.pop(i.arg)))

    def op_BUILD_LIST(self, i):
        self.stack.append(list(self.pop(i.arg)))

    def op_BUILD_SET(self, i):
        self.stack.append(set(self.pop(i.arg)))

    def op_BUILD_SLICE(self, i):
        self.stack.append(slice(*self.pop(i.arg)))

    def op_BUILD_STRING(self, i):
        self.stack.append("".join(self.pop(i.arg)))

    def op_BUILD_MAP(self, i):
        flat = self.pop(2 * i.arg)
        self.stack.append(dict(zip(flat[::2], flat[1::2])))

    def op_BUILD_CONST_KEY_MAP(self, i):
        keys = self.stack.pop()
        self.stack.append(dict(zip(keys, self.pop(i.arg))))

    def op_LIST_APPEND(self, i):
        value = self.stack.pop()
        self.stack[-i.arg].append(value)

    def op_SET_ADD(self, i):
        value = self.stack.pop()
        self.stack[-i.arg].add(value)

    def op_MAP_ADD(self, i):
        key, value = self.pop(2)
        self.stack[-i.arg][key] = value

    def op_LIST_EXTEND(self, i):
        value = self.stack.pop()
        self.stack[-i.arg].extend(value)

    def op_DICT_UPDATE(self, i):
        value = self.stack.pop()
        self.stack[-i.arg].update(value)

    op_DICT_MERGE = op_DICT_UPDATE

    def op_UNPACK_SEQUENCE(self, i):
        values = list(self.stack.pop())
        if len(values) != i.arg:
            raise ValueError("unpack")
        self.stack.extend(reversed(values))

    def op_UNPACK_EX(self, i):
        before, after = i.arg
        values = list(self.stack.pop())
        middle = len(values) - after
        parts = [*values[:before], values[before:middle], *values[middle:]]
        self.stack.extend(reversed(parts))

    def op_FORMAT_VALUE(self, i):
        conversion, has_spec = i.arg
        spec = self.stack.pop() if has_spec else ""
        convert = {None: lambda v: v, "str": str, "repr": repr, "ascii": ascii}[conversion]
        self.stack.append(format(convert(self.stack.pop()), spec))

    # ---- control
    def op_JUMP(self, i):
        return i.target

    def op_POP_JUMP_IF_FALSE(self, i):
        return None if self.stack.pop() else i.target

    def op_POP_JUMP_IF_TRUE(self, i):
        return i.target if self.stack.pop() else None

    def op_POP_JUMP_IF_NONE(self, i):
        return i.target if self.stack.pop() is None else None

    def op_POP_JUMP_IF_NOT_NONE(self, i):
        return None if self.stack.pop() is None else i.target

    def op_JUMP_IF_FALSE_OR_POP(self, i):
        if not self.stack[-1]:
            return i.target
        self.stack.pop()

    def op_JUMP_IF_TRUE_OR_POP(self, i):
        if self.stack[-1]:
            return i.target
        self.stack.pop()

    def op_FOR_ITER(self, i):
        try:
            self.stack.append(next(self.stack[-1]))
        except StopIteration:
            self.stack.pop()
            return i.target

    def op_RETURN_VALUE(self, i):
        self.result = self.stack.pop()

    # ---- calls
    def op_CALL(self, i):
        n, names = i.arg
        values = self.pop(n)
        a, b = self.pop(2)
        if super in (a, b) and not n:  # 3.11: it looks for its caller's frame
            values = [self.cells["__class__"].cell_contents, self.locals[self.code.co_varnames[0]]]
        if a is NULL or b is NULL:
            function = b if a is NULL else a
        else:
            function, values = a, [b, *values]
        split = len(values) - len(names)
        self.stack.append(function(*values[:split], **dict(zip(names, values[split:]))))

    def op_CALL_FUNCTION_EX(self, i):
        keywords = self.stack.pop() if i.arg else {}
        values = self.stack.pop()
        a, b = self.pop(2)
        self.stack.append((b if a is NULL else a)(*values, **keywords))

    def op_CALL_INTRINSIC_1(self, i):
        if i.arg != "INTRINSIC_LIST_TO_TUPLE":
            raise Unsupported(f"CALL_INTRINSIC_1 {i.arg}")
        self.stack.append(tuple(self.stack.pop()))

    def op_MAKE_FUNCTION(self, i):
        code = self.stack.pop()
        closure = self.stack.pop() if i.arg & 8 else None
        made = FunctionType(
            code, self.function.__globals__, None, None, closure or self.blank(code)
        )
        if i.arg & 4:
            self.stack.pop()
        made.__kwdefaults__ = self.stack.pop() if i.arg & 2 else None
        made.__defaults__ = self.stack.pop() if i.arg & 1 else None
        self.stack.append(made)

    def blank(self, code):
        return tuple(CellType() for _ in code.co_freevars) or None

    def op_SET_FUNCTION_ATTRIBUTE(self, i):
        value, function = self.pop(2)
        if i.arg == 8:
            old = function
            function = FunctionType(old.__code__, old.__globals__, None, None, value)
            function.__defaults__, function.__kwdefaults__ = old.__defaults__, old.__kwdefaults__
        elif i.arg == 1:
            function.__defaults__ = value
        elif i.arg == 2:
            function.__kwdefaults__ = value
        self.stack.append(function)

    # ---- exceptions
    def op_RAISE_VARARGS(self, i):
        if i.arg == 0:
            raise self.handled[-1]
        error, *cause = self.pop(i.arg)
        error = error() if isinstance(error, type) else error
        if cause:
            raise error from cause[0]
        raise error

    def op_RERAISE(self, i):
        raise self.stack.pop()

    def op_PUSH_EXC_INFO(self, i):
        error = self.stack.pop()
        previous = self.handled[-1] if self.handled else None
        self.handled.append(error)
        self.stack += [Previous(previous, error), error]

    def op_POP_EXCEPT(self, i):
        self.stack.pop()
        self.handled.pop()

    def op_CHECK_EXC_MATCH(self, i):
        kind = self.stack.pop()
        self.stack.append(isinstance(self.stack[-1], kind))

    def op_BEFORE_WITH(self, i):
        manager = self.stack.pop()
        self.stack += [manager.__exit__, manager.__enter__()]

    def op_WITH_EXCEPT_START(self, i):
        error = self.stack[-1]
        self.stack.append(self.stack[-1 - i.arg](type(error), error, error.__traceback__))
