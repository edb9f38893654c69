"""What the ranges of names prove about an index expression, and the simplifications they allow.

In: an expression and the ranges of its names. Out: its bounds, or a smaller expression of the same
value everywhere in those ranges. The one idea: `low <= e` is shown by replacing each bounded atom by
the end of its range that makes `e` smallest, so a range may end at an expression (`i < s0`).

A range is (low, high), both ends included; None is "not known", `high` may be an expression over
other names. A name without a range is >= 0 if it is a size symbol (`s0`), and unbounded otherwise.
Nothing is divided away by a symbol unless the symbol is provably positive: sizes may be 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Protocol, TypeAlias

from compiler_core.ir.index_terms import (
    FloorDiv,
    Index,
    Max,
    Min,
    Mod,
    Polynomial,
    Sym,
    build,
    divide_terms,
    index,
    maximum,
    minimum,
    terms_of,
)

__all__ = ["Range", "Ranges", "axis_ranges", "bounds", "is_at_least", "is_size_symbol", "simplify"]

Range: TypeAlias = tuple[int | None, "int | Index | None"]
Ranges: TypeAlias = Mapping[str, Range]
_Interval: TypeAlias = tuple[float, float]  # integers, or an infinity

_ROUNDS = 8  # of rewriting; every round of the rules is sound, so stopping early is too


class _HasExtent(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def extent(self) -> Index: ...


def is_size_symbol(name: str) -> bool:
    return re.fullmatch(r"s\d+", name) is not None


def axis_ranges(axes: Iterable[_HasExtent]) -> dict[str, Range]:
    """The ranges inside a loop over these axes: 0 <= axis <= extent - 1, and sizes that follow.

    A body runs only if every extent is at least 1, so an axis `i < s0` also says s0 >= 1.
    """
    ranges: dict[str, Range] = {}
    for axis in axes:
        high = axis.extent - 1
        ranges[axis.name] = (0, high if high.constant is None else high.constant)
        for name in axis.extent.names:
            if is_size_symbol(name) and _is_zero_without(axis.extent, name):
                ranges[name] = (1, None)
    return ranges


def _is_zero_without(extent: Index, name: str) -> bool:
    """The extent is at most 0 where the symbol is 0 (and all other sizes are anything)."""
    try:
        high = bounds(extent.substitute({name: 0}), {})[1]
    except ZeroDivisionError:
        return True
    return high is not None and high <= 0


# ---------------------------------------------------------------------------------- bounds


def bounds(e: Index | int, ranges: Ranges) -> tuple[int | None, int | None]:
    """(low, high) with low <= e <= high for all names in their ranges; None where not known."""
    low, high = _interval(index(e), ranges)
    return (
        None if math.isinf(low) else int(low),
        None if math.isinf(high) else int(high),
    )


def _interval(e: Index, ranges: Ranges) -> _Interval:
    low: float = 0
    high: float = 0
    for atoms, number in terms_of(e).items():
        term: _Interval = (number, number)
        for atom in atoms:
            term = _times(term, _atom_interval(atom, ranges))
        if len(atoms) == 2 and atoms[0] is atoms[1] and number > 0:
            term = (max(term[0], 0), term[1])  # a square
        low, high = low + term[0], high + term[1]
    return low, high


def _atom_interval(atom: Index, ranges: Ranges) -> _Interval:
    match atom:
        case Sym(name):
            return _name_interval(name, ranges)
        case FloorDiv(a, b):
            return _quotient_interval(_interval(a, ranges), _interval(b, ranges))
        case Mod(a, b):
            return _remainder_interval(_interval(a, ranges), _interval(b, ranges))
        case Min(a, b) | Max(a, b):
            pick = min if isinstance(atom, Min) else max
            left, right = _interval(a, ranges), _interval(b, ranges)
            return pick(left[0], right[0]), pick(left[1], right[1])
    raise TypeError(f"not an atom: {atom!r}")


def _name_interval(name: str, ranges: Ranges) -> _Interval:
    low, high = ranges.get(name, (0 if is_size_symbol(name) else None, None))
    if isinstance(high, Index):
        end = _interval(high, {k: v for k, v in ranges.items() if k != name})[1]
    else:
        end = math.inf if high is None else high
    return -math.inf if low is None else low, end


def _times(a: _Interval, b: _Interval) -> _Interval:
    ends = [0 if x == 0 or y == 0 else x * y for x in a for y in b]
    return min(ends), max(ends)


def _quotient_interval(a: _Interval, b: _Interval) -> _Interval:
    if b[0] < 1:
        return -math.inf, math.inf
    return _floor(a[0], b[1] if a[0] >= 0 else b[0]), _floor(a[1], b[0] if a[1] >= 0 else b[1])


def _floor(a: float, b: float) -> float:
    """a // b for b >= 1 where either may be infinite."""
    if math.isinf(a):
        return a
    if math.isinf(b):
        return 0 if a >= 0 else -1
    return a // b


