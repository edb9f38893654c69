"""The verifier: a good program passes, each broken rule is refused with its own message."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compiler_core.errors import VerifyError
from compiler_core.ir.dtypes import DTYPES, OPAQUE
from compiler_core.ir.loop import Nest, Program, Store
from compiler_core.ir.parse import parse_program
from compiler_core.ir.text import print_program
from compiler_core.ir.verify import verify_program
from compiler_core.provenance import synthetic

GOOD = """\
program forward(x, w, h, n):
  size s0 = x.size(0)
  size s1 = x.size(1)
  size n
  in   x: f32[s0, s1] stride [s1, 1]
  in   w: f32[4, 8] stride [8, 1]
  in   h: i64[s0] stride [1]
  out  y: f32[s0, s1] stride [s1, 1]
  out  z: f32[4, 8] stride [8, 1]
  temp t: f32[s0] stride [1]
  out  t2: f32[s0] stride [1]
  temp c: f32[4, 4] stride [4, 1]

  nest softmax_0 for i < s0, j < s1:
    m: f32   = max over k < s1:
      a: f32 = load x[i*s1 + k]
      yield a
    b: f32   = load x[i*s1 + j]
    ok: bool = gt b m
    d: f32   = where ok b m
    store y[i*s1 + j] = d

  nest pick_0 for q < s0:
    p: i64   = load h[q]
    at: i64  = place p < 32 as row 0
    e: f32   = load w[at]
    f: bool  = isnan e
    g: f32   = load w[at + 100] if f else 0.0
    store t[q] = g

  nest zero_0 for q0 < s0:
    z0: f32  = const 0.0
    store t2[q0] = z0

  nest count_0 for q2 < s0:
    p2: i64  = load h[q2]
    at2: i64 = place p2 < s0 as subscript 0
    e2: f32  = load t[q2]
    store t2[at2] += e2

  nest table_0 for r < 4:
    o: f32 = const 1.0
    for u < 8:
      v: f32 = load w[8*r + u]
      store z[8*r + u] = v

  call mm_0: c = aten.mm.default(w, view(w, [8, 4], [1, 8], 0)) because 'a library does it'

  update w = z
  return y, z, t2, view(t, [n], [1], 0), s0"""


def parsed(text: str = GOOD) -> Program:
    """The text as a program whose items all have an origin."""
    program = parse_program(text)
    return parse_program(print_program(program), like=replace(program, body=()))


def test_a_good_program_passes_after_every_stage() -> None:
    for stage in ("", "lower", "fuse"):
        verify_program(parsed(), stage)


BROKEN = [
    # (text, broken text, rule, the line that the message points at)
    ("b: f32   = load", "a: f32   = load", "a is defined a second time", "a: f32"),
    ("where ok b m", "where ok b a", "a is defined in a block that is closed here", "d: f32"),
    ("where ok b m", "where ok b mm", "mm is not defined before this; did you mean 'm'?", "d: f32"),
    ("gt b m", "gt d m", "d is not defined before this", "ok: bool"),
    ("where ok b m", "add ok b m", "add takes 2 operands, not 3", "d: f32"),
    ("where ok b m", "where b b m", "the first operand of where must be bool", "d: f32"),
    ("where ok b m", "add ok m", "add of bool, f32 as f32: the operands must agree", "d: f32"),
    ("where ok b m", "exp ok", "exp is for floating types", "d: f32"),
    ("ok: bool = gt b m", "ok: f32 = gt b m", "the result is bool", "ok: f32"),
    ("d: f32   = where", "d: f64   = where", "the result is f32", "d: f64"),
    ("load x[i*s1 + k]", "load xx[i*s1 + k]", "there is no buffer xx; did you mean 'x'?", "a: f32"),
    ("b: f32   = load x", "b: f16   = load x", "x holds f32, the load says f16", "b: f16"),
    ("load x[i*s1 + j]", "load t[i]", "t is read before anything is written to it", "b: f32"),
    ("load x[i*s1 + k]", "load x[i*s1 + kk]", "kk is not defined before this", "a: f32"),
    ("load x[i*s1 + j]", "load x[i*s1 + k]", "k is not defined before this", "b: f32"),
    ("load w[at]", "load w[o]", "o is not defined before this", "e: f32"),
    ("load w[at]", "load w[p]", "uses p, a i64 that no `place` keeps in bounds", "e: f32"),
    ("place p < 32 as row", "place p < 32 as rows", "no check rows; did you mean 'row'?", "at: i64"),
    ("place p < 32", "place p < q + 1", "the extent of a place depends on q", "at: i64"),
    ("at: i64  = place p <", "at: i32  = place p <", "a place is an i64 made of", "at: i32"),
    ("place p2 < s0", "place e9 < s0", "e9 is not defined before this", "at2: i64"),
    ("store t2[at2] += e2", "store t2[at2] = e2", "two positions may have the same at2", "store t2"),
    ("e2: f32  = load t[q2]", "e2: f32  = load t2[q2]", "it does not read it", "e2: f32"),
    ("store t2[at2] += e2", "store t2[q2] = e2\n    store t2[at2] += e2", "does not store to it",
     "store t2[q2]"),
    ("store t2[q0] = z0", "store t2[q0] += z0", "added to before anything is written", "store t2"),
    ("load x[i*s1 + k]", "load x[i*s1 + k + 1]", "reaches s0*s1; x has s0*s1 elements", "a: f32"),
    ("load x[i*s1 + k]", "load x[i*s1 + k - 1]", "begins at -1, before x", "a: f32"),
    ("load w[8*r + u]", "load w[8*r + 4*u]", "reaches 52; w has 32 elements", "v: f32"),
    ("store z[8*r + u]", "store z[31 + r]", "reaches 34; z has 32 elements", "store z"),
    ("store z[8*r + u]", "store z[8*r]", "axis u does not move the offset 8*r", "store z"),
    ("store z[8*r + u]", "store z[4*r + u]", "axes r and u collide in the offset", "store z"),
    ("if f else", "if p else", "the mask p is not bool", "g: f32"),
    ("store y[i*s1 + j] = d", "store x[i*s1 + j] = d", "x is an argument", "store x"),
    ("store y[i*s1 + j] = d", "store y[i*s1 + j] = ok", "y holds f32, ok is bool", "store y"),
    ("m: f32   = max", "m: i64   = max", "max of f32 is f32, not i64", "m: i64"),
    ("m: f32   = max", "m: f32   = argmax", "argmax of f32 is i64, not f32", "m: f32"),
    ("m: f32   = max", "m: bool  = any", "any folds truth values, a is f32", "m: bool"),
    ("yield a", "yield b", "b is not defined before this", "m: f32"),
    ("o: f32 = const 1.0", "o: i32 = const 1.5", "the constant 1.5 is no i32", "o: i32"),
    ("o: f32 = const 1.0", "o: bool = const 2", "the constant 2 is no truth value", "o: bool"),
    ("o: f32 = const 1.0", "o: bool = index r", "a position is a number", "o: bool"),
    ("over k < s1", "over i < s1", "the axis i has the name of something else", "m: f32"),
    ("for u < 8", "for s0 < 8", "the axis s0 has the name of something else", "for s0 < 8"),
    ("over k < s1", "over k < i + 1", "the extent of k depends on i", "m: f32"),
    ("nest pick_0", "nest softmax_0", "there are two nests or calls named softmax_0", "nest softm"),
    ("mm.default(w,", "mm.default(nothing,", "nothing is no size of this program", "call mm_0"),
    ("view(w, [8, 4], [1, 8], 0)", "view(w, [8, 4], [1], 0)", "2 sizes, 1 strides", "call mm_0"),
    ("view(w, [8, 4]", "view(c, [8, 4]", "c is read before anything is written", "call mm_0"),
    ("mm_0: c =", "mm_0: cc =", "there is no buffer cc; did you mean 'c'?", "call mm_0"),
    ("mm_0: c =", "mm_0: x =", "x is an argument: a call cannot give its value", "call mm_0"),
    ("return y, z, t2", "return y, c, zz", "zz is no size of this program", "return"),
    ("s1] stride [s1, 1]\n  out  z", "s1] stride [s1, 1]\n  out  no: f32[] stride []\n  out  z",
     "the output no is never written", "out  no"),
    ("update w = z", "update z = y", "z is updated but is no argument", "update"),
    ("temp c: f32[4, 4]", "temp c: f32[4, s9]", "s9 is no size of this program", "temp c"),
    ("temp c: f32[4, 4]", "temp c: f32[4]", "c has 1 sizes, 2 strides", "temp c"),
    ("in   h: i64", "in   c1: f32[] stride []\n  in   h: i64", "c1 has the role 'in'", "in   c1"),
    ("size n\n", "size n\n  size s3\n", "the size s3 is read nowhere", "size s3"),
    ("= x.size(1)", "= x.size(2)", "the size s1 is read from dimension 2 of x", "size s1"),
    ("temp c: f32", "temp is: f32", "'is' is not a name", "temp is"),
]  # fmt: skip


@pytest.mark.parametrize(("good", "bad", "rule", "line"), BROKEN, ids=[row[2] for row in BROKEN])
def test_a_broken_program_is_refused(good: str, bad: str, rule: str, line: str) -> None:
    assert good in GOOD
    program = parsed(GOOD.replace(good, bad, 1))
    with pytest.raises(VerifyError) as caught:
        verify_program(program, "lower")
    message = str(caught.value)
    assert rule in message.splitlines()[0], message
    pointed = [text for text in message.splitlines() if text.startswith(">")]
    assert len(pointed) == 1 and line in pointed[0], message
    assert len(message.splitlines()) < 18


def test_the_whole_message() -> None:
    with pytest.raises(VerifyError) as caught:
        verify_program(parsed(GOOD.replace("gt b m", "gt b")), "lower")
    expected = """\
