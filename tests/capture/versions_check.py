"""Decoding and entering bytecode, checked in the interpreter that runs this file (no torch needed).

    PYTHONPATH=<project>:<folder with the bytecode package> python3.12 tests/capture/versions_check.py

Prints what was checked; ends with status 1 and the failures if there are any.
"""

import dis
import sys
from importlib import import_module
from types import CodeType, FunctionType

import splice_programs
from dialect_machine import NULL, Machine, Previous
from splice_programs import LOG, PROGRAMS

from compiler_core.capture.dialect import BINARY_OPERATORS, COMPARISONS, DIALECT
from compiler_core.capture.normalise import decode
from compiler_core.capture.resume_points import resume_function, root_of, step_function
from compiler_core.capture.splice import CannotEnter, cells_of, enter_at, uses_super
from compiler_core.capture.versions import CURRENT

FAILURES = []


def expect(condition, *what):
    if not condition:
        FAILURES.append(" ".join(map(str, what)))


def outcome(call):
    """Result or exception of a call, with what it logged."""
    before = len(LOG)
    try:
        result = ("returned", repr(call()))
    except Exception as error:
        result = ("raised", repr(error))
    logged = LOG[before:]
    del LOG[before:]
    return result, repr(logged)


# ---------------------------------------------------------------------------- decoding


def check_every_opcode():
    """Each opcode of this version has a row, is part of a group, or is refused with a reason."""
    for opcode in dis.opmap:
        reason = CURRENT.reason(opcode)
        expect(reason is None or "not known" not in reason, "no row and no reason:", opcode)
    for opcode in CURRENT.rows:
        expect(opcode in dis.opmap, "row of an opcode that does not exist:", opcode)
    for opcode, row in CURRENT.rows.items():
        for step in row:
            expect(step.op in DIALECT, opcode, "expands to an unknown operation:", step.op)
    expect("not known" in CURRENT.reason("NO_SUCH_OPCODE"), "an unknown opcode has no reason")
    return len(dis.opmap)


def codes_of(module):
    found, todo = [], [v.__code__ for v in vars(module).values() if isinstance(v, FunctionType)]
    while todo:
        code = todo.pop()
        found.append(code)
        todo += [c for c in code.co_consts if isinstance(c, CodeType)]
    return found


def standard_library():
    names = """
        argparse ast asyncio.base_events dataclasses difflib inspect json.decoder pickle tarfile
        textwrap traceback typing unittest.mock
    """
    modules = [import_module(name) for name in names.split()]
    return [code for module in (*modules, splice_programs) for code in codes_of(module)]


def check_decoding():
    """Every code object decodes: known operations, targets and handlers at instructions."""
    count = 0
    for code in standard_library():
        decoded = decode(code)
        starts = {i.offset for i in decoded.instructions}
        for i in decoded.instructions:
            count += 1
            expect(i.op in DIALECT, code, i)
            expect(i.op != "UNSUPPORTED" or (isinstance(i.arg, str) and i.arg), code, i)
            expect(i.target is None or i.target in starts, "target", code, i)
            expect(i.op != "BINARY_OP" or i.arg in BINARY_OPERATORS, code, i)
            expect(i.op not in ("COMPARE_OP", "COMPARE_OP_BOOL") or i.arg in COMPARISONS, code, i)
            jumps = i.op == "JUMP" or "JUMP_IF" in i.op or i.op in ("FOR_ITER", "SEND")
            expect(jumps == (i.target is not None), "jump without target, or the reverse", code, i)
            if i.span is not None:
                expect(i.span.file == code.co_filename, "file", i)
                expect(i.span.line >= code.co_firstlineno, "line", code, i)
        for entry in decoded.table:
            expect(entry.target in starts, "handler", code, entry)
        expect(decode(code) is decoded, "decoded twice", code)
    return count


def check_spans():
    """An instruction's span is the text that made it."""
    source = "def f(a, b):\n    return a + (b *\n        3)\n"
    scope = {}
    exec(compile(source, "spans.py", "exec"), scope)
    spans = {i.arg: i.span for i in decode(scope["f"].__code__).instructions if i.op == "BINARY_OP"}
    plus, times = spans["+"], spans["*"]
    expect((plus.line, plus.col, plus.end_line) == (2, 11, 3), plus)
    expect((times.line, times.col, times.end_line, times.end_col) == (2, 16, 3, 9), times)


def check_equal_codes_of_two_files():
    """Code objects that compare equal keep their own files."""
    one, two = ({}, {})
    exec(compile("def f(a): return a", "one.py", "exec"), one)
    exec(compile("def f(a): return a", "two.py", "exec"), two)
    files = [decode(s["f"].__code__).instructions[-1].span.file for s in (one, two)]
    expect(files == ["one.py", "two.py"], files)


# ---------------------------------------------------------------------------- entering


def check_machine():
    """The reference interpreter agrees with CPython on every program."""
    for function, arguments in PROGRAMS:
        plain = outcome(lambda: function_result(function, arguments))
        ours = outcome(lambda: run_machine(function, arguments))
        expect(plain == ours, "machine", function.__name__, arguments, plain, ours)


def fresh(arguments):
    return tuple(list(a) if isinstance(a, list) else a for a in arguments)


def renewed(function):
    """The function with cells of its own, so that a run leaves nothing behind."""
    cells = tuple(type(c)(c.cell_contents) for c in function.__closure__ or ())
    return FunctionType(function.__code__, function.__globals__, None, None, cells or None)


def run_machine(function, arguments):
    machine = Machine(renewed(function), fresh(arguments))
    machine.run()
    return machine.result


