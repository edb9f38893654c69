"""Axes are joined, ordered and dropped without a change of what is computed."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from compiler_core.fuse.coalesce import coalesce
from compiler_core.ir.loop import Nest, Program
from compiler_core.ir.parse import parse_program
from compiler_core.ir.text import print_block


def nest_of(axes: str, body: str) -> tuple[Program, Nest]:
    program = parse_program(
        f"""
program p(a):
  size s0 = a.size(0)
  in a: f32[s0] stride [1]
  out b: f32[s0] stride [1]
  nest n for {axes}:
{body}
  return b"""
    )
    (nest,) = program.body
    assert isinstance(nest, Nest)
    return program, nest


def text(nest: Nest) -> str:
    axes = ", ".join(f"{axis.name} < {axis.extent}" for axis in nest.axes)
    return f"{axes}: " + "; ".join(print_block(nest.body).splitlines())


def test_contiguous_axes_join() -> None:
    _, nest = nest_of("i < 3, j < 4", "    x: f32 = load a[4*i + j]\n    store b[4*i + j] = x")
    assert text(coalesce(nest)) == "i < 12: x: f32 = load a[i]; store b[i] = x"


def test_broadcast_keeps_axes_apart() -> None:
    _, nest = nest_of("i < 3, j < 4", "    x: f32 = load a[j]\n    store b[4*i + j] = x")
    assert text(coalesce(nest)).startswith("i < 3, j < 4:")


def test_symbolic_extents_join() -> None:
    _, nest = nest_of("i < 3, j < s0", "    x: f32 = load a[i*s0 + j]\n    store b[i*s0 + j] = x")
    assert text(coalesce(nest)) == "i < 3*s0: x: f32 = load a[i]; store b[i] = x"


def test_axes_follow_memory() -> None:
    """Both accesses run along i: it becomes the innermost, and then the two are one."""
    _, nest = nest_of("i < 3, j < 4", "    x: f32 = load a[i + 3*j]\n    store b[i + 3*j] = x")
    assert text(coalesce(nest)) == "j < 12: x: f32 = load a[j]; store b[j] = x"


def test_an_axis_of_one_step_goes() -> None:
    _, nest = nest_of("i < 1, j < 4", "    x: f32 = load a[4*i + j]\n    store b[4*i + j] = x")
    assert text(coalesce(nest)) == "j < 4: x: f32 = load a[j]; store b[j] = x"


def test_a_quotient_of_the_joined_axis_stays_readable() -> None:
    body = "    x: f32 = load a[(4*i + j)//2]\n    store b[4*i + j] = x"
    _, nest = nest_of("i < 3, j < 4", body)
    assert "a[i//2]" in text(coalesce(nest)) or "i < 3" in text(coalesce(nest))


def test_reductions_join_and_keep_their_order() -> None:
    body = """\
    m: i64 = argmax over r < 3, q < 4:
      x: f32 = load a[r + 3*q]
      yield x
    y: f32 = cast m
    store b[i] = y"""
    _, nest = nest_of("i < 2", body)
    assert "argmax over r < 3, q < 4" in text(coalesce(nest))


def test_positions_of_argmax_survive_joining(fusing: SimpleNamespace) -> None:
    x = torch.randn(3, 4, 5, dtype=torch.float64)
    case = fusing.call(lambda x: (x * 2).reshape(-1).argmax() + (x * 2).argmax(1).sum(), x)
    case.check(x)
    case.check(-x)
