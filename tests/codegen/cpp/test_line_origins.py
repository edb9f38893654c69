"""Every line of a kernel names the statements that it serves, no more and no less."""

from __future__ import annotations

from pathlib import Path

import pytest
from cpp_programs import fused, generated
from test_layouts import BINARY, UNARY
from test_reductions import COLUMNS, ROWS, program

from compiler_core.codegen.statement_handles import StatementHandles, statements_of
from compiler_core.ir.loop import Nest

TALL = program("sum", "f32", "column").replace("size s0 = x.size(0)", "").replace("s0", "70000")
TALL = TALL.replace("size s1 = x.size(1)", "").replace("s1", "12")
PROGRAMS = {
    "pointwise": BINARY,
    "transpose": UNARY.format(
        shape="10, 6", stride="6, 1", at="i + 6*j", out="10, 1", to="10*i + j"
    ),
    "row": ROWS.format(n=64),
    "column": COLUMNS.format(n=64),
    "full": program("sum", "f32", "full"),
    "argmax": program("argmax", "f32", "full"),
    "tall": TALL,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_lines_and_statements_cover_each_other(name: str, tmp_path: Path) -> None:
    text = PROGRAMS[name]
    (kernel,) = generated(text, tmp_path, threads=2).kernels
    lines = kernel.source.splitlines()
    assert len(lines) == len(kernel.line_origins)
    (nest,) = [item for item in fused(text).program.body if isinstance(item, Nest)]
    handles = StatementHandles(nest, "forward")
    everything = {handles[s] for s in statements_of(nest.body)}
    assert frozenset().union(*kernel.line_origins) == everything | {handles.nest}
    for line, origins in zip(lines, kernel.line_origins):
        assert origins or not line, line
    for line, origins in zip(lines, kernel.line_origins):
        if line.startswith(("void", "}", "#include")):
            assert origins == everything | {handles.nest}


def origins_of(name: str, cache: Path, start: str) -> set[str]:
    """Short names of the statements behind the only line that starts so."""
    (kernel,) = generated(PROGRAMS[name], cache).kernels
    found = [
        o
        for line, o in zip(kernel.source.splitlines(), kernel.line_origins)
        if line.strip().startswith(start)
    ]
    assert len(found) == 1, (start, kernel.source)
    return {handle.rpartition("/")[2] for handle in found[0]}


def test_a_statement_line_names_its_statement(tmp_path: Path) -> None:
    assert origins_of("pointwise", tmp_path, "const float c = a * b") == {"k.c"}
    assert origins_of("pointwise", tmp_path, "y[") == {"k.store_y"}
    assert origins_of("pointwise", tmp_path, "for (int64_t j") == {"k.a", "k.b", "k.c", "k.store_y"}
    form = {f"softmax_0.{name}" for name in ("a", "a1", "a2", "store_y")}  # they decide: rows
    assert origins_of("row", tmp_path, "double z_wide") == {"softmax_0.z"} | form
    inside = {f"softmax_0.{name}" for name in ("a1", "b1", "c1", "z")}
    assert origins_of("row", tmp_path, "#pragma omp simd reduction(+") == inside | form


def test_a_value_that_is_kept_serves_both_passes(tmp_path: Path) -> None:
    assert origins_of("row", tmp_path, "const float c1 = v_exp") == {"softmax_0.c1"}
    assert origins_of("row", tmp_path, "const float c2 = c1_row[k]") == {
        f"softmax_0.{x}2" for x in "abc"
    }


def test_generating_twice_gives_the_same_text(tmp_path: Path) -> None:
    for text in PROGRAMS.values():
        assert generated(text, tmp_path) == generated(text, tmp_path)
