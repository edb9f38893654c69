"""Programs that the generated tests got wrong: exceptions, names, streams, objects with rules of their own."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import io
import logging
import operator
import types

import pytest
import torch
from capturing import agree

import compiler_core as cc

ONE = torch.ones(3)


def both(f, *calls):
    """`f` compiled and in plain Python on each call; what it returns is compared, and graphs were built."""
    before = cc.stats().graphs
    compiled = cc.compile(f, options={"strict": True}, backend="eager")
    for args in calls or ((ONE,), (ONE * 2,), (ONE * 3,)):
        ours, eager = compiled(*copy.deepcopy(args)), f(*copy.deepcopy(args))
        assert torch.equal(ours[0], eager[0]) and ours[1:] == eager[1:]
    assert cc.stats().graphs > before


def test_what_an_exception_was_raised_from():
    def f(x):
        try:
            try:
                raise ValueError("a")
            except ValueError as error:
                raise KeyError("b") from error
        except KeyError as error:
            cause, context = error.__cause__, error.__context__
            return x * 2, str(cause), cause is context, error.__suppress_context__

    both(f)


def test_the_context_of_an_exception():
    def f(x):
        try:
            try:
                {}["a"]
            except KeyError:
                x = x + 1
                raise ValueError("while handling")
        except ValueError as error:
            return x * 2, repr(error.__context__), error.__cause__, error.__suppress_context__

    both(f)


def test_an_exception_that_leaves_a_handler_keeps_its_context():
    def f(x, items):
        x = x * 2
        try:
            raise ValueError("a")
        except ValueError:
            return x + items[-1]

    compiled = cc.compile(f, options={"strict": True}, backend="eager")
    for items in ([1], [], [2], []):
        seen = []
        for fn in (compiled, f):
            try:
                seen.append(fn(ONE, items).tolist())
            except IndexError as error:
                seen.append((str(error), repr(error.__context__)))
        assert seen[0] == seen[1]


def test_an_operator_that_raises_has_no_context_of_the_graph():
    def f(x, log):
        log.append("before")
        try:
            return torch.cat([x, x.sum()]), "cat"
        except RuntimeError as error:
            return x * 2, error.__cause__, len(log)

    both(f, (ONE, []), (ONE * 2, []), (ONE, [1]))


def test_the_name_that_an_attribute_error_is_about():
    def f(x, holder):
        try:
            return x * holder.missing, ""
        except AttributeError as error:
            return x * 2, error.name, error.obj is holder

    both(f, *(((ONE * k, types.SimpleNamespace(there=1))) for k in (1, 2, 3)))


@pytest.mark.parametrize(
    "call", [lambda g: g(1, 2, 3), lambda g: g(), lambda g: g(1), lambda g: (lambda a: a)(1, 2)]
)
def test_wrong_calls_say_what_python_says(call):
    def g(a, b, *, c, d=1):
        return a

    def f(x):
        try:
            call(g)
        except TypeError as error:
            return x * 2, str(error)

    both(f)


def test_no_attribute_beside_the_slots():
    class Slotted:
        __slots__ = ("left",)

    def f(x):
        made = Slotted()
        made.left = x
        try:
            made.right = 1
        except AttributeError as error:
            return made.left * 2, str(error)

    both(f)


def test_what_is_callable():
    def f(x):
        kinds = (1, "s", None, [1], x, int, len, f, (1,), {}, Calling(), object())
        return x * 2, [callable(k) for k in kinds]

    both(f)


class Calling:
    def __call__(self):
        return 1


def test_attributes_written_in_the_trace_need_no_guard():
    def f(x, holder):
        holder.fresh = 3
        there = hasattr(holder, "fresh"), getattr(holder, "other", 2)
        holder.other = 4
        return x * holder.fresh, there, hasattr(holder, "other")

    both(f, *((ONE * k, types.SimpleNamespace()) for k in (1, 2, 3)))


def test_two_sources_that_differ_in_case_only():
    def f(w, W, t):
        return w + W * 2 + t.t() + t.t().t(), 0

    log = agree(lambda: f, [(ONE.diag(), ONE.diag() * k, torch.ones(3, 3)) for k in (2, 3)])
    assert log.graph_calls == 2


@dataclasses.dataclass(frozen=True)
class Key:
    size: int
    name: str = "n"


def test_a_frozen_dataclass_made_in_a_frame_of_its_own():
    def f(x):
        print(end="")  # what comes behind runs as a frame of its own
        key = Key(3)
        print(end="")
        return x * key.size, key

    both(f)
    init = cc.compile(Key.__init__, options={"strict": True}, backend="eager")
    for size in (1, 2, 3):
        key = object.__new__(Key)
        init(key, size)
        assert key == Key(size)


def test_the_stream_of_the_call_is_asked_at_each_call():
    def f(x, out):
        with contextlib.redirect_stdout(out):
            x = x + 1
        return x * 2, 0

    compiled = cc.compile(f, options={"strict": True}, backend="eager")
    for k in (1, 2, 3):
        with contextlib.redirect_stdout(io.StringIO()) as outer:
            assert torch.equal(compiled(ONE * k, io.StringIO())[0], (ONE * k + 1) * 2)
            print("seen", end="")
        assert outer.getvalue() == "seen"


def test_a_module_imported_inside_is_asked_at_each_call(monkeypatch):
    import string

    def f(x):
        import string

        return x * len(string.digits), 0

    compiled = cc.compile(f, options={"strict": True}, backend="eager")
    for digits in ("0123", "01", "012345"):
        monkeypatch.setattr(string, "digits", digits)
        assert torch.equal(compiled(ONE)[0], ONE * len(digits))


def test_a_logger_names_the_users_function(caplog):
    log = logging.getLogger("programs")

    def f(x):
        x = x + 1
        log.warning("here %d", 3)
        print(end="")
        log.warning("there")
        return x * 2, 0

    both(f)
    places = {(record.funcName, record.filename, record.lineno) for record in caplog.records}
    line = f.__code__.co_firstlineno
    assert places == {("f", "test_found_by_generated_programs.py", line + n) for n in (2, 4)}


def test_objects_made_by_classes_in_c():
    def f(x):
        first = operator.itemgetter(0)
        print(end="")
        return first([x, 1]) * 2, operator.attrgetter("ndim")(x)

    both(f)
