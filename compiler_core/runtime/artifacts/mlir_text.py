"""Lines of TTIR and TTGIR text → lines of the kernel.

In: the text, whose operations end in `loc(…)`, and the file name of the kernel. Out: an `ArtifactLine` for
each line. A location is a file position, a name around one, a call (`callsite(callee at caller)`), several
fused, or an alias `#loc7`; of a call the *caller* counts, so what a library function or a helper computes
belongs to the line of the kernel that called it.
"""

from __future__ import annotations

import re

from compiler_core.stages import ArtifactLine

__all__ = ["kernel_lines_of_mlir"]

_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)\s*$", re.MULTILINE)
_OPERATION = re.compile(r'^\s*(?:%[\w#:., %-]+ = )?"?([a-z]\w*\.[\w.]+)"?')
_TOKEN = re.compile(r'\s*(?:(#loc\d*)|"((?:[^"\\]|\\.)*)"|(\d+)|([A-Za-z_]+)|([()\[\]<>,:]))')

Lines = frozenset[int]
_NONE: Lines = frozenset()


def kernel_lines_of_mlir(text: str, kernel_path: str) -> tuple[ArtifactLine, ...]:
    """One entry for each line. An operation with regions carries the location after its closing brace."""
    locations = _Locations(dict(_ALIAS.findall(text)), kernel_path)
    found: list[Lines] = []
    is_operation: list[bool] = []
    open_operations: list[int] = []
    for number, line in enumerate(text.splitlines()):
        location = _trailing_location(line)
        lines = locations.resolve(location) if location else _NONE
        operation = None if line.startswith("#") else _OPERATION.match(line)
        if operation is not None and (line.rstrip().endswith("{") or location is None):
            open_operations.append(number)
        elif line.strip().startswith("}") and location and open_operations:
            found[open_operations.pop()] = lines
        found.append(lines if not line.startswith("#") else _NONE)
        is_operation.append(operation is not None and operation.group(1) != "tt.func")
    return tuple(
        ArtifactLine(number, tuple(sorted(lines)), is_op)
        for number, (lines, is_op) in enumerate(zip(found, is_operation), 1)
    )


class _Locations:
    """Aliases, resolved once each to lines of the kernel."""

    def __init__(self, aliases: dict[str, str], kernel_path: str):
        self._aliases, self._path = aliases, kernel_path
        self._known: dict[str, Lines] = {}

    def resolve(self, text: str) -> Lines:
        tokens = [match for match in _matches(text)]
        return self._location(tokens, 0)[0]

    def _alias(self, name: str) -> Lines:
        if name not in self._known:
            self._known[name] = _NONE  # an alias within itself ends here
            self._known[name] = self.resolve(self._aliases.get(name, "unknown"))
        return self._known[name]

    def _location(self, tokens: list[re.Match[str]], i: int) -> tuple[Lines, int]:
        """The lines of the location that starts at token i, and the token after it."""
        if i >= len(tokens):
            return _NONE, i
        alias, string, _, word, _ = tokens[i].groups()
        if alias:
            return self._alias(alias), i + 1
        if string is not None:
            return self._named_or_file(tokens, i, string)
        if word == "callsite":
            callee, i = self._location(tokens, i + 2)
            caller, i = self._location(tokens, i + 1)
            return caller or callee, i + 1
        if word == "fused":
            return self._fused(tokens, i + 1)
        return _NONE, i + 1

    def _named_or_file(self, tokens: list[re.Match[str]], i: int, string: str) -> tuple[Lines, int]:
        following = tokens[i + 1].group(5) if i + 1 < len(tokens) else None
        if following == "(":
            lines, i = self._location(tokens, i + 2)
            return lines, i + 1
        if following != ":":
            return _NONE, i + 1
        line = int(tokens[i + 2].group(3))
        i += 3
        while i < len(tokens) and (
            tokens[i].group(5) == ":" or tokens[i].group(3) or tokens[i].group(4) == "to"
        ):
            i += 1
        return (frozenset({line}) if string == self._path else _NONE), i

    def _fused(self, tokens: list[re.Match[str]], i: int) -> tuple[Lines, int]:
        while tokens[i].group(5) != "[":
            i += 1
        lines = _NONE
        while tokens[i].group(5) != "]":
            part, i = self._location(tokens, i + 1)
            lines |= part
        return lines, i + 1


def _matches(text: str) -> list[re.Match[str]]:
    tokens, place = [], 0
    while (match := _TOKEN.match(text, place)) is not None:
        tokens.append(match)
        place = match.end()
    return tokens


def _trailing_location(line: str) -> str | None:
    """What stands in the `loc(…)` that ends a line, before a `{` perhaps."""
    start = line.rfind(" loc(")
    while start >= 0:
        depth = 0
        for place in range(start + 4, len(line)):
            depth += (line[place] == "(") - (line[place] == ")")
            if depth == 0:
                break
        if line[place + 1 :].strip() in ("", "{"):
            return line[start + 5 : place]
        start = line.rfind(" loc(", 0, start)
    return None
