"""Options and the public interface's bad input: what is wrong, the valid names, nothing compiled."""

from __future__ import annotations

import pytest
import torch

import compiler_core as cc
from compiler_core.errors import BackendNotFound, CutawayError, NotSupportedYet, OptionError
from compiler_core.options import Options, Target


def f(x):
    return x + 1


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"mode": "fast"}, OptionError, "unknown mode 'fast'"),
        ({"mode": "max-autotune"}, NotSupportedYet, "use mode=None"),
        ({"mode": "reduce-overhead"}, NotSupportedYet, "not supported yet"),
        ({"backend": "inductr"}, BackendNotFound, "Valid: cutaway, eager"),
        ({"backend": 3}, OptionError, "takes a name or a callable, not int"),
        ({"options": {"stritc": True}}, OptionError, "did you mean 'strict'"),
        ({"options": {"strict": "yes"}}, OptionError, "takes bool, not str"),
        ({"options": {"recompile_limit": True}}, OptionError, "takes int, not bool"),
        ({"options": ["strict"]}, OptionError, "takes a mapping, not list"),
        ({"fullgraph": "yes"}, OptionError, "takes True or False"),
        ({"dynamic": "yes"}, OptionError, "takes None, True or False"),
        ({"options": {"threads": -1}}, OptionError, "from 0 on"),
        ({"options": {"replace": {"add_0": "k.cpp"}}}, OptionError, "kernels/<name>"),
        ({"dynamic": True}, NotSupportedYet, "mark_dynamic"),
    ],
)
def test_bad_arguments_are_refused_before_anything_runs(arguments, error, message) -> None:
    before = cc.stats()
    with pytest.raises(error, match=message) as caught:
        cc.compile(f, **arguments)
    assert isinstance(caught.value, CutawayError) and "  do   " in str(caught.value)
    assert cc.stats() == before


@pytest.mark.parametrize("model", [3, "f", [f]])
def test_what_is_no_function_is_refused(model) -> None:
    with pytest.raises(OptionError, match="takes a function or nn.Module, not"):
        cc.compile(model)


def test_compile_module_takes_modules_only() -> None:
    with pytest.raises(OptionError, match="takes an nn.Module, not function"):
        cc.compile_module(f)


def test_unknown_log_channel_names_the_valid_ones() -> None:
    with pytest.raises(OptionError, match="did you mean 'guards'.*output_code"):
        cc.set_logs(guard=True)


def test_mark_dynamic_checks_the_dimension() -> None:
    with pytest.raises(OptionError, match="dimension 2 of a tensor with 1 dimensions"):
        cc.mark_dynamic(torch.ones(3), 2)


def test_environment_is_below_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTAWAY_STRICT", "1")
    assert Options.of().strict
    assert not Options.of({"strict": False}).strict
    monkeypatch.setenv("CUTAWAY_STRICT", "0")
    assert not Options.of().strict
    monkeypatch.setenv("CUTAWAY_CACHE_DIR", "/somewhere")
    assert str(Options.of().cache_path()) == "/somewhere"


def test_options_describe_themselves() -> None:
    text = Options.describe()
    assert "CUTAWAY_STRICT" in text and "recompile_limit" in text


@pytest.mark.parametrize("text", ["tpu", "cuda", "cuda:", "cpu:1", "cuda:12"])
def test_targets_are_checked(text: str) -> None:
    with pytest.raises(OptionError, match="Valid: cpu, cuda:75, cuda:80"):
        Target.parse(text)


def test_disable_gives_the_function_back() -> None:
    assert cc.compile(f, disable=True) is f