def _remainder_interval(a: _Interval, b: _Interval) -> _Interval:
    if b[0] < 1:
        return -math.inf, math.inf
    if a[0] >= 0 and a[1] < b[0]:
        return a
    return 0, min(b[1] - 1, a[1]) if a[0] >= 0 else b[1] - 1


# ---------------------------------------------------------------------------------- proofs


def is_at_least(e: Index | int, low: int | Index, ranges: Ranges) -> bool:
    """Whether e >= low is proven for all names in their ranges."""
    return _is_nonnegative(index(e) - low, ranges, frozenset())


def _is_nonnegative(e: Index, ranges: Ranges, done: frozenset[Index]) -> bool:
    if _interval(e, ranges)[0] >= 0:
        return True
    for atom in sorted({atom for atoms in terms_of(e) for atom in atoms} - done, key=str):
        low, high = _ends(atom, ranges)
        slope = _slope(e, atom)
        if slope is None or (high is None and low is None):
            continue
        rising = _interval(slope, ranges)
        end = low if rising[0] >= 0 else high if rising[1] <= 0 else None
        if end is None:
            continue
        if _is_nonnegative(e + slope * (end - atom), ranges, done | {atom}):
            return True
    return False


def _ends(atom: Index, ranges: Ranges) -> tuple[Index | None, Index | None]:
    """The range of an atom as expressions."""
    match atom:
        case Sym(name):
            low, high = ranges.get(name, (0 if is_size_symbol(name) else None, None))
            return (
                None if low is None else index(low),
                None if high is None else index(high),
            )
        case Mod(_, b) if _interval(b, ranges)[0] >= 1:
            return index(0), b - 1
        case FloorDiv(a, b) if _interval(b, ranges)[0] >= 1:
            return None, _quotient_end(a, b, ranges)
        case Min(a, b):
            return None, a
        case Max(a, b):
            return a, None
    return None, None


def _quotient_end(a: Index, b: Index, ranges: Ranges) -> Index | None:
    """An upper end of a // b where `a` ends at an expression: (s0*s1 - 1) // s1 is s0 - 1."""
    for name in sorted(a.names):
        high = ranges.get(name, (None, None))[1]
        split = a.split(name)
        if isinstance(high, Index) and split and _interval(split[0], ranges)[0] >= 0:
            a = split[0] * high + split[1]
    return _divide(a, b, ranges)


def _slope(e: Index, atom: Index) -> Index | None:
    """The factor of an atom in which `e` is linear."""
    slope: Polynomial = {}
    for atoms, number in terms_of(e).items():
        if atom not in atoms:
            continue
        left = list(atoms)
        left.remove(atom)
        if atom in left:
            return None
        slope[tuple(left)] = number
    return build(slope)


# ---------------------------------------------------------------------------------- rules


def simplify(e: Index | int, ranges: Ranges) -> Index:
    """An expression of the same value for all names in their ranges, with fewer // and %.

    >>> from compiler_core.ir.index import Sym
    >>> i, j, s0 = Sym("i"), Sym("j"), Sym("s0")
    >>> simplify((i * s0 + j) // s0, {"i": (0, 9), "j": (0, s0 - 1), "s0": (1, None)})
    i
    """
    e = index(e)
    for _ in range(_ROUNDS):
        smaller = _recombine(_rewrite(e, ranges))
        if smaller is e:
            break
        e = smaller
    return e


def _rewrite(e: Index, ranges: Ranges) -> Index:
    """One bottom-up round of the rules."""
    children = [_rewrite(child, ranges) for child in e.children]
    match e:
        case FloorDiv():
            return _divide(children[0], children[1], ranges)
        case Mod():
            return _remain(children[0], children[1], ranges)
        case Min() | Max():
            return _choose(e, children[0], children[1], ranges)
    return e.rebuild(children)


