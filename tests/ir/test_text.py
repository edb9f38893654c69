"""The text of the loop IR: it reads back, edits keep their origins, faults are pointed at."""

from __future__ import annotations

import math
import string
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler_core.errors import VerifyError
from compiler_core.ir.checks import CHECKS
from compiler_core.ir.dtypes import DTYPES
from compiler_core.ir.index import Index, Sym, index, maximum
from compiler_core.ir.loop import (
    Axis,
    Block,
    Buffer,
    Call,
    Constant,
    Load,
    Loop,
    Nest,
    Place,
    Position,
    Program,
    Reduce,
    Statement,
    Store,
    Value,
    View,
)
from compiler_core.ir.ops import OPS, REDUCTIONS
from compiler_core.ir.parse import parse_program
from compiler_core.ir.text import named_statements, print_block, print_program, statement_handles

SOFTMAX = """\
program forward(x, n):
  size s0 = x.size(0)
  size n
  in   x: bf16[s0, 8] stride [8, 1] on cuda:0
  out  y: bf16[s0, 8] stride [8, 1] on cuda:0
  temp t: f32[max(1, s0)] stride [1]

  nest softmax_0 for i < s0:
    m: bf16   = max over j < 8:
      a: bf16 = load x[8*i + j]
      yield a
    lim: bf16 = const -inf
    for k < 8:
      b: bf16  = load x[8*i + k]
      ok: bool = ne b lim
      c: bf16  = load x[8*i + k + n] if ok else nan
      store y[8*i + k] = c
      store y[8*i + k] = b

  call mm_0: t, None = aten.f.out(x, view(x, [8, s0], [1, 8], 2), [1, s0 - 1], -1.5, None, 'a#b', dtype=torch.float32, device=device('cuda:0'), flag=True) because "it's # fast"
  call mm_1: aten.g(n//2) because 'no rule'

  update x = y
  return y, view(t, [4], [1], s0), 2*s0, 3, None"""


def test_a_program_prints_as_it_was_written() -> None:
    assert print_program(parse_program(SOFTMAX)) == SOFTMAX


def test_layout_comments_and_blank_lines_mean_nothing() -> None:
    loose = SOFTMAX.replace(" = ", "   =  ").replace("yield a", "yield a   # the row's maximum\n\n")
    loose = loose.replace("8*i + j", "(i*2*4 + j - 0)").replace("  ", "    ")
    assert loose != SOFTMAX
    assert parse_program(loose) == parse_program(SOFTMAX)


# ---------------------------------------------------------------------------------- random programs

names = st.text(string.ascii_letters + "_", min_size=1, max_size=6).map(lambda s: "v_" + s)
symbols = st.sampled_from([Sym("s0"), Sym("s1"), Sym("i"), Sym("at_1")])
numbers = st.one_of(
    st.integers(-(2**40), 2**40),
    st.booleans(),
    st.floats(allow_nan=False),
    st.just(math.nan),
)
dtypes = st.sampled_from(list(DTYPES.values()))


def _indices(inner: st.SearchStrategy[Index]) -> st.SearchStrategy[Index]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        pairs.map(lambda p: p[0] + p[1]),
        pairs.map(lambda p: p[0] * p[1] - 2),
        pairs.map(lambda p: maximum(p[0], p[1])),
        st.tuples(inner, st.integers(1, 9)).map(lambda p: p[0] // p[1]),
        st.tuples(inner, symbols).map(lambda p: p[0] % p[1]),
    )


indices = st.recursive(symbols | st.integers(-9, 9).map(index), _indices, max_leaves=4)
axes = st.lists(st.builds(Axis, names, indices), min_size=0, max_size=2).map(tuple)
leaves = st.one_of(
    st.builds(Constant, names, numbers, dtypes),
    st.builds(Position, names, indices, dtypes),
    st.builds(Load, names, names, indices, dtypes),
    st.builds(Load, names, names, indices, dtypes, names, numbers),
    st.builds(
        Place, names, names, indices, st.sampled_from(list(CHECKS)), st.integers(0, 9), dtypes
    ),
    st.builds(Store, names, indices, names, adds=st.booleans()),
    st.sampled_from(list(OPS.values())).flatmap(
        lambda op: st.builds(Value, names, st.just(op.name), st.tuples(*[names] * op.arity), dtypes)
    ),
)