def stopped(function, arguments, steps):
    """A machine in front of step number `steps`; None when it ended before."""
    machine = Machine(renewed(function), fresh(arguments))
    try:
        return machine if machine.run(steps) else None
    except Exception:
        return None


def entry_arguments(machine):
    """nulls, handled slots, local names and the values for an entry at a machine's state."""
    nulls = [value is NULL for value in machine.stack]
    handled, values = {}, []
    for slot, value in enumerate(machine.stack):
        if isinstance(value, Previous):
            is_copy = any(value is v for v in machine.stack[:slot])
            is_in_force = not is_copy and len(handled) < len(machine.handled)
            if is_in_force:
                handled[slot] = value.now
            value = value.now if is_in_force else value.before
        values += [value] if value is not NULL else []
    names = list(machine.locals)
    closure = tuple(machine.cells[n] for n in cells_of(machine.code)) or None
    first = [None] if uses_super(machine.code) else []
    return nulls, tuple(handled), names, (closure, *first, *values, *machine.locals.values())


def check_enter_everywhere():
    """From every state of every program: entering there ends as the program does."""
    entered = stepped = 0
    for function, arguments in PROGRAMS:
        scope, steps = function.__globals__, 0
        plain = outcome(lambda: function_result(function, arguments))
        while (machine := stopped(function, arguments, steps)) is not None:
            LOG.clear()
            where = f"{function.__name__}{arguments} at {machine.offset} (step {steps})"
            entered += compare(plain, function, arguments, steps, scope, where, resume)
            stepped += compare(plain, function, arguments, steps, scope, where, step)
            steps += 1
    return entered, stepped


def function_result(function, arguments):
    return renewed(function)(*fresh(arguments))


def resume(code, offset, nulls, names, scope, handled):
    return resume_function(code, offset, nulls, names, scope, handled=handled)


def step(code, offset, nulls, names, scope, handled):
    return step_function(code, offset, nulls, names, scope, handled=handled)


def compare(plain, function, arguments, steps, scope, where, make):
    def go():
        machine = stopped(function, arguments, steps)
        nulls, handled, names, values = entry_arguments(machine)
        if any(v is NULL for v in machine.locals.values()):
            raise CannotEnter("a NULL local")
        return scope[make(machine.code, machine.offset, nulls, names, scope, handled)](*values)

    mark = len(LOG)
    try:
        decoded_offset = stopped(function, arguments, steps)
        del LOG[mark:]
        nulls, handled, names, _ = entry_arguments(decoded_offset)
        make(decoded_offset.code, decoded_offset.offset, nulls, names, scope, handled)
    except CannotEnter:
        return 0
    ours = outcome(go)
    expect(ours == plain, make.__name__, where, "\n   plain", plain, "\n   ours ", ours)
    return 1


def check_resume_of_resume():
    """A resume made inside a resume is one of the original code, and named after it."""
    scope = splice_programs.__dict__
    code = splice_programs.loops.__code__
    offsets = list(decode(code).last)
    names = ("x", "n", "total", "i")
    start = next(i.target for i in decode(code).instructions if i.op == "FOR_ITER")
    first = enter_named(code, start, [], names, scope)
    back = {}
    for offset in decode(first).last:
        try:
            root = root_of(first, offset)
        except CannotEnter:
            continue  # the head of the resume, or half of an instruction
        expect(root.code is code, "root is not the original")
        expect(root.offset not in back, "two places for", root.offset)
        back[root.offset] = offset
    expect(sorted(back) == offsets, "not all offsets are mapped", back)
    inner = back[start]
    again = resume_function(first, inner, [], names, scope)
    expect(again == resume_function(code, start, [], names, scope), "two resumes of one place")
    expect(again.startswith(f"__resume_at_{start}_loops"), again)


def enter_named(code, offset, nulls, names, scope):
    made = scope[resume_function(code, offset, nulls, names, scope)]
    return made.__closure__[made.__code__.co_freevars.index("code")].cell_contents


def check_refusals():
    def generator(n):
        yield n

    try:
        enter_at(generator.__code__, 0, [], ["n"], "g")
        expect(False, "a generator was entered")
    except CannotEnter as error:
        expect("generator" in str(error), error)
    try:
        step_function(splice_programs.loops.__code__, 0, [], [], {})
    except CannotEnter:
        expect(False, "RESUME cannot be stepped")


def check_traceback_lines():
    """An error after a resume names the user's own line."""
    code = splice_programs.maybe.__code__
    raises = next(i for i in decode(code).instructions if i.op == "RAISE_VARARGS")
    scope = splice_programs.__dict__
    name = resume_function(code, raises.offset, [False], ("value", "limit"), scope)
    try:
        scope[name](None, KeyError("x"), 1, 2)
        expect(False, "did not raise")
    except KeyError as error:
        trace = error.__traceback__
        while trace.tb_next:
            trace = trace.tb_next
        expect(trace.tb_lineno == raises.span.line, trace.tb_lineno, raises.span)
        expect(trace.tb_frame.f_code.co_filename == code.co_filename, "file")


def main():
    opcodes = check_every_opcode()
    decoded = check_decoding()
    check_spans()
    check_equal_codes_of_two_files()
    check_machine()
    entered, stepped = check_enter_everywhere()
    check_resume_of_resume()
    check_refusals()
    check_traceback_lines()
    expect(entered > 500 and stepped > 200, "too few entries", entered, stepped)
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"{version}: {opcodes} opcodes, {decoded} instructions decoded, "
          f"entered at {entered} states, stepped at {stepped}")  # fmt: skip
    for failure in FAILURES[:20]:
        print("FAILED", failure)
    return len(FAILURES)


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
