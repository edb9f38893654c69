"""`%load_ext explorer`: the cell magic `%%compile`.

In: a cell that defines functions, and an example call, on the magic's line or as the cell's last line.
Out: the cell is run, the call is compiled and run, its report is the cell's value. What goes wrong is
said with the cell's own line marked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compiler_core.errors import CutawayError
from explorer.cells import CellError
from explorer.magic_line import Request, completions, help_text, parse_line
from explorer.report import Report
from explorer.running import Call, Cell

__all__ = ["register"]


def register(shell: Any) -> None:
    """Add the magic and its completion to an IPython shell; a second time changes nothing."""

    def compile_(line: str, cell: str) -> Report | None:
        return _compile(shell, line, cell)

    compile_.__doc__ = help_text()
    shell.register_magic_function(compile_, "cell", "compile")
    completer = getattr(shell, "Completer", None)
    if completer is not None and not any(
        m.__name__ == "complete_compile" for m in completer.custom_matchers
    ):
        completer.custom_matchers.append(_matcher())


def _compile(shell: Any, line: str, text: str) -> Report | None:
    cell = Cell(shell, f"%%compile {line}".rstrip(), text)
    try:
        request = parse_line(line)
    except CellError as error:
        raise cell.error(error.message, 1) from None
    if not text.strip():
        raise cell.error("the cell is empty: define a function below %%compile, "
                         "and call it in the last line or on the line of %%compile", 1)  # fmt: skip
    call = cell.call_on(request.call, len("%%compile ") + request.column) if request.call else None
    cell.run(takes_last=call is None)
    call = call or cell.last_call()
    report = _explore(cell, call, request)
    if call.target:
        shell.user_ns[call.target] = report.result
    shell.user_ns["report"] = report
    return None if request.has("--quiet") else report


def _explore(cell: Cell, call: Call, request: Request) -> Report:
    from explorer.exploring import explore

    fn, args, kwargs = cell.values_of(call)
    try:
        report = explore(
            fn,
            *args,
            kwargs=kwargs,
            targets=request.many("--target"),
            backend=request.values.get("--backend", "cutaway"),
            fullgraph=request.has("--fullgraph"),
            grad=request.has("--grad"),
            show=request.many("--show"),
        )
    except CutawayError as error:
        raise cell.error(str(error), cell.line_of(error.where, call.line)) from None
    except Exception as error:
        raise cell.failure(error, call.line) from None
    if path := request.values.get("--save"):
        try:
            report.save(Path(path))
        except (CutawayError, OSError) as error:
            raise cell.error(f"--save: {error}", 1) from None
    return report


def _matcher() -> Any:
    from IPython.core.completer import SimpleCompletion, SimpleMatcherResult, context_matcher

    @context_matcher()  # type: ignore[untyped-decorator]
    def complete_compile(context: Any) -> Any:
        first = context.full_text.split("\n", 1)[0]
        if context.cursor_line or not first.startswith("%%compile "):
            return SimpleMatcherResult(completions=[])
        found = completions(first[len("%%compile ") : context.cursor_position])
        return SimpleMatcherResult(
            completions=[SimpleCompletion(text, type="param") for text in found],
            suppress=bool(found),
            matched_fragment=first[: context.cursor_position].rpartition(" ")[2],
        )

    return complete_compile
