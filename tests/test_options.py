"""Options and the public interface's bad input: what is wrong, the valid names, nothing compiled."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch

import compiler_core as cc
import explorer
from compiler_core import environment, logs
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
        ({"disable": "no"}, OptionError, "disable takes True or False, not 'no'"),
        ({"disable": 0}, OptionError, "disable takes True or False, not 0"),
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


@pytest.mark.parametrize("model", [torch.nn.Linear, dict])
@pytest.mark.parametrize("take", [cc.compile, cc.explain, explorer.explore])
def test_a_class_is_refused_with_the_way_to_an_object(take, model) -> None:
    with pytest.raises(OptionError, match=r"CC009.*the class (Linear|dict)") as caught:
        take(model)
    assert "compile(Model(...))" in str(caught.value)


@pytest.mark.parametrize("take", [cc.disable, cc.explain, explorer.explore])
def test_what_cannot_be_called_is_refused_by_name(take) -> None:
    with pytest.raises(OptionError, match=r"takes a function or .*not int \(3\)"):
        take(3)


@pytest.mark.parametrize("take, value", [(cc.explain, f), (cc.compile_module, torch.nn.ReLU())])
def test_an_unknown_argument_is_refused_in_public_words(take, value) -> None:
    with pytest.raises(OptionError, match="CC008.*'fullgrap'; did you mean 'fullgraph'.*Valid"):
        take(value, fullgrap=True)


def test_arguments_of_the_function_stand_behind_explain() -> None:
    with pytest.raises(OptionError, match=r"takes the function alone.*explain\(fn\)\(x, y\)"):
        cc.explain(f, torch.ones(2))
    assert "explain(f)" in repr(cc.explain(f))


def test_one_target_as_a_text_is_refused_as_a_whole() -> None:
    with pytest.raises(OptionError, match=r"'also' takes tuple.*not str \('cuda:90'\)"):
        explorer.explore(f, torch.ones(2), targets="cuda:90")


@pytest.mark.parametrize("arguments", [{"explore": "yes"}, {"inputs": 1}])
def test_record_takes_switches_only(arguments) -> None:
    with pytest.raises(OptionError, match="takes True or False"):
        cc.record(**arguments)


def test_a_recording_inside_a_recording_is_refused_and_the_outer_goes_on() -> None:
    with cc.record() as outer:
        with pytest.raises(OptionError, match="CC010"), cc.record():
            pass
        cc.compile(lambda x: x * 3)(torch.ones(2))
        explained = cc.explain(f)(torch.ones(2))
        report = explorer.explore(f, torch.ones(2))
    assert [frame.name for frame in outer.recording.frames] == ["<lambda>"]
    assert explained.graphs == 1 and len(report.versions) == 1
    with cc.record() as after:
        cc.compile(lambda x: x * 4)(torch.ones(2))
    assert len(after.recording.frames) == 1


@pytest.mark.parametrize("show", ["joint", ("nope",), ("kernel",), 3])
def test_panes_to_show_are_checked(show) -> None:
    with pytest.raises(OptionError, match="show (takes|names)"):
        explorer.explore(f, torch.ones(2), show=show)


def test_log_channels_take_switches_and_nothing_is_half_done() -> None:
    with pytest.raises(OptionError, match="guards takes True or False, not 'yes'"):
        cc.set_logs(fusion=True, guards="yes")
    assert not logs.wants("fusion") and not logs.wants("guards")


def test_unknown_log_channel_names_the_valid_ones() -> None:
    with pytest.raises(OptionError, match="did you mean 'guards'.*output_code"):
        cc.set_logs(guard=True)


def test_mark_dynamic_checks_the_dimension() -> None:
    with pytest.raises(OptionError, match="dimension 2 of a tensor with 1 dimensions"):
        cc.mark_dynamic(torch.ones(3), 2)


@pytest.mark.parametrize("shape, dim", [((1, 4), 0), ((4, 0), 1), ((2, 1), -1)])
def test_marking_a_size_that_stays_fixed_says_so(shape, dim) -> None:
    with pytest.warns(RuntimeWarning, match=r"CC011.*dimension -?\d has size [01]"):
        cc.mark_dynamic(torch.ones(shape), dim)


def test_marking_a_larger_size_is_silent(recwarn: pytest.WarningsRecorder) -> None:
    cc.mark_dynamic(torch.ones(2, 3), 0, 1)
    assert not recwarn.list


@pytest.mark.parametrize("text, on", [("1", True), ("TRUE", True), ("no", False), ("off", False)])
def test_the_strict_variable_takes_words_for_yes_and_no(text, on, monkeypatch) -> None:
    monkeypatch.setenv("CUTAWAY_STRICT", text)
    assert Options.of().strict is on


def test_the_strict_variable_refuses_any_other_word(monkeypatch) -> None:
    monkeypatch.setenv("CUTAWAY_STRICT", "maybe")
    with pytest.raises(OptionError, match="CUTAWAY_STRICT='maybe'. Valid: 1, true, yes"):
        cc.compile(f)


def test_a_misspelt_variable_is_named_once_with_the_right_one(monkeypatch) -> None:
    monkeypatch.setenv("CUTAWAY_STRCT", "1")
    environment.warn_of_unknown.cache_clear()
    with pytest.warns(RuntimeWarning, match="CUTAWAY_STRCT; did you mean 'CUTAWAY_STRICT'") as told:
        for _ in range(3):
            cc.compile(f)
    assert len(told) == 1


def test_every_option_of_the_environment_is_a_known_variable() -> None:
    named = {field.metadata["env"] for field in fields(Options)} - {None}
    assert named | {"CUTAWAY_LOGS"} == set(environment.VARIABLES)


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