def _divide(a: Index, k: Index, ranges: Ranges) -> Index:
    if not is_at_least(k, 1, ranges):
        return a // k
    for factor, times, x, y in _splits(a, k):
        n = _known_quotient(y, factor, ranges) if is_at_least(factor, 1, ranges) else None
        if n is not None:  # (g*x + y) // (g*m) == (x + y//g) // m
            return _divide(x + n, times, ranges) if times != 1 else x + n
        if times == 1 and x != 0:  # (k*x + y) // k == x + y // k
            return x + _divide(y, k, ranges)
    match a:
        case FloorDiv(x, b) if is_at_least(b, 1, ranges):  # (x // b) // k == x // (b*k)
            return _divide(x, b * k, ranges)
        case Mod(x, b) if (c := _multiple(b, k)) and is_at_least(c, 1, ranges):
            return _remain(_divide(x, k, ranges), c, ranges)  # (x % (k*c)) // k == (x // k) % c
    return a // k


def _remain(a: Index, k: Index, ranges: Ranges) -> Index:
    if not is_at_least(k, 1, ranges):
        return a % k
    for factor, times, x, y in _splits(a, k):
        n = _known_quotient(y, factor, ranges) if is_at_least(factor, 1, ranges) else None
        if n is not None:  # (g*x + y) % (g*m) == g * ((x + y//g) % m) + y - g * (y//g)
            high = _remain(x + n, times, ranges) if times != 1 else index(0)
            return high * factor + y - factor * n
        if times == 1 and x != 0:  # (k*x + y) % k == y % k
            return _remain(y, k, ranges)
    match a:
        case Mod(x, b) if (c := _multiple(b, k)) and is_at_least(c, 1, ranges):
            return _remain(x, k, ranges)  # (x % (k*c)) % k == x % k
    return a % k


def _splits(a: Index, k: Index) -> list[tuple[Index, Index, Index, Index]]:
    """All (g, m, x, y) with k == g*m and a == g*x + y, the largest g first; k has one term."""
    if len(terms_of(k)) != 1:
        return [(k, index(1), index(0), a)]
    ((by, number),) = terms_of(k).items()
    factors = {k}
    for atoms, n in terms_of(a).items():
        shared = tuple(atom for atom in by if atom in atoms)
        factors.add(build({shared: math.gcd(n, number)}) if atoms else k)
    ordered = sorted(factors - {index(1)}, key=lambda g: (g is not k, -len(str(g)), str(g)))
    return [(g, divide_terms(k, g)[0], *divide_terms(a, g)) for g in ordered]


def _known_quotient(y: Index, k: Index, ranges: Ranges) -> int | None:
    """y // k where the ranges fix it."""
    low, high = _quotient_interval(_interval(y, ranges), _interval(k, ranges))
    if low == high and not math.isinf(low):
        return int(low)
    for n in (0, -1):
        if is_at_least(y, k * n, ranges) and is_at_least(k * (n + 1) - 1, y, ranges):
            return n
    return None


def _multiple(b: Index, k: Index) -> Index | None:
    """c with b == k * c, if there is one."""
    if len(terms_of(k)) != 1:
        return index(1) if b is k else None
    whole, rest = divide_terms(b, k)
    return whole if rest == 0 else None


def _choose(e: Index, a: Index, b: Index, ranges: Ranges) -> Index:
    """min and max of expressions whose order is known."""
    if is_at_least(b, a, ranges):
        return a if isinstance(e, Min) else b
    if is_at_least(a, b, ranges):
        return b if isinstance(e, Min) else a
    return minimum(a, b) if isinstance(e, Min) else maximum(a, b)


def _recombine(e: Index) -> Index:
    """k*c*(x // c) + k*(x % c) == k*x: an index taken apart and put together again."""
    if e.children:
        e = e.rebuild([_recombine(child) for child in e.children])
    polynomial = terms_of(e)
    for atoms, number in polynomial.items():
        for atom in atoms:
            if not isinstance(atom, Mod):
                continue
            others = list(atoms)
            others.remove(atom)
            scale = build({tuple(others): number})
            quotient = scale * atom.right * (atom.left // atom.right)
            part = terms_of(quotient)
            if part and all(polynomial.get(key) == n for key, n in part.items()):
                return _recombine(e - quotient - scale * atom + scale * atom.left)
    return e