def _nested(inner: st.SearchStrategy[Statement]) -> st.SearchStrategy[Statement]:
    block: st.SearchStrategy[Block] = st.lists(inner, min_size=1, max_size=3).map(tuple)
    kinds = st.sampled_from(list(REDUCTIONS))
    return st.one_of(
        st.builds(Loop, axes, block), st.builds(Reduce, names, kinds, axes, block, names, dtypes)
    )


blocks = st.lists(st.recursive(leaves, _nested, max_leaves=6), min_size=1, max_size=4).map(tuple)
shapes = st.lists(indices, max_size=3).map(tuple)
buffers = st.builds(
    Buffer,
    names,
    dtypes,
    shapes,
    shapes,
    st.sampled_from(["in", "out", "temp", "const"]),
    st.sampled_from(["cpu", "cuda:0"]),
)
views = st.builds(View, names, shapes, shapes, indices)
scalars = st.one_of(
    views,
    indices.filter(lambda e: e.constant is None),
    numbers,
    st.none(),
    st.text(max_size=5),
    st.sampled_from([torch.float32, torch.complex64, torch.strided, torch.channels_last]),
    st.sampled_from([torch.device("cpu"), torch.device("cuda:1")]),
)
arguments = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple))
calls = st.builds(
    Call,
    names,
    st.sampled_from(["aten.mm.default", "aten._f.int"]),
    st.lists(arguments, max_size=3).map(tuple),
    st.lists(st.tuples(names, arguments), max_size=2, unique_by=lambda pair: pair[0]).map(tuple),
    st.lists(st.none() | names, max_size=2).map(tuple),
    st.text(string.printable, max_size=12),
)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    declared = {b.name: b for b in draw(st.lists(buffers, min_size=1, max_size=3))}
    known = st.sampled_from(list(declared))
    body = draw(st.lists(st.builds(Nest, names, axes, blocks) | calls, max_size=3))
    symbols = {"s0": (draw(known), draw(st.integers(0, 3))), "s1": None}
    outputs: list[Any] = draw(st.lists(known | views | st.integers(0, 9) | st.none(), max_size=3))
    updates = draw(st.lists(st.tuples(known, known), max_size=2))
    order = (*declared, "s1")
    return Program(
        draw(names), symbols, declared, tuple(body), order, tuple(outputs), tuple(updates)
    )


@settings(max_examples=150, deadline=None)
@given(programs())
def test_parse_of_print_is_the_program(program: Program) -> None:
    text = print_program(program)
    assert parse_program(text) == program
    assert print_program(parse_program(text)) == text


@settings(max_examples=60, deadline=None)
@given(programs())
def test_every_item_has_a_handle_that_points_at_its_line(program: Program) -> None:
    handles = statement_handles(program, "lower", "forward")
    lines = print_program(program).splitlines()
    nests = [item for item in program.body if isinstance(item, Nest)]
    for label, _, number in handles.values():
        assert " ".join(lines[number - 1].split()) == label
    if len({item.name for item in program.body}) == len(program.body):
        count = sum(len(list(named_statements(nest))) for nest in nests)
        assert len(handles) == len(program.body) + count


# ---------------------------------------------------------------------------------- handles, origins


def test_handles_have_the_forms_of_the_contract() -> None:
    handles = statement_handles(parse_program(SOFTMAX), "fuse", "backward")
    assert [key.removeprefix("fuse:backward/") for key in handles] == [
        "softmax_0",
        "softmax_0.m",
        "softmax_0.a",
        "softmax_0.lim",
        "softmax_0.loop_0",
        "softmax_0.b",
        "softmax_0.ok",
        "softmax_0.c",
        "softmax_0.store_y",
        "softmax_0.store_y.2",
        "mm_0",
        "mm_1",
    ]
    assert handles["fuse:backward/softmax_0.store_y.2"] == (
        "store y[8*i + k] = b",
        frozenset(),
        18,
    )


