"""Source text to HTML, line by line: escaped, coloured by CSS classes, safe to put into a page.

Python and Triton go through Pygments. Generated forms are long and regular: one regular expression each,
a row per kind of word, which is ten times as fast. Every line is closed in itself, so
that a view can show any part of a text.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from html import escape

from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name

__all__ = ["COLOURED", "highlight_lines"]

# The classes that the style sheet colours; other words stay plain, and pages small.
COLOURED = frozenset((
    "k", "kn", "kc", "kd", "kr", "ow", "kt", "nc", "vc", "nf", "nd", "fm", "nb", "s", "s1", "s2", "sd", "sa",
    "c", "c1", "ch", "cm", "cp", "cpf", "mi", "mf", "mh", "m", "nv",
))  # fmt: skip
_NUMBER = r"-?\b(?:0x[0-9a-fA-F]+|\d[\w.]*(?:e[-+]\d+)?)\b|\binf\b|\bnan\b"
_MLIR = (
    ("c", r"//.*|loc\([^\n]*\)|#loc\w*"),
    ("nv", r"%[\w.#-]+"),
    ("nf", r"\b[a-z_]+\.[\w.]+"),
    ("k", r"\b(?:tensor|module|attributes|dense|true|false)\b|!tt\.ptr"),
    ("kt", r"\b[if]\d+\b|\bbf16\b|\bindex\b"),
    ("s", r'"[^"\n]*"'),
    ("m", _NUMBER),
)
_WORDS: dict[str, tuple[tuple[str, str], ...]] = {
    "ir": (
        ("c", r"#.*"),
        ("k", r"\b(?:program|nest|call|for|store|load|over|yield|return|if|const|index|stride|in|out|temp)\b"),
        ("kt", r"\b(?:f64|f32|f16|bf16|f8e4m3|f8e5m2|i64|i32|i16|i8|u8|bool)\b"),
        ("nf", r"\baten\.[\w.]+"),
        ("m", _NUMBER),
    ),
    "graph": (
        ("k", r"^def\b|\breturn\b"),
        ("kt", r"\b(?:[fiu]\d+|bf16|bool|f8\w+)(?=\[)|(?<=: )int\b"),
        ("nf", r"\b(?:aten|torch|prims)\.[\w.]+"),
        ("s", r"'[^'\n]*'"),
        ("m", _NUMBER),
    ),
    "cpp": (
        ("c", r"//.*|/\*.*?\*/|^\s*#.*"),
        ("s", r'"[^"\n]*"'),
        ("k", r"\b(?:const|for|if|else|return|static|inline|restrict|extern|namespace|template|struct)\b"),
        ("kt", r"\b(?:void|float|double|int|bool|auto|char|long|\w+_t)\b"),
        ("nf", r"\b[A-Za-z_]\w*(?=\()"),
        ("m", _NUMBER),
    ),
    "ttir": _MLIR,
    "ttgir": _MLIR,
    "llir": (
        ("c", r";.*|![\w.]+"),
        ("s", r'c?"[^"\n]*"'),
        ("nv", r"[%@][\w.$-]+"),
        ("kt", r"\b(?:i\d+|float|double|half|bfloat|ptr|void|label)\b"),
        ("k", r"^\s*(?:define|declare|ret|br|call|tail call|store|attributes)\b|(?<== )[a-z]+(?: call)?\b"),
        ("m", r"(?<![\w%@.])" + _NUMBER),
    ),
    "ptx": (
        ("c", r"//.*|/\*.*?\*/"),
        ("s", r'"[^"\n]*"'),
        ("nv", r"%[\w$]+(?:\.[xyz])?"),
        ("kt", r"^\s*\.[\w.]+|\.(?:[bfus]\d+|pred|param|reg|global|visible|entry)\b"),
        ("nf", r"\b[a-z][a-z0-9]*(?:\.[\w:]+)+|\bret\b|\bbra\b"),
        ("m", r"(?<![\w%$])(?:0[xf][0-9A-Fa-f]+|-?\d+)\b"),
    ),
    "sass": (
        ("c", r"//.*|/\*.*?\*/"),
        ("k", r"@!?U?P[\dT]+"),
        ("nv", r"\bU?R[\dZ]+\b|\bU?P[\dT]+\b|\bSR_[\w.]+"),
        ("nf", r"\b[A-Z][A-Z0-9_]*(?:\.[A-Z0-9_.]+)*"),
        ("m", _NUMBER),
    ),
    "asm": (
        ("c", r"#.*"),
        ("nv", r"%\w+"),
        ("k", r"^\s*\.[\w.]+"),
        ("nf", r"^\s+[a-z]\w*"),
        ("m", r"\$?" + _NUMBER),
    ),
    "bytecode": (
        ("c", r"^\s*\S+:\S+"),
        ("k", r"\b[A-Z][A-Z_]+[A-Z]\b"),
        ("s", r"'[^'\n]*'"),
        ("m", _NUMBER),
    ),
}  # fmt: skip
_PYGMENTS = {"python": "python", "triton": "python"}


@lru_cache(maxsize=256)
def _cached(text: str, language: str) -> tuple[str, ...]:
    if language in _WORDS:
        return tuple(_by_words(line, language) for line in text.splitlines())
    if language in _PYGMENTS:
        return tuple(_by_lexer(text, _lexer(_PYGMENTS[language])))
    return tuple(escape(line) for line in text.splitlines())


def highlight_lines(text: str, language: str) -> list[str]:
    """One piece of HTML per line of `text`; an unknown language is escaped and left plain."""
    return list(_cached(text, language))


@cache
def _pattern(language: str) -> re.Pattern[str]:
    """All rows as one expression; group n + 1 is row n."""
    return re.compile("|".join(f"({pattern})" for _, pattern in _WORDS[language]))


def _by_words(line: str, language: str) -> str:
    rows, parts, end = _WORDS[language], [], 0
    for found in _pattern(language).finditer(line):
        if found.lastindex and found.end() > found.start():
            parts.append(escape(line[end : found.start()]))
            parts.append(_span(rows[found.lastindex - 1][0], found.group()))
            end = found.end()
    return "".join([*parts, escape(line[end:])])


@cache
def _lexer(name: str) -> Lexer:
    return get_lexer_by_name(name, stripnl=False, ensurenl=False)


_formatter = HtmlFormatter(nowrap=True)


def _by_lexer(text: str, lexer: Lexer) -> list[str]:
    lines: list[str] = []
    current: list[str] = []
    for kind, value in lexer.get_tokens(text):
        css = _formatter._get_css_class(kind)
        for number, piece in enumerate(value.split("\n")):
            if number:
                lines.append("".join(current))
                current = []
            current.append(_span(css, piece) if css in COLOURED and piece else escape(piece))
    return [*lines, "".join(current)][: len(text.splitlines())]


def _span(css: str, piece: str) -> str:
    return f'<span class="pg-{css}">{escape(piece)}</span>'
