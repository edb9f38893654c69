"""The cleaning steps, each on a nest of a few lines."""

from __future__ import annotations

from compiler_core.fuse.cse import share_equal_statements
from compiler_core.fuse.dead import remove_dead_statements, remove_stores
from compiler_core.fuse.hoist import hoist_invariants
from compiler_core.fuse.loops import merge_loops, unwrap_only_loop
from compiler_core.ir.loop import Nest
from compiler_core.ir.parse import parse_program
from compiler_core.ir.text import print_block


def nest_of(body: str) -> Nest:
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    program = parse_program(
        f"""
program p(a, d):
  in a: f32[64] stride [1]
  in d: i64[64] stride [1]
  temp b: f32[64] stride [1]
  out c: f32[64] stride [1]
  nest n for i < 8:
{lines}
  return c"""
    )
    (nest,) = program.body
    assert isinstance(nest, Nest)
    return nest


def same(nest: Nest, body: str) -> None:
    want = [" ".join(line.split()) for line in print_block(nest_of(body).body).splitlines()]
    assert [" ".join(line.split()) for line in print_block(nest.body).splitlines()] == want


def test_dead_statements() -> None:
    nest = nest_of("x: f32 = load a[i]\ny: f32 = exp x\nz: f32 = neg x\nstore c[i] = z")
    same(remove_dead_statements(nest), "x: f32 = load a[i]\nz: f32 = neg x\nstore c[i] = z")


def test_a_dead_store_takes_its_loop_along() -> None:
    nest = nest_of(
        """
for r < 8:
  x: f32 = load a[i*8 + r]
  store b[i*8 + r] = x
y: f32 = load a[i]
store c[i] = y"""
    )
    nest = remove_dead_statements(remove_stores(nest, lambda buffer: buffer != "b"))
    same(nest, "y: f32 = load a[i]\nstore c[i] = y")


def test_nothing_to_do_gives_the_same_object() -> None:
    nest = nest_of("x: f32 = load a[i]\nstore c[i] = x")
    for step in (remove_dead_statements, hoist_invariants, share_equal_statements, merge_loops):
        assert step(nest) is nest
    assert unwrap_only_loop(nest) is nest


def test_invariants_leave_the_loop() -> None:
    nest = nest_of(
        """
for r < 8:
  m: f32 = load a[i]
  e: f32 = exp m
  x: f32 = load a[i*8 + r]
  y: f32 = mul x e
  store c[i*8 + r] = y"""
    )
    same(
        hoist_invariants(nest),
        """
m: f32 = load a[i]
e: f32 = exp m
for r < 8:
  x: f32 = load a[i*8 + r]
  y: f32 = mul x e
  store c[i*8 + r] = y""",
    )


def test_an_integer_division_stays_in_the_loop() -> None:
    """The loop may run zero times; the divisor may be zero then."""
    body = """
x: i64 = load d[i]
s: i64 = sum over r < 8:
  q: i64 = floordiv x x
  yield q
y: f32 = cast s
store c[i] = y"""
    same(hoist_invariants(nest_of(body)), body)


def test_equal_statements_are_shared_inwards_only() -> None:
    nest = nest_of(
        """
x: f32 = load a[i]
s: f32 = sum over r < 8:
  x2: f32 = load a[i]
  y: f32 = load a[i*8 + r]
  z: f32 = mul x2 y
  yield z
t: f32 = sum over q < 8:
  y2: f32 = load a[i*8 + q]
  z2: f32 = mul x y2
  yield z2
u: f32 = add s t
store c[i] = u"""
    )
    same(
        share_equal_statements(nest),
        """
x: f32 = load a[i]
s: f32 = sum over r < 8:
  y: f32 = load a[i*8 + r]
  z: f32 = mul x y
  yield z
u: f32 = add s s
store c[i] = u""",
    )


def test_zero_and_minus_zero_are_not_equal() -> None:
    body = "x: f32 = const 0.0\ny: f32 = const -0.0\nz: f32 = div x y\nstore c[i] = z"
    same(share_equal_statements(nest_of(body)), body)


def test_loops_over_the_same_extents_become_one() -> None:
    nest = nest_of(
        """
for r < 8:
  x: f32 = load a[i*8 + r]
  store b[i*8 + r] = x
s: f32 = sum over k < 8:
  y: f32 = load a[i*8 + k]
  yield y
for q < 8:
  z: f32 = load a[i*8 + q]
  w: f32 = mul z s
  store c[i*8 + q] = w"""
    )
    same(
        share_equal_statements(merge_loops(nest)),
        """
s: f32 = sum over k < 8:
  y: f32 = load a[i*8 + k]
  yield y
for q < 8:
  x: f32 = load a[i*8 + q]
  store b[i*8 + q] = x
  w: f32 = mul x s
  store c[i*8 + q] = w""",
    )


def test_a_nest_that_is_only_a_loop_is_pointwise() -> None:
    nest = unwrap_only_loop(
        nest_of("for r < 8:\n  x: f32 = load a[i*8 + r]\n  store c[i*8 + r] = x")
    )
    assert [axis.name for axis in nest.axes] == ["i", "r"]
    assert len(nest.body) == 2