def with_origins(program: Program) -> Program:
    """Each item's origin is its own name."""
    nest = program.body[0]
    assert isinstance(nest, Nest)
    by_item = {id(s): frozenset({f"forward:{name}"}) for name, s in named_statements(nest)}

    def block(statements: Block) -> Block:
        return tuple(
            replace(s, origins=by_item[id(s)], body=block(s.body))
            if isinstance(s, Loop | Reduce)
            else replace(s, origins=by_item[id(s)])
            for s in statements
        )

    new = replace(nest, body=block(nest.body), origins=frozenset({"forward:nest"}))
    return replace(program, body=(new, *program.body[1:]))


def test_an_edited_text_keeps_the_origins_of_what_stayed() -> None:
    old = with_origins(parse_program(SOFTMAX))
    text = print_program(old)
    assert parse_program(text) != old  # the text holds no origins
    edited = text.replace("ok: bool = ne b lim", "low: bool = lt b lim\n      ok: bool = not low")
    new = parse_program(edited, like=old)
    handles = statement_handles(new, "lower", "forward")
    assert handles["lower:forward/softmax_0.ok"][1] == {"forward:ok"}
    assert handles["lower:forward/softmax_0.loop_0"][1] == {"forward:loop_0"}
    assert handles["lower:forward/softmax_0.store_y.2"][1] == {"forward:store_y.2"}
    assert handles["lower:forward/softmax_0"][1] == {"forward:nest"}
    (synthetic,) = handles["lower:forward/softmax_0.low"][1]
    assert synthetic.startswith("synthetic:edit:")
    assert parse_program(text, like=new).body[0] == old.body[0]


def test_a_block_prints_alone() -> None:
    nest = parse_program(SOFTMAX).body[0]
    assert isinstance(nest, Nest)
    assert print_block(nest.body[:1], 1).splitlines() == [
        "  m: bf16 = max over j < 8:",
        "    a: bf16 = load x[8*i + j]",
        "    yield a",
    ]


# ---------------------------------------------------------------------------------- faults

FAULTS = [
    # (what stands in the text, what an editor made of it, expected, what the caret is under)
    ("x: bf16[s0, 8]", "x: bf61[s0, 8]", "an element type; did you mean 'bf16'?", "bf61"),
    ("x: bf16[s0, 8]", "x: bf16[s0, 8 +]", "index expressions", "]"),
    ("load x[8*i + j]", "load x[8*i + j", "'load <buffer>[<index>]'", "load"),
    ("load x[8*i + j]", "load x[8.5*i + j]", "an integer, a name", "8.5"),
    ("load x[8*i + j]", "load x[i//0]", "a divisor that is not 0", "i//0"),
    ("max over j < 8:", "max over j <= 8:", "an axis such as 'i < s0'", "j <= 8"),
    ("max over j < 8:", "max j < 8:", "'max over <axes>:'", "max"),
    ("ne b lim", "neq b lim", "an operation of the loop IR; did you mean 'ne'?", "neq"),
    ("ne b lim", "ne b 3", "the names of operands", "3"),
    ("const -inf", "const minus", "a number, True, False, inf or nan", "minus"),
    ("      yield a\n", "", "'yield <name>' at the end of the reduction of line 9", "lim: bf16"),
    ("because 'no rule'", "because no rule", "a reason in quotes", "no rule"),
    ("  call mm_1: aten.g", "  cal mm_1: aten.g", "'nest', 'call', 'update' or 'return'", "cal"),
    ("    lim: bf16", "     lim: bf16", "a line indented by 4", "lim"),
    ("  return y,", "  return y,\n  return y,", "the end of the program", "return y"),
    ("program forward(", "programme forward(", "'program <name>(<arguments>):'", "programme"),
]


@pytest.mark.parametrize(("before", "after", "expected", "pointed"), FAULTS)
def test_a_fault_is_shown_with_its_line(
    before: str, after: str, expected: str, pointed: str
) -> None:
    assert before in SOFTMAX
    with pytest.raises(VerifyError) as caught:
        parse_program(SOFTMAX.replace(before, after, 1))
    head, shown, caret, *_ = str(caught.value).splitlines()
    assert f"expected {expected}" in head
    assert shown[caret.index("^") :].startswith(pointed)
