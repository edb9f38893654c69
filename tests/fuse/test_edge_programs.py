"""Programs, written in the IR's text, whose merge would be wrong if one rule were missing."""

from __future__ import annotations

from types import SimpleNamespace

import torch

HEAD = """
program p(a, d):
  in a: f64[8, 8] stride [8, 1]
  in d: i64[64] stride [1]
  temp b: f64[8, 8] stride [8, 1]
  temp e: i64[64] stride [1]
  temp r: f64[8] stride [1]
  out c: f64[8, 8] stride [8, 1]
"""
A = torch.randn(8, 8, dtype=torch.float64)
INDEX = torch.randint(0, 64, (64,), generator=torch.Generator().manual_seed(0))


def test_a_buffer_that_is_written_in_parts(fusing: SimpleNamespace) -> None:
    case = fusing.text(
        HEAD
        + """
  nest left for i < 8, j < 4:
    x: f64 = load a[8*i + j]
    store b[8*i + j] = x
  nest right for i2 < 8, j2 < 4:
    x2: f64 = load a[8*i2 + j2]
    y2: f64 = neg x2
    store b[8*i2 + j2 + 4] = y2
  nest all for k < 64:
    z: f64 = load b[k]
    w: f64 = exp z
    store c[k] = w
  return c"""
    )
    assert len(case.kernels) == 3
    assert "written in place" in case.categories()
    case.check(A, INDEX)


def test_a_nest_that_updates_its_input_comes_after_its_readers(fusing: SimpleNamespace) -> None:
    case = fusing.text(
        HEAD
        + """
  nest fill for k < 64:
    x: f64 = load a[k]
    store b[k] = x
  nest before for k1 < 64:
    x1: f64 = load b[k1]
    y1: f64 = exp x1
    store c[k1] = y1
  nest update for k2 < 64:
    x2: f64 = load b[k2]
    y2: f64 = neg x2
    store b[k2] = y2
  return c, b"""
    )
    case.check(A, INDEX)
    assert [item.name for item in case.fused.program.body][1].startswith("exp")


def test_a_gather_reads_through_its_producer(fusing: SimpleNamespace) -> None:
    """The position depends on data: the producer's position is found by division, or directly."""
    case = fusing.text(
        HEAD
        + """
  nest twice for i < 8, j < 8:
    x: f64 = load a[8*i + j]
    y: f64 = load a[8*j + i]
    z: f64 = add x y
    store b[8*i + j] = z
  nest gather for k < 64:
    p: i64 = load d[k]
    at: i64 = place p < 64 as row 0
    v: f64 = load b[at]
    store c[k] = v
  return c"""
    )
    assert case.kernels == ["pointwise"]
    case.check(A, INDEX)


def test_the_index_itself_comes_from_a_producer(fusing: SimpleNamespace) -> None:
    case = fusing.text(
        HEAD
        + """
  nest turn for k < 64:
    x: i64 = load d[k]
    m: i64 = const 63
    y: i64 = sub m x
    store e[k] = y
  nest twice for i < 64:
    v: f64 = load a[i]
    w: f64 = add v v
    store b[i] = w
  nest gather for q < 64:
    p: i64 = load e[q]
    at: i64 = place p < 64 as row 0
    z: f64 = load b[at]
    store c[q] = z
  return c"""
    )
    assert case.kernels == ["pointwise"]
    case.check(A, INDEX)


def test_no_integer_division_where_the_mask_does_not_hold(fusing: SimpleNamespace) -> None:
    """Elsewhere the inputs are not loaded; the divisor would be the load's constant, 0."""
    case = fusing.text(
        HEAD
        + """
  nest divide for k < 64:
    x: i64 = load d[k]
    y: i64 = floordiv x x
    store e[k] = y
  nest shifted for q < 64:
    at: i64 = index q - 1
    zero: i64 = const 0
    inside: bool = ge at zero
    v: i64 = load e[q - 1] if inside else 5
    w: f64 = cast v
    store c[q] = w
  return c"""
    )
    assert case.categories() == {"would compute where nothing is read"}
    case.check(A, INDEX + 1)


