"""The expressions behind `ir/index.py`: interned nodes, kept in one polynomial form.

In: integers, names and operators. Out: the one node that stands for the result. The one idea: an
expression is a polynomial over *atoms* (names, and quotients, remainders, minima and maxima of other
expressions), so `+`, `-` and `*` are dictionary arithmetic and equal polynomials are one object.
What needs no ranges is simplified here; `ir/index_rules.py` does what does.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

__all__ = [
    "Const", "FloorDiv", "Index", "Max", "Min", "Mod", "Monomial", "Polynomial", "Product", "Sum", "Sym",
    "build", "divide_terms", "index", "maximum", "minimum", "multiply", "terms_of",
]  # fmt: skip

_nodes: weakref.WeakValueDictionary[Any, Index] = weakref.WeakValueDictionary()
_lock = Lock()


class Interned(type):
    """Constructing a node that exists returns that node."""

    def __call__(cls, *fields: Any) -> Any:
        key = (cls, fields)
        found = _nodes.get(key)
        if found is not None:
            return found
        node = super().__call__(*fields)  # outside the lock: it may construct others
        with _lock:
            return _nodes.setdefault(key, node)


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Index(metaclass=Interned):
    """An integer expression. Operators take `int` or `Index` and return the simplified result.

    `children` are the parts, `names` all names in it, `text` its Python text. Equal means identical;
    a constant also equals its integer.
    """

    children: tuple[Index, ...] = field(init=False)
    names: frozenset[str] = field(init=False)
    text: str = field(init=False)

    def __post_init__(self) -> None:
        children = self._children()
        names = {self.name} if isinstance(self, Sym) else ()
        object.__setattr__(self, "children", children)
        object.__setattr__(self, "names", frozenset(names).union(*(c.names for c in children)))
        object.__setattr__(self, "text", self._text())

    def _children(self) -> tuple[Index, ...]:
        fields: tuple[str, ...] = type(self).__match_args__
        parts = [getattr(self, name) for name in fields]
        flat = parts[0] if isinstance(parts[0], tuple) else parts
        return tuple(part for part in flat if isinstance(part, Index))

    def _text(self) -> str:
        raise NotImplementedError

    @property
    def constant(self) -> int | None:
        """The value, where it depends on no name."""
        return None

    def substitute(self, values: Mapping[str, Index | int]) -> Index:
        """The expression with names replaced; names that are not in `values` stay."""
        if self.names.isdisjoint(values):
            return self
        return self.rebuild([child.substitute(values) for child in self.children])

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The integer at these values. Raises KeyError for a missing name, ZeroDivisionError."""
        value: int = self._value([child.evaluate(values) for child in self.children])
        return value

    def rebuild(self, children: list[Index]) -> Index:
        """The same kind of expression over other parts, simplified."""
        return index(self._value(children))

    def _value(self, parts: list[Any]) -> Any:
        """The meaning, for integers and for expressions alike."""
        raise NotImplementedError

    def split(self, name: str) -> tuple[Index, Index] | None:
        """(c, r) with self == c * name + r and `name` in neither: the stride and the rest.

        None where the expression is not linear in `name`.
        """
        slope, rest = {}, {}
        for factors, number in terms_of(self).items():
            others = tuple(f for f in factors if f is not Sym(name))
            if any(name in f.names for f in others) or len(factors) - len(others) > 1:
                return None
            if len(others) < len(factors):
                slope[others] = number
            else:
                rest[factors] = number
        return build(slope), build(rest)

    def __add__(self, other: Index | int) -> Index:
        total = dict(terms_of(self))
        for factors, number in terms_of(index(other)).items():
            total[factors] = total.get(factors, 0) + number
        return build(total)

    def __mul__(self, other: Index | int) -> Index:
        return build(multiply(terms_of(self), terms_of(index(other))))

    def __floordiv__(self, other: Index | int) -> Index:
        divisor = index(other)
        return FloorDiv(self, divisor) if divisor.constant is None else _quotient(self, divisor)

    def __mod__(self, other: Index | int) -> Index:
        divisor = index(other)
        return Mod(self, divisor) if divisor.constant is None else _remainder(self, divisor)

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: Index | int) -> Index:
        return self + index(other) * -1

    def __radd__(self, other: int) -> Index:
        return self + other

    def __rsub__(self, other: int) -> Index:
        return index(other) - self

    def __rmul__(self, other: int) -> Index:
        return self * other

    def __rfloordiv__(self, other: int) -> Index:
        return index(other) // self

    def __rmod__(self, other: int) -> Index:
        return index(other) % self

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, int) and self.constant == other)

    def __hash__(self) -> int:
        return id(self) if self.constant is None else hash(self.constant)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def __reduce__(self) -> Any:
        fields: tuple[str, ...] = type(self).__match_args__
        return type(self), tuple(getattr(self, name) for name in fields)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Const(Index):
    value: int

    @property
    def constant(self) -> int | None:
        return self.value

    def _text(self) -> str:
        return str(self.value)

    def _value(self, parts: list[Any]) -> Any:
        return self.value


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sym(Index):
    """A loop axis, a size symbol or an integer value of a statement."""

    name: str

    def _text(self) -> str:
        return self.name

    def substitute(self, values: Mapping[str, Index | int]) -> Index:
        return index(values.get(self.name, self))

    def evaluate(self, values: Mapping[str, int]) -> int:
        return values[self.name]

    def rebuild(self, children: list[Index]) -> Index:
        return self


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sum(Index):
    """Two terms or more: products and atoms, then a constant if it is not 0."""

    terms: tuple[Index, ...]

    def _text(self) -> str:
        return " + ".join(term.text for term in self.terms).replace("+ -", "- ")

    def _value(self, parts: list[Any]) -> Any:
        return sum(parts)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Product(Index):
    """A constant that is not 0 or 1 (if any), then atoms in the order of their texts."""

    factors: tuple[Index, ...]

    def _text(self) -> str:
        number = self.factors[0].constant
        atoms = self.factors if number is None else self.factors[1:]
        head = "" if number is None else "-" if number == -1 else f"{number}*"
        return head + "*".join(_operand(atom) for atom in atoms)

    def _value(self, parts: list[Any]) -> Any:
        return math.prod(parts)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FloorDiv(Index):
    """left // right, rounded down. A constant divisor is positive."""

    left: Index
    right: Index

    def _text(self) -> str:
        return f"{_operand(self.left)}//{_operand(self.right)}"

    def _value(self, parts: list[Any]) -> Any:
        return parts[0] // parts[1]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Mod(Index):
    """left % right, with the sign of `right`. A constant divisor is positive."""

    left: Index
    right: Index

    def _text(self) -> str:
        return f"{_operand(self.left)}%{_operand(self.right)}"

    def _value(self, parts: list[Any]) -> Any:
        return parts[0] % parts[1]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Min(Index):
    left: Index
    right: Index

    def _text(self) -> str:
        return f"min({self.left}, {self.right})"

    def _value(self, parts: list[Any]) -> Any:
        return minimum(*parts) if isinstance(parts[0], Index) else min(parts)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Max(Index):
    left: Index
    right: Index

    def _text(self) -> str:
        return f"max({self.left}, {self.right})"

    def _value(self, parts: list[Any]) -> Any:
        return maximum(*parts) if isinstance(parts[0], Index) else max(parts)


