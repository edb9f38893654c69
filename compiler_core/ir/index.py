"""Index expressions: sizes, strides, loop positions and offsets, interned.

Grammar (the text that `str` prints and `ir/parse.py` reads):

    index  := sum
    sum    := term (("+" | "-") term)*
    term   := factor ("*" factor)*
    factor := integer | name | "(" index ")" | factor "//" factor | factor "%" factor
            | "min(" index "," index ")" | "max(" index "," index ")"

A static size is a `Const`. Building through the operators (`a + b`, `a * 3`, `a // 4`, `a % 4`)
simplifies: sums and products are kept in one canonical form (sorted, like terms collected), so two
expressions that are equal as polynomials are the same object. `//` and `%` are Python's (floor).
Names are loop axes, size symbols (`s0`) and integer values of statements (indirect indexing).
"""

from __future__ import annotations
