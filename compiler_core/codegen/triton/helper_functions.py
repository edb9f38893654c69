"""Small `@triton.jit` functions that a kernel's source carries when it uses them.

One row per function; none calls another. They are combine functions of `tl.reduce`, and operations that
take more than one line of Triton.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HELPERS", "Helper", "in_order"]


@dataclass(frozen=True, slots=True)
class Helper:
    """A function's text, without the decorator, and whether it calls `libdevice`."""

    text: str
    libdevice: bool = False


HELPERS: dict[str, Helper] = {
    # combine functions: associative and commutative
    "multiply": Helper("def multiply(a, b):\n    return a * b"),
    "bit_or": Helper("def bit_or(a, b):\n    return a | b"),
    "bit_and": Helper("def bit_and(a, b):\n    return a & b"),
    "maximum": Helper(
        "def maximum(a, b):\n    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)"
    ),
    "minimum": Helper(
        "def minimum(a, b):\n    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)"
    ),
    # an addition and what it rounds away; once a sum is infinite or NaN, what was lost is NaN and does not count
    "add_exactly": Helper(
        """\
def add_exactly(total, lost, new):
    after = total + new
    added = after - total
    return after, lost + ((total - (after - added)) + (new - added))"""
    ),
    "with_lost": Helper(
        """\
def with_lost(total, lost):
    return tl.where(lost == lost, total.to(tl.float64) + lost.to(tl.float64), total.to(tl.float64))"""
    ),
    # NaN wins, the first of equals: in (a, i), (b, j) the second pair of each is the position
    "argmax": Helper(
        """\
def argmax(a, i, b, j):
    larger = (a > b) | ((a != a) & (b == b))
    equal = (a == b) | ((a != a) & (b != b))
    keep = larger | (equal & (i < j))
    return tl.where(keep, a, b), tl.where(keep, i, j)"""
    ),
    "argmin": Helper(
        """\
def argmin(a, i, b, j):
    smaller = (a < b) | ((a != a) & (b == b))
    equal = (a == b) | ((a != a) & (b != b))
    keep = smaller | (equal & (i < j))
    return tl.where(keep, a, b), tl.where(keep, i, j)"""
    ),
    # integer division as in Python; Triton's // and % are C's
    "floor_div": Helper(
        """\
def floor_div(a, b):
    quotient = a // b
    return tl.where((a % b != 0) & ((a < 0) != (b < 0)), quotient - 1, quotient)"""
    ),
    "floor_mod": Helper(
        """\
def floor_mod(a, b):
    rest = a % b
    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)"""
    ),
    # float division as in Python: the quotient that goes with fmod, corrected to the nearest integer
    "float_floor_div": Helper(
        """\
def float_floor_div(a, b, exact):
    rest = libdevice.fmod(a, b)
    quotient = libdevice.div_rn(a - rest, b)
    quotient = tl.where((rest != 0.0) & ((b < 0.0) != (rest < 0.0)), quotient - 1.0, quotient)
    down = tl.floor(quotient)
    down = tl.where(quotient - down > 0.5, down + 1.0, down)
    down = tl.where(quotient == 0.0, libdevice.copysign(0.0 * quotient, exact), down)
    return tl.where(b == 0.0, exact, down)""",
        libdevice=True,
    ),
    "float_floor_mod": Helper(
        """\
def float_floor_mod(a, b):
    rest = libdevice.fmod(a, b)
    return tl.where((rest != 0.0) & ((b < 0.0) != (rest < 0.0)), rest + b, rest)""",
        libdevice=True,
    ),
    # by squaring; a negative exponent gives 0 but for the bases 1 and -1
    "int_pow": Helper(
        """\
def int_pow(a, b):
    result = a * 0 + 1
    base = a
    rest = tl.where(b < 0, 0, b)
    for _ in range(64):
        result = tl.where(rest % 2 != 0, result * base, result)
        base = base * base
        rest = rest // 2
    odd = tl.where(a == -1, 1 - 2 * (b % 2) * (b % 2), 0)
    return tl.where(b < 0, tl.where(a == 1, 1, odd), result)"""
    ),
    "unsigned_pow": Helper(
        """\
def unsigned_pow(a, b):
    result = a * 0 + 1
    base = a
    rest = b
    for _ in range(8):
        result = tl.where(rest % 2 != 0, result * base, result)
        base = base * base
        rest = rest // 2
    return result"""
    ),
    # the hardware saturates where torch overflows to NaN or infinity
    "to_f8e4m3": Helper(
        """\
def to_f8e4m3(a):
    return tl.where(tl.abs(a) > 464.0, float("nan"), a).to(tl.float8e4nv)"""
    ),
    "to_f8e5m2": Helper(
        """\
def to_f8e5m2(a):
    bits = a.to(tl.float8e5).to(tl.uint8, bitcast=True)
    infinity = tl.where(a < 0.0, 0xFC, 0x7C).to(tl.uint8)
    return tl.where(tl.abs(a) >= 61440.0, infinity, bits).to(tl.float8e5, bitcast=True)"""
    ),
}


def in_order(used: set[str]) -> list[str]:
    """The helpers that a kernel calls, in the order of the table."""
    return [name for name in HELPERS if name in used]