def index(value: int | Index) -> Index:
    """An integer or an expression as an expression. Raises TypeError for anything else."""
    if isinstance(value, Index):
        return value
    if isinstance(value, int):
        return Const(int(value))
    raise TypeError(f"an index is an int or an Index, not {type(value).__name__}: {value!r}")


def minimum(a: int | Index, b: int | Index) -> Index:
    """The smaller of two expressions; decided now where their difference is a constant."""
    left, right = sorted((index(a), index(b)), key=str)
    difference = (left - right).constant
    if difference is None:
        return Min(left, right)
    return left if difference <= 0 else right


def maximum(a: int | Index, b: int | Index) -> Index:
    """The larger of two expressions; decided now where their difference is a constant."""
    left, right = sorted((index(a), index(b)), key=str)
    difference = (left - right).constant
    if difference is None:
        return Max(left, right)
    return left if difference >= 0 else right


# ---------------------------------------------------------------------------------- polynomials

Monomial = tuple[Index, ...]  # atoms in the order of their texts; () is the constant term
Polynomial = dict[Monomial, int]


def terms_of(e: Index) -> Polynomial:
    """The expression as {atoms: coefficient}."""
    match e:
        case Const(value):
            return {(): value} if value else {}
        case Sum(terms):
            return {atoms: n for term in terms for atoms, n in terms_of(term).items()}
        case Product((Const(value), *atoms)):
            return {tuple(atoms): value}
        case Product(atoms):
            return {atoms: 1}
    return {(e,): 1}