[CC005] a stage's value is not well formed: lower:forward/softmax_0.ok: gt takes 2 operands, not 1
   14 |   nest softmax_0 for i < s0, j < s1:
   15 |     m: f32   = max over k < s1:
   16 |       a: f32 = load x[i*s1 + k]
   17 |       yield a
   18 |     b: f32   = load x[i*s1 + j]
>  19 |     ok: bool = gt b
   20 |     d: f32   = where ok b m
   21 |     store y[i*s1 + j] = d
   22 |
   23 |   nest pick_0 for q < s0:
   24 |     p: i64  = load h[q]
"""
    assert str(caught.value).startswith(expected)


def without_origins(program: Program, of: str) -> Program:
    nest = program.body[0]
    assert isinstance(nest, Nest)
    if of == "softmax_0":
        return replace(program, body=(replace(nest, origins=frozenset()), *program.body[1:]))
    body = tuple(replace(s, origins=frozenset()) if isinstance(s, Store) else s for s in nest.body)
    return replace(program, body=(replace(nest, body=body), *program.body[1:]))


@pytest.mark.parametrize("of", ["softmax_0", "softmax_0.store_y"])
def test_every_item_has_origins(of: str) -> None:
    with pytest.raises(VerifyError, match=f"forward/{of}: it has no origins"):
        verify_program(without_origins(parsed(), of), "lower")


def test_origins_are_of_the_stage_just_before() -> None:
    program = parsed()
    for stage, good, bad in (
        ("lower", "forward:add", "joint:add"),
        ("fuse", "lower:a", "forward:a"),
    ):
        nest = program.body[0]
        for origin, is_fine in ((good, True), (bad, False)):
            origins = frozenset({origin, *synthetic("test", "also one")})
            changed = replace(program, body=(replace(nest, origins=origins), *program.body[1:]))
            if is_fine:
                verify_program(changed, stage)
                continue
            with pytest.raises(VerifyError, match=f"{bad} is not of the stage before {stage}"):
                verify_program(changed, stage)


def test_no_statement_computes_in_a_type_for_library_calls_only() -> None:
    program = parsed(GOOD.replace("temp c: f32[4, 4]", "temp c: c64[4, 4]"))
    assert program.buffers["c"].dtype is OPAQUE["c64"]
    verify_program(program)
    text = GOOD.replace("temp c: f32[4, 4]", "temp c: c64[4, 4]")
    text = text.replace("store t[q] = g", "store t[q] = g\n    cc: c64 = cast g")
    with pytest.raises(VerifyError, match="no statement computes in c64"):
        verify_program(parsed(text))


def test_sums_are_not_kept_in_small_types() -> None:
    text = GOOD.replace("f32", "bf16")
    with pytest.raises(VerifyError, match="sums are not kept in bf16"):
        verify_program(parsed(text))


def test_what_may_be_right_passes() -> None:
    """Only proven faults are faults: sizes of 1, masks, steps that may not collide, empty loops."""
    for good, fine in (
        ("store y[i*s1 + j]", "store y[i*s1]"),  # s1 may be 1
        ("store t2[at2] += e2", "store t2[0] += e2"),
        ("store z[8*r + u]", "store z[r + 4*u]"),
        ("for u < 8:", "for u < 0:"),
        ("load w[8*r + u]", "load w[(9*r + u)%32]"),
        ("load x[i*s1 + k]", "load x[(i*s1 + k)//2]"),
    ):
        assert good in GOOD
        verify_program(parsed(GOOD.replace(good, fine)), "lower")


def test_types_agree_for_every_type() -> None:
    sums = GOOD[GOOD.index("  nest zero_0") : GOOD.index("  nest table_0")]
    small = GOOD.replace(sums, "").replace("  out  t2: f32[s0] stride [1]\n", "")
    small = small.replace("return y, z, t2", "return y, z")
    for name in DTYPES:
        text = small.replace("f32", name)
        if name == "bool":
            text = text.replace("max over", "any over").replace("gt b m", "ne b m")
            text = text.replace("const 1.0", "const True")
        elif not DTYPES[name].is_float:
            text = text.replace("const 1.0", "const 1")
        verify_program(parsed(text), "lower")
