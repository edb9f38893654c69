"""Source text to HTML, line by line: escaped, coloured by CSS classes, safe to put into a page.

Pygments knows Python, C++, LLVM and PTX; the loop IR, Triton's MLIR dialects and SASS have lexers
here. Every line is closed in itself, so that a view can show any part of a text.
"""

from __future__ import annotations

from functools import cache
from html import escape
from typing import ClassVar

from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer, RegexLexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Text, Whitespace

__all__ = ["highlight_lines"]


class LoopLexer(RegexLexer):
    """The loop IR."""

    name = "loop IR"
    tokens: ClassVar = {
        "root": [
            (r"#.*$", Comment),
            (
                r"\b(program|nest|call|for|store|load|over|yield|return|if|const|index|stride|in|out|temp)\b",
                Keyword,
            ),
            (r"\b(f64|f32|f16|bf16|f8e4m3|f8e5m2|i64|i32|i16|i8|u8|bool)\b", Keyword.Type),
            (r"\baten\.[\w.]+", Name.Function),
            (r"-?\b\d+(\.\d+)?(e[-+]?\d+)?\b|\binf\b|\bnan\b", Number),
            (r"[A-Za-z_]\w*", Name),
            (r"[-+*/%<=:,()\[\].]+", Operator),
            (r"\s+", Whitespace),
            (r".", Text),
        ]
    }


class MlirLexer(RegexLexer):
    """TTIR and TTGIR."""

    name = "MLIR"
    tokens: ClassVar = {
        "root": [
            (r"//.*$", Comment),
            (r"loc\([^\n]*\)|#loc\w*", Comment),
            (r"%[\w.#-]+", Name.Variable),
            (r"\b[a-z_]+\.[\w.]+", Name.Function),
            (r"\b(tensor|module|attributes|dense|true|false)\b|!tt\.ptr", Keyword),
            (r"\b[if]\d+\b|\bbf16\b|\bindex\b", Keyword.Type),
            (r'"[^"\n]*"', String),
            (r"-?\b\d[\w.+-]*", Number),
            (r"\w+", Name),
            (r"\s+", Whitespace),
            (r".", Text),
        ]
    }


class SassLexer(RegexLexer):
    """NVIDIA machine code as nvdisasm prints it."""

    name = "SASS"
    tokens: ClassVar = {
        "root": [
            (r"//.*$|/\*.*?\*/", Comment),
            (r"@!?U?P[\dT]+", Keyword),
            (r"\bU?R[\dZ]+\b|\bU?P[\dT]+\b|\bSR_[\w.]+", Name.Variable),
            (r"\b[A-Z][A-Z0-9_]*(\.[A-Z0-9_.]+)*", Name.Function),
            (r"\b0x[0-9a-f]+|-?\b\d[\w.+-]*", Number),
            (r"\w+", Name),
            (r"\s+", Whitespace),
            (r".", Text),
        ]
    }


_OWN = {"ir": LoopLexer, "ttir": MlirLexer, "ttgir": MlirLexer, "sass": SassLexer}
_PYGMENTS = {
    "python": "python",
    "triton": "python",
    "cpp": "cpp",
    "llir": "llvm",
    "ptx": "ptx",
    "asm": "gas",
}


@cache
def _lexer(language: str) -> Lexer | None:
    options = {"stripnl": False, "ensurenl": False}
    if language in _OWN:
        return _OWN[language](**options)
    name = _PYGMENTS.get(language)
    return get_lexer_by_name(name, **options) if name else None


_formatter = HtmlFormatter(nowrap=True, classprefix="pg-")


def highlight_lines(text: str, language: str) -> list[str]:
    """One piece of HTML per line of `text`; an unknown language is escaped and left plain."""
    lexer = _lexer(language)
    if lexer is None:
        return [escape(line) for line in text.splitlines()]
    lines: list[str] = []
    current: list[str] = []
    for kind, value in lexer.get_tokens(text):
        for number, piece in enumerate(value.split("\n")):
            if number:
                lines.append("".join(current))
                current = []
            if piece:
                current.append(_span(kind, piece))
    return [*lines, "".join(current)][: len(text.splitlines())]


def _span(kind: object, piece: str) -> str:
    css = _formatter._get_css_class(kind)
    return f'<span class="{css}">{escape(piece)}</span>' if css != "pg-" else escape(piece)
