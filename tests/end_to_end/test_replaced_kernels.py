"""An edited kernel gives the edited result; a wrong name or text says what is wrong."""

from __future__ import annotations

import pytest
import torch
from agreement import STRICT, compiling

import compiler_core as cc
from compiler_core.errors import InternalError, OptionError


def scaled(x):
    return x * 3 + 1


def kernel_of(fn, *args, part="forward"):
    with cc.record() as recorder:
        cc.compile(fn, options=STRICT)(*args)
    (compilation,) = recorder.compilations.values()
    (kernel,) = compilation.part(part).generated.kernels
    return kernel


def test_edited_kernel_gives_the_edited_result(tmp_path):
    x = torch.randn(4, 4)
    kernel = kernel_of(scaled, x)
    edited = tmp_path / "mine.cpp"
    edited.write_text(kernel.source.replace("3.0f", "5.0f"))
    option = {"replace": {f"kernels/{kernel.name}": str(edited)}}
    compiled = cc.compile(scaled, options={**STRICT, **option})
    plain = cc.compile(scaled, options=STRICT)
    with compiling(graphs=1):
        for k in range(3):
            torch.testing.assert_close(compiled(x + k), (x + k) * 5 + 1)
            torch.testing.assert_close(plain(x + k), scaled(x + k))


def test_edited_backward_kernel_gives_the_edited_gradient(tmp_path):
    x = torch.randn(4, requires_grad=True)
    kernel = kernel_of(scaled, x, part="backward")
    edited = tmp_path / "mine.cpp"
    edited.write_text(kernel.source.replace("3.0f", "7.0f"))
    option = {"replace": {f"kernels/backward/{kernel.name}": str(edited)}}
    compiled = cc.compile(scaled, options={**STRICT, **option})
    with compiling(graphs=1):
        for k in range(1, 4):
            x.grad = None
            compiled(x).backward(torch.full((4,), float(k)))
            assert torch.equal(x.grad, torch.full((4,), 7.0 * k))


@pytest.mark.parametrize("strict", [True, False])
def test_a_name_that_is_no_kernel_is_refused_with_the_names(strict, tmp_path):
    compiled = cc.compile(
        scaled, options={"strict": strict, "replace": {"kernels/mul": str(tmp_path / "none.cpp")}}
    )
    for _ in range(2):
        with pytest.raises(OptionError, match="did you mean 'kernels/mul_add_0'"):
            compiled(torch.randn(4))


def test_a_file_that_is_not_there_is_named(tmp_path):
    option = {"replace": {"kernels/mul_add_0": str(tmp_path / "none.cpp")}}
    with pytest.raises(OptionError, match="none.cpp.*No such file"):
        cc.compile(scaled, options={**STRICT, **option})(torch.randn(4))


def test_a_text_that_does_not_compile_shows_the_compilers_message(tmp_path):
    (tmp_path / "mine.cpp").write_text("void mul_add_0( {")
    option = {"replace": {"kernels/mul_add_0": str(tmp_path / "mine.cpp")}}
    for strict in (True, False):  # the user named the file: no fallback hides it
        with pytest.raises(InternalError, match="refused a kernel: mul_add_0"):
            cc.compile(scaled, options={"strict": strict, **option})(torch.randn(4))