def build(polynomial: Mapping[Monomial, int]) -> Index:
    """The node of a polynomial: the inverse of `terms_of`."""
    live = [(atoms, number) for atoms, number in polynomial.items() if number]
    live.sort(key=lambda term: (-len(term[0]), term[1] < 0, [atom.text for atom in term[0]]))
    terms = [_term(atoms, number) for atoms, number in live]
    if not terms:
        return Const(0)
    return terms[0] if len(terms) == 1 else Sum(tuple(terms))


def multiply(a: Polynomial, b: Polynomial) -> Polynomial:
    """The product of two polynomials."""
    total: Polynomial = {}
    for left, m in a.items():
        for right, n in b.items():
            atoms = tuple(sorted(left + right, key=str))
            total[atoms] = total.get(atoms, 0) + m * n
    return total


def divide_terms(e: Index, divisor: Index) -> tuple[Index, Index]:
    """(q, r) with e == q * divisor + r, where q takes the terms that `divisor` divides exactly.

    `divisor` has one term. A constant in `e` is divided with a remainder, 0 <= remainder < divisor.
    """
    ((by, number),) = terms_of(divisor).items()
    whole: Polynomial = {}
    rest: Polynomial = {}
    for atoms, n in terms_of(e).items():
        left = _without(atoms, by)
        if left is None or (n % number and atoms):
            rest[atoms] = n
            continue
        whole[left] = n // number
        if n % number:
            rest[()] = n % number
    return build(whole), build(rest)


def _without(atoms: Monomial, removed: Iterable[Index]) -> Monomial | None:
    left = list(atoms)
    for atom in removed:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _term(atoms: Monomial, number: int) -> Index:
    if not atoms:
        return Const(number)
    factors = atoms if number == 1 else (Const(number), *atoms)
    return factors[0] if len(factors) == 1 else Product(factors)


def _operand(e: Index) -> str:
    """The text of an operand of `*`, `//` and `%`."""
    plain = isinstance(e, Sym | Min | Max) or (e.constant is not None and e.constant >= 0)
    return e.text if plain else f"({e.text})"


# ---------------------------------------------------------------------------------- constant divisors


def _quotient(a: Index, divisor: Index) -> Index:
    """a // constant. Each rule holds for all integers, floor semantics."""
    k = divisor.constant or 0
    if k == 0:
        raise ZeroDivisionError(f"({a}) // 0")
    if k < 0:
        return _quotient(-a, Const(-k))
    whole, rest = divide_terms(a, divisor)  # (k*q + r) // k == q + r // k
    if rest.constant is not None:
        return whole + rest.constant // k
    common = _common_factor(rest, k)
    if common > 1:  # (g*x + c) // (g*m) == (x + c // g) // m
        return whole + divide_terms(rest, Const(common))[0] // (k // common)
    match rest:
        case FloorDiv(x, Const(b)):  # (x // b) // k == x // (b*k)
            return whole + x // (b * k)
        case Mod(x, Const(b)) if b % k == 0:  # (x % (k*c)) // k == (x // k) % c
            return whole + (x // k) % (b // k)
    return whole + FloorDiv(rest, divisor)


def _remainder(a: Index, divisor: Index) -> Index:
    """a % constant. Each rule holds for all integers, the sign of the divisor."""
    k = divisor.constant or 0
    if k == 0:
        raise ZeroDivisionError(f"({a}) % 0")
    if k < 0:
        return -_remainder(-a, Const(-k))
    rest = divide_terms(a, divisor)[1]  # (k*q + r) % k == r % k
    if rest.constant is not None:
        return index(rest.constant % k)
    common = _common_factor(rest, k)
    if common > 1:  # (g*x + c) % (g*m) == g * (x % m) + c, 0 <= c < g
        x, c = divide_terms(rest, Const(common))
        return (x % (k // common)) * common + c
    match rest:
        case Mod(x, Const(b)) if b % k == 0:  # (x % (k*c)) % k == x % k
            return x % k
    return Mod(rest, divisor)


def _common_factor(e: Index, k: int) -> int:
    """The greatest g that divides k and every coefficient but the constant."""
    return math.gcd(k, *(n for atoms, n in terms_of(e).items() if atoms))
