"""A cell under `%%compile`: registered as source, run, and searched for what to call.

In: an IPython shell, the magic's line and the cell. Out: functions whose source and line numbers are the
cell's (the magic's line is line 1), and errors that mark one of its lines.
"""

from __future__ import annotations

import ast
import inspect
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from explorer.cells import CellError

__all__ = ["Call", "Cell"]

_EXAMPLE = (
    "put the call behind %%compile, as in `%%compile {name}(x)`, or into the cell's last line"
)
_GENERATED = re.compile(r"^__(resume|native|step)_at_\d+_")  # before the names of compiled parts


def _itself(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Call:
    """An example call: its expression, its line in the cell, the name that its result is assigned to.

    column: where the text begins that the expression's own columns count from.
    """

    node: ast.Call
    line: int
    target: str = ""
    column: int = 0


class Cell:
    """One cell, while it is run."""

    def __init__(self, shell: Any, line: str, text: str):
        self.shell = shell
        self.shown = f"{line}\n{text}"
        body = f"\n{text}"  # an empty first line for the magic's: numbers stay the cell's
        self.number = _number(shell)
        self.file = shell.compile.cache(body, self.number, raw_code=self.shown)
        self.body = body
        self._last: Call | None = None
        self._defined: list[str] = []

    @property
    def names(self) -> dict[str, Any]:
        names: dict[str, Any] = self.shell.user_ns
        return names

    # ------------------------------------------------------------------ errors

    def error(self, message: str, line: int, column: int | None = None) -> CellError:
        name = f"Cell In[{self.number}]"
        return CellError(message.replace(self.file, name), self.shown, line, column, name)

    def failure(self, error: BaseException, otherwise: int) -> CellError:
        """An exception of the cell's code, with the innermost line of the cell that it passed through."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [f.lineno for f in frames if f.filename == self.file and f.lineno]
        message = f"{type(error).__name__}: {error}"
        if own and (last := frames[-1]).filename != self.file and not _is_library(last.filename):
            message += f"\nraised in {last.filename}:{last.lineno}, {_GENERATED.sub('', last.name)}"
        return self.error(message, own[-1] if own else otherwise)

    def line_of(self, where: str | None, otherwise: int) -> int:
        """The line of a `file:line`, if it is of this cell."""
        file, _, line = (where or "").rpartition(":")
        return int(line) if file == self.file and line.isdigit() else otherwise

    # ------------------------------------------------------------------ the cell's code

    def run(self, takes_last: bool) -> None:
        """Run the cell; with `takes_last`, its last line is kept as the example if it is a call of its own."""
        tree = self._parsed()
        self._defined = [
            n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))
        ]
        if takes_last and tree.body and (call := _call_in(tree.body[-1])):
            self._last = call
            tree.body.pop()
        try:
            exec(compile(tree, self.file, "exec"), self.names)
        except Exception as error:
            raise self.failure(error, 1) from None

    def _parsed(self) -> ast.Module:
        try:
            return ast.parse(self.body, self.file)
        except SyntaxError as error:
            raise self.error(
                f"{type(error).__name__}: {error.msg}", error.lineno or 1, (error.offset or 1) - 1
            ) from None

    # ------------------------------------------------------------------ what to call

    def call_on(self, text: str, column: int) -> Call | None:
        """The call on the magic's line; None for a bare name, which `last_call` then looks for."""
        try:
            node = ast.parse(text, mode="eval").body
        except SyntaxError as error:
            raise self.error(
                f"this is no call: {error.msg}", 1, column + (error.offset or 1) - 1
            ) from None
        if isinstance(node, ast.Call):
            return Call(node, 1, column=column)
        raise self.error(
            f"this is no call: {_EXAMPLE.format(name=text.split('(')[0] or 'f')}", 1, column
        )

    def last_call(self) -> Call:
        """The example in the cell's last line, or a call of its one function that needs no arguments."""
        if self._last is not None:
            return self._last
        if not self._defined:
            raise self.error(
                "the cell defines no function and calls none: there is nothing to compile", 1
            )
        if len(self._defined) > 1:
            names = ", ".join(self._defined)
            raise self.error(
                f"the cell defines several functions ({names}): {_EXAMPLE.format(name=self._defined[-1])}",
                1,
            )
        (name,) = self._defined
        if _needs_arguments(self.names[name]):
            raise self.error(f"{name} takes arguments: {_EXAMPLE.format(name=name)}", 1)
        node = ast.parse(f"{name}()", mode="eval").body
        assert isinstance(node, ast.Call)
        return Call(node, 1)

    def values_of(self, call: Call) -> tuple[Any, list[Any], dict[str, Any]]:
        """The function and its arguments, evaluated."""
        fn = self._value(call.node.func, call)
        if not callable(fn):
            raise self.error(
                f"{ast.unparse(call.node.func)} is a {type(fn).__name__}, not a function", call.line
            )
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for node in call.node.args:
            if isinstance(node, ast.Starred):
                args += self._value(node.value, call, tuple)
            else:
                args.append(self._value(node, call))
        for keyword in call.node.keywords:
            if keyword.arg:
                kwargs[keyword.arg] = self._value(keyword.value, call)
            else:
                kwargs.update(self._value(keyword.value, call, dict))
        return fn, args, kwargs

    def _value(self, node: ast.expr, call: Call, made: Callable[[Any], Any] = _itself) -> Any:
        """An expression of the example; `made` of it, for one behind a star."""
        line, column = call.line, call.column + node.col_offset
        tree = ast.fix_missing_locations(ast.Expression(node))
        try:
            return made(eval(compile(tree, self.file, "eval"), self.names))
        except Exception as error:
            what = f"the example {ast.unparse(node)!r} fails: {type(error).__name__}: {error}"
            raise self.error(what, line, column) from None


def _call_in(statement: ast.stmt) -> Call | None:
    """`f(x)` or `y = f(x)`."""
    if isinstance(statement, (ast.Expr, ast.Assign)) and isinstance(statement.value, ast.Call):
        if isinstance(statement, ast.Expr):
            return Call(statement.value, statement.lineno)
        if len(statement.targets) == 1 and isinstance(target := statement.targets[0], ast.Name):
            return Call(statement.value, statement.lineno, target.id)
    return None


def _needs_arguments(fn: Any) -> bool:
    required = (inspect.Parameter.empty,)
    parameters = inspect.signature(fn).parameters.values()
    return any(
        p.default in required and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        for p in parameters
    )


def _is_library(file: str) -> bool:
    return "site-packages" in file or "compiler_core" in file or file.startswith("<")


def _number(shell: Any) -> int:
    """The number of the running cell: IPython's counter is one ahead inside of it."""
    known = getattr(shell.compile, "_filename_map", None) or {}
    return int(next(reversed(known.values()), shell.execution_count))
