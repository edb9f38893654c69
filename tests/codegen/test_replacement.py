"""Edited kernels come back in: `options={"replace": {"kernels/<name>": path}}`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from cpp_programs import built, context_for, fused

from compiler_core.codegen import generate
from compiler_core.codegen.replacement import matched_origins
from compiler_core.errors import InternalError, OptionError

TEXT = """
program p(x):
  in  x: f32[8] stride [1]
  out y: f32[8] stride [1]
  nest add_0 for i < 8:
    a: f32 = load x[i]
    b: f32 = add a a
    store y[i] = b
  return y"""


def edited(path: Path, cache: Path, old: str, new: str) -> dict[str, str]:
    """The option that puts an edited kernel back."""
    source = generate(fused(TEXT), context_for(cache)).kernels[0].source
    assert old in source
    path.write_text(source.replace(old, new))
    return {"kernels/add_0": str(path)}


def test_an_edited_kernel_runs_and_keeps_its_lines(tmp_path: Path) -> None:
    option = edited(tmp_path / "k.c", tmp_path, "a + a", "a * 10.0f")
    program = built(TEXT, tmp_path, replace=option)
    x = torch.randn(8)
    assert torch.equal(program.run(x)[0], x * 10) and torch.equal(
        program.run(x + 1)[0], (x + 1) * 10
    )
    plain = built(TEXT, tmp_path)
    assert torch.equal(plain.run(x)[0], x + x)
    (new,), (old,) = program.generated.kernels, plain.generated.kernels
    assert new.line_origins == old.line_origins and new.source != old.source
    assert len(new.line_origins) == len(new.source.splitlines())


def test_a_replacement_is_a_decision(tmp_path: Path) -> None:
    option = edited(tmp_path / "k.c", tmp_path, "a + a", "a - a")
    context = context_for(tmp_path, replace=option)
    generate(fused(TEXT), context)
    (decision,) = [d for d in context.recorder.here.decisions if d.kind == "replace"]
    assert decision.about == ("fuse:forward/add_0",) and decision.outcome == "replaced"


def test_lines_that_are_put_in_serve_what_stood_there() -> None:
    a, b, c = (frozenset({f"fuse:forward/k.{x}"}) for x in "abc")
    assert matched_origins("1\n2\n3\n", (a, b, c), "1\nx\ny\n3\n") == (a, b, b, c)
    assert matched_origins("1\n2\n3\n", (a, b, c), "1\n2\nnew\n3\n") == (a, b, b | c, c)
    assert matched_origins("1\n2\n3\n", (a, b, c), "1\n3\n") == (a, c)


@pytest.mark.parametrize("key", ["kernels/ad_0", "kernels/Add_0"])
def test_an_unknown_kernel_is_refused_with_the_names_there_are(key: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"kernels/add_0") as caught:
        built(TEXT, tmp_path, replace={key: str(tmp_path)})
    assert key in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"gives '.*gone\.c' for 'kernels/add_0': .*No such file"):
        built(TEXT, tmp_path, replace={"kernels/add_0": str(tmp_path / "gone.c")})


def test_a_kernel_that_does_not_compile_is_refused_with_its_first_errors(tmp_path: Path) -> None:
    option = edited(tmp_path / "k.c", tmp_path, "a + a", "a + nothing")
    for _ in range(2):
        with pytest.raises(
            InternalError, match=r"\[CC601\].*add_0: add_0\.c:\d+:\d+: error: .*nothing"
        ):
            built(TEXT, tmp_path, replace=option)


def test_keys_of_the_other_graph_are_left_to_it(tmp_path: Path) -> None:
    option = edited(tmp_path / "k.c", tmp_path, "a + a", "a - a")
    backward = {"kernels/backward/add_0": option["kernels/add_0"]}
    plain = generate(fused(TEXT), context_for(tmp_path, replace=backward))
    assert "a + a" in plain.kernels[0].source
    changed = generate(fused(TEXT, part="backward"), context_for(tmp_path, replace=backward))
    assert "a - a" in changed.kernels[0].source