def test_masked_loads_keep_their_constant(fusing: SimpleNamespace) -> None:
    case = fusing.text(
        HEAD
        + """
  nest plus for k < 64:
    x: f64 = load a[k]
    y: f64 = exp x
    store b[k] = y
  nest shifted for q < 64:
    at: i64 = index q - 3
    zero: i64 = const 0
    inside: bool = ge at zero
    v: f64 = load b[q - 3] if inside else -7.5
    store c[q] = v
  return c"""
    )
    assert case.kernels == ["pointwise"]
    case.check(A, INDEX)


def test_a_reduction_is_not_read_at_another_row(fusing: SimpleNamespace) -> None:
    case = fusing.text(
        HEAD
        + """
  nest rows for i < 8:
    s: f64 = sum over j < 8:
      x: f64 = load a[8*i + j]
      yield x
    store r[i] = s
  nest turned for i1 < 8, j1 < 8:
    v: f64 = load r[7 - i1]
    store c[8*i1 + j1] = v
  return c"""
    )
    assert case.kernels == ["row", "pointwise"]
    assert case.categories() == {"reads another position of the producer"}
    case.check(A, INDEX)


def test_a_loop_of_a_kernel_is_read_by_the_next(fusing: SimpleNamespace) -> None:
    """The producer's value is made in a loop, after a reduction, and must be stored too."""
    case = fusing.text(
        HEAD
        + """
  nest softmaxish for i < 8:
    s: f64 = sum over j < 8:
      x: f64 = load a[8*i + j]
      yield x
    for q < 8:
      x2: f64 = load a[8*i + q]
      y2: f64 = div x2 s
      store b[8*i + q] = y2
  nest again for i1 < 8:
    m: f64 = max over j1 < 8:
      v: f64 = load b[8*i1 + j1]
      yield v
    for q1 < 8:
      v2: f64 = load b[8*i1 + q1]
      w2: f64 = sub v2 m
      store c[8*i1 + q1] = w2
  return c, b"""
    )
    assert case.kernels == ["row"]
    case.check(A, INDEX)


def test_an_argument_is_returned_and_updated(fusing: SimpleNamespace) -> None:
    case = fusing.text(
        HEAD
        + """
  nest new for k < 64:
    x: f64 = load a[k]
    y: f64 = exp x
    store b[k] = y
  nest use for k1 < 64:
    x1: f64 = load b[k1]
    y1: f64 = neg x1
    store c[k1] = y1
  update a = b
  return c"""
    )
    assert case.kernels == ["pointwise"]
    assert case.fused.program.mutated == (("a", "b"),)
    case.check(A, INDEX)


def test_what_nobody_reads_is_not_computed(fusing: SimpleNamespace) -> None:
    case = fusing.text(
        HEAD
        + """
  nest first for k < 64:
    x: f64 = load a[k]
    store b[k] = x
  nest second for k1 < 64:
    x1: f64 = load b[k1]
    y1: i64 = cast x1
    store e[k1] = y1
  nest third for k2 < 64:
    x2: f64 = load a[k2]
    y2: f64 = neg x2
    store c[k2] = y2
  return c"""
    )
    assert [kernel.members for kernel in case.fused.kernels.values()] == [("third",)]
    dropped = [d.about for d in case.decisions if d.kind == "drop"]
    assert dropped == [("lower:forward/second",), ("lower:forward/first",)]
    case.check(A, INDEX)


def test_a_space_without_positions_has_one_axis(fusing: SimpleNamespace) -> None:
    x = torch.randn(3, 0, 4)
    case = fusing.call(lambda x: x * 2, x)
    (nest,) = case.fused.program.body
    assert [axis.extent.constant for axis in nest.axes] == [0]
    case.check(x)
