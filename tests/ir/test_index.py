"""Index expressions: one object per polynomial, values kept by every simplification."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass

import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._sympy import functions as torch_functions

from compiler_core.errors import NotSupportedYet
from compiler_core.ir.index import (
    Const,
    FloorDiv,
    Index,
    Sym,
    axis_ranges,
    bounds,
    from_sympy,
    index,
    is_at_least,
    maximum,
    minimum,
    simplify,
)
from compiler_core.ir.parse_expressions import TextLine, parse_index

I, J, K, X, S0, S1 = (  # noqa: E741
    Sym(name) for name in ("i", "j", "k", "x", "s0", "s1")
)


@dataclass(frozen=True)
class Loop:
    name: str
    extent: Index


def loops(**extents: int | Index) -> list[Loop]:
    return [Loop(name, index(extent)) for name, extent in extents.items()]


# ---------------------------------------------------------------------------------- properties

numbers = st.integers(-12, 12)
symbols = st.sampled_from([I, J, K, S0, S1])
positive = st.integers(1, 12).map(index) | st.sampled_from([S0, S1, S0 * S1, S1 * 3])


def _combined(inner: st.SearchStrategy[Index]) -> st.SearchStrategy[Index]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        pairs.map(lambda p: p[0] + p[1]),
        pairs.map(lambda p: p[0] - p[1]),
        pairs.map(lambda p: p[0] * p[1]),
        pairs.map(lambda p: minimum(*p)),
        pairs.map(lambda p: maximum(*p)),
        st.tuples(inner, positive).map(lambda p: p[0] // p[1]),
        st.tuples(inner, positive).map(lambda p: p[0] % p[1]),
    )


expressions = st.recursive(symbols | numbers.map(index), _combined, max_leaves=8)

# i < s0, j < s1, k < 6: the space that the expressions are read in
AXES = loops(i=S0, j=S1, k=6)


@st.composite
def environments(draw: st.DrawFn) -> dict[str, int]:
    s0, s1 = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    positions = {
        "i": draw(st.integers(0, s0 - 1)),
        "j": draw(st.integers(0, s1 - 1)),
        "k": draw(st.integers(0, 5)),
    }
    return {"s0": s0, "s1": s1, **positions}


@settings(max_examples=250, deadline=None)
@given(expressions, st.lists(environments(), min_size=3, max_size=3))
def test_simplify_keeps_the_value(e: Index, places: list[dict[str, int]]) -> None:
    simple = simplify(e, axis_ranges(AXES))
    for values in places:
        assert simple.evaluate(values) == e.evaluate(values), (str(e), str(simple))


@settings(max_examples=150, deadline=None)
@given(expressions, environments())
def test_bounds_hold(e: Index, values: dict[str, int]) -> None:
    ranges = axis_ranges(AXES)
    low, high = bounds(e, ranges)
    value = e.evaluate(values)
    assert low is None or low <= value
    assert high is None or value <= high
    for limit in (-1, 0, 3):
        assert not is_at_least(e, limit, ranges) or value >= limit


@settings(max_examples=150, deadline=None)
@given(expressions, environments())
def test_text_is_python_and_parses_back(e: Index, values: dict[str, int]) -> None:
    assert parse_index(TextLine(1, 0, str(e)), str(e)) is e
    assert eval(str(e), {"min": min, "max": max}, dict(values)) == e.evaluate(values)


@settings(max_examples=150, deadline=None)
@given(expressions, expressions, expressions)
def test_equal_polynomials_are_one_object(a: Index, b: Index, c: Index) -> None:
    assert (a + b) * c is c * b + c * a
    assert a - b is -(b - a)
    assert (a + b) + c is a + (b + c)
    assert a - a == 0
    assert pickle.loads(pickle.dumps(a)) is a
    assert copy.deepcopy(a) is a


@settings(max_examples=100, deadline=None)
@given(expressions, expressions, environments())
def test_substitution_is_evaluation_in_steps(
    e: Index, inner: Index, values: dict[str, int]
) -> None:
    replaced = e.substitute({"i": inner})
    assert replaced.evaluate(values) == e.evaluate({**values, "i": inner.evaluate(values)})
    assert e.substitute(values).constant == e.evaluate(values)


@settings(max_examples=100, deadline=None)
@given(expressions, environments())
def test_split_gives_stride_and_rest(e: Index, values: dict[str, int]) -> None:
    split = e.split("i")
    if split is None:
        return
    slope, rest = split
    assert slope * I + rest is e
    assert "i" not in slope.names | rest.names


@settings(max_examples=100, deadline=None)
@given(st.integers(-40, 40), st.integers(-40, 40), st.integers(1, 9) | st.integers(-9, -1))
def test_constant_divisors_are_those_of_python(a: int, x: int, k: int) -> None:
    e = I * 6 + a
    assert (e // k).evaluate({"i": x}) == (x * 6 + a) // k
    assert (e % k).evaluate({"i": x}) == (x * 6 + a) % k


# ---------------------------------------------------------------------------------- single rules

RULES = [
    # (expression, axes, result)
    ((I * 4 + J) // 4, loops(i=9, j=4), "i"),
    ((I * 4 + J) % 4, loops(i=9, j=4), "j"),
    ((I * 4 + J) % 4, loops(i=9, j=5), "j%4"),
    (I // 8, loops(i=8), "0"),
    (I % 8, loops(i=8), "i"),
    (I // 8, loops(i=9), "i//8"),
    ((I - 8) // 8, loops(i=8), "-1"),
    ((I - 8) % 8, loops(i=8), "i"),
    (I // S0, loops(i=S0), "0"),
    (I % S0, loops(i=S0), "i"),
    (I // S0, loops(i=9), "i//s0"),
    ((I * S0) // S0, loops(i=9), "(i*s0)//s0"),  # s0 may be 0
    ((I * S0) // S0, loops(i=9, j=S0), "i"),
    ((I * S1 + J) // S1, loops(i=S0, j=S1), "i"),
    ((I * S1 + J) % S1, loops(i=S0, j=S1), "j"),
    ((I * S1 + J) // (S0 * S1), loops(i=S0, j=S1), "0"),
    (I // S1 * S1 + I % S1, loops(i=S0 * S1), "i"),
    (I // S1 // S0, loops(i=S0 * S1), "0"),
    (I // S1 % S0, loops(i=S0 * S1), "i//s1"),
    (I // 3 // 4, loops(i=100), "i//12"),
    (I % 12 % 4, loops(i=100), "i%4"),
    (I % 12 // 4, loops(i=100), "(i//4)%3"),
    ((I * 8 + J) // 16, loops(i=9, j=8), "i//2"),
    ((I * 8 + J) % 16, loops(i=9, j=8), "8*(i%2) + j"),
    (I // 12 * 12 + I // 4 % 3 * 4 + I % 4, loops(i=100), "i"),
    (minimum(I, 7), loops(i=8), "i"),
    (maximum(I, S0 - 1), loops(i=S0), "s0 - 1"),
]


@pytest.mark.parametrize(
    ("e", "axes", "text"), RULES, ids=[f"{e} where {len(axes)}: {text}" for e, axes, text in RULES]
)
def test_rule(e: Index, axes: list[Loop], text: str) -> None:
    assert str(simplify(e, axis_ranges(axes))) == text


def test_unknown_names_have_no_sign() -> None:
    assert bounds(X, {}) == (None, None)
    assert bounds(S0, {}) == (0, None)
    assert bounds(S0 * -2 + 3, {}) == (None, 3)
    assert bounds(X % 5, {}) == (0, 4)
    assert bounds(I * 3 - J, axis_ranges(loops(i=4, j=2))) == (-1, 9)
    assert str(simplify(X // 4, {})) == "x//4"


def test_an_extent_makes_its_sizes_positive_only_where_it_must() -> None:
    assert axis_ranges(loops(i=S0 * S1)) == {
        "i": (0, S0 * S1 - 1),
        "s0": (1, None),
        "s1": (1, None),
    }
    assert axis_ranges(loops(i=S0 + S1)) == {"i": (0, S0 + S1 - 1)}
    assert axis_ranges(loops(i=S0 + 1)) == {"i": (0, S0)}
    assert axis_ranges(loops(i=S0 // 2))["s0"] == (1, None)


def test_operators_with_integers() -> None:
    assert str(3 + I) == "i + 3"
    assert str(3 - I) == "-i + 3"
    assert str(S0 - I - 1) == "s0 - i - 1"
    assert str(2 * I * J + 1) == "2*i*j + 1"
    assert str(-(I // 4)) == "-(i//4)"
    assert 7 // index(2) == 3
    assert -7 // index(2) == -4
    assert -7 % index(2) == 1
    assert index(4) == 4 and index(4) is Const(4)
    assert I != J and I * 0 == 0
    assert index(True) is Const(1)
    assert isinstance(I // S0, FloorDiv)
    with pytest.raises(ZeroDivisionError):
        I // 0
    with pytest.raises(TypeError, match="int or an Index"):
        index(1.5)  # type: ignore[arg-type]


def test_nodes_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        (I + 1).terms = ()  # type: ignore[attr-defined]


def test_sympy_expressions_of_a_shape_environment() -> None:
    s0, s1 = sympy.Symbol("s0", integer=True), sympy.Symbol("s1", integer=True)
    f = torch_functions
    assert from_sympy(sympy.Integer(7)) == 7
    assert from_sympy(s0 * s1 * 2 - s0 + 3) is S0 * S1 * 2 - S0 + 3
    assert from_sympy(s0**3) is S0 * S0 * S0
    assert from_sympy(f.FloorDiv(s0 + 1, 2)) is (S0 + 1) // 2
    assert from_sympy(f.PythonMod(s0, s1)) is S0 % S1
    assert from_sympy(f.Mod(s0, 4)) is S0 % 4
    assert from_sympy(f.ModularIndexing(s0, 2, 4)) is S0 // 2 % 4
    assert from_sympy(f.Max(s0, 1)) is maximum(S0, 1)
    assert from_sympy(f.Min(s0, s1, 4)).evaluate({"s0": 9, "s1": 5}) == 4
    assert from_sympy(f.CeilToInt(f.IntTrueDiv(s0, s1))).evaluate({"s0": 7, "s1": 2}) == 4
    with pytest.raises(NotSupportedYet, match="CC390.*ToFloat"):
        from_sympy(f.ToFloat(s0))


def test_sizes_of_real_symbolic_shapes() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    mode = FakeTensorMode(shape_env=ShapeEnv())
    fake = mode.from_tensor(torch.empty(6, 10), static_shapes=False)
    rows, columns = (from_sympy(size.node.expr) for size in fake.shape)
    assert len(rows.names) == len(columns.names) == 1
    flat = fake.reshape(-1)
    assert from_sympy(flat.shape[0].node.expr) is rows * columns
    joined = torch.cat([fake, fake[1:]])
    assert from_sympy(joined.shape[0].node.expr) is rows * 2 - 1
