"""What model libraries do beside tensors: classes derived from dict, own attribute access, copies, logs.

Each program is called three times, with something changed in between, and gives what plain Python gives:
values, the state of the objects it was given, the text it logs. Nothing falls back, nothing breaks.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import importlib.util
import inspect
import logging
import os

import pytest
import torch

import compiler_core as cc


class Output(collections.OrderedDict):
    """A mapping whose items are attributes too."""

    def __setattr__(self, name, value):
        super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __getitem__(self, key):
        return dict(self.items())[key] if isinstance(key, str) else self.to_tuple()[key]

    def to_tuple(self):
        return tuple(self[key] for key in self.keys())


@dataclasses.dataclass
class Named(Output):
    first: torch.Tensor | None = None
    second: torch.Tensor | None = None

    def __post_init__(self):
        for field in dataclasses.fields(self):
            if self.__dict__.get(field.name) is not None:
                self[field.name] = self.__dict__[field.name]


class Row(list):
    def total(self):
        return sum(self)


class Counts(dict):
    def __missing__(self, key):
        return 5


class Config:
    """Names of attributes go through a map, as configurations of models do."""

    renamed = {"width": "size"}  # noqa: RUF012

    def __init__(self, size):
        self.size, self.kind = size, None

    def __getattribute__(self, name):
        if name != "renamed" and name in super().__getattribute__("renamed"):
            name = super().__getattribute__("renamed")[name]
        return super().__getattribute__(name)

    def __setattr__(self, name, value):
        super().__setattr__(super().__getattribute__("renamed").get(name, name), value)


class Fallback:
    def __getattribute__(self, name):
        if name == "hidden":
            raise AttributeError(name)
        return super().__getattribute__(name)

    def __getattr__(self, name):
        return 7 if name == "hidden" else 9


LOG = logging.getLogger("cutaway.tests.objects")


@functools.lru_cache(None)
def log_once(text):
    LOG.warning(text)


@functools.lru_cache(None)
def table(n):
    return torch.arange(float(n))


def two_arguments(a, b, *, c=1):
    return a + b + c


class Numbers(collections.abc.Sequence):
    def __len__(self):
        return 9

    def __getitem__(self, place):
        if place > 8:
            raise IndexError(place)
        return place


def made(x, config):
    output = Output()
    output.a = x + 1
    output.b = x * 2
    row = Row([x, 1])
    row.append(x * 3)
    row += [4]
    counts = Counts(q=x)
    counts["z"] = 3
    counts.update(u=8)
    output.__dict__["extra"] = 3
    return (
        output, row, counts, output[0] + output["b"], row.total(), counts["no"], len(row), [*counts.items()],
        "q" in counts, {**counts}, Named(first=x), output.extra, output.__dict__,
    )  # fmt: skip


def attributes(x, config):
    config.width = config.width + 1
    config.kind = "wide" if config.width > 3 else "narrow"
    return x * config.size, config.kind, dict(config.__dict__), Fallback().hidden, Fallback().other


def copies(x, config):
    twin = copy.deepcopy(config)
    twin.width = 2 * twin.width
    nested = {"a": [1, {"b": x.shape}], "c": (config.size, "d")}
    other = copy.deepcopy(nested)
    other["a"].append(config.size)
    return x * twin.width, config.size, nested, other, other["c"] is nested["c"]


def logs(x, config):
    log_once("a text that comes once")
    LOG.warning("size %s of %s", config.width, tuple(x.shape))
    return x + 1


def reflection(x, config):
    names = inspect.signature(two_arguments).parameters
    return x * len(names), list(names), two_arguments.__code__.co_varnames, names["c"].default


def modules(x, config):
    loss = torch.nn.CrossEntropyLoss(reduction="sum")
    layers = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())
    return loss(layers(x), torch.tensor([0, 1])), loss.reduction, len(layers), layers.training


def environment(x, config):
    return x + int(os.environ.get("CUTAWAY_TEST_ADDS", "1")), os.getenv("CUTAWAY_TEST_NOT_SET", "-")


@functools.lru_cache(None)
def has_module(name):
    return importlib.util.find_spec(name) is not None


def not_followed(x, config):
    return x + has_module("json") + 2 * has_module("no_module_of_this_name"), has_module("sys")


def small_things(x, config):
    total = 0
    total += x
    pairs = [(a, b) for a, b in zip([1, 2], Numbers())]
    return total, pairs, f"{Config}", x + table(3)


PROGRAMS = (
    made,
    attributes,
    copies,
    logs,
    reflection,
    modules,
    environment,
    not_followed,
    small_things,
)


@pytest.fixture
def said():
    """What LOG says, as a list that grows."""
    texts = []
    handler = logging.Handler()
    handler.emit = lambda record: texts.append(record.getMessage())
    LOG.addHandler(handler)
    yield texts
    LOG.removeHandler(handler)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_objects_behave_as_in_python(program, said, monkeypatch):
    compiled = cc.compile(program, fullgraph=True)
    ours, plain = Config(1), Config(1)
    before = cc.stats()
    for call in range(3):
        x = torch.arange(6.0).reshape(2, 3) + call
        ours.size = plain.size = 1 + 2 * call
        monkeypatch.setenv("CUTAWAY_TEST_ADDS", str(5 + call))
        want, want_said = _run(program, x, plain, said, call)
        got, got_said = _run(compiled, x, ours, said, call)
        assert repr(got) == repr(want)
        assert [type(v) for v in got] == [type(v) for v in want]
        assert vars(ours) == vars(plain)
        assert got_said == want_said
    now = cc.stats()
    assert (now.fallbacks, now.breaks) == (before.fallbacks, before.breaks)
    assert now.graphs > before.graphs


def _run(function, x, config, said, call):
    """The result, and what was logged; the cache of `log_once` is empty in the first call only."""
    if call == 0:
        log_once.cache_clear()
    said.clear()
    result = function(x, config)
    return result if isinstance(result, tuple) else (result,), list(said)


def test_containers_from_outside_are_read_and_guarded():
    def program(output, row, counts, x):
        parts = output[0] * x + output["b"], row.total(), len(row), counts["no"], "q" in counts
        return *parts, [*counts], {**counts}, counts == dict(counts), output.a

    compiled = cc.compile(program, fullgraph=True)
    before = cc.stats()
    for number in range(4):
        output, row, counts = made(torch.full((2, 3), float(number)), None)[:3]
        if number == 3:
            counts["new"] = 3
            row.append(7)
        given = output, row, counts, torch.ones(2, 3)
        assert repr(compiled(*given)) == repr(program(*given))
    now = cc.stats()
    assert (now.breaks, now.fallbacks) == (before.breaks, before.fallbacks)
    assert now.graphs - before.graphs == 2


def test_a_write_past_the_own_setter_is_replayed_past_it():
    calls = []

    class Noted:
        def __setattr__(self, name, value):
            calls.append(name)
            super().__setattr__(name, value)

    def program(noted, x):
        object.__setattr__(noted, "a", x + 1)
        noted.b = x + 2
        return x * 2

    compiled = cc.compile(program)
    for _ in range(2):
        noted, x = Noted(), torch.ones(2)
        calls.clear()
        compiled(noted, x)
        assert calls == ["b"]
        assert torch.equal(noted.a, x + 1)
        assert torch.equal(noted.b, x + 2)


def test_a_written_object_shows_the_write_in_its_dict():
    def program(config, x):
        before = len(config.__dict__)
        config.more = x + 1
        config.size = 4
        shown = [*config.__dict__]
        del config.more
        return before, shown, [*config.__dict__], config.__dict__["size"], x * config.size

    compiled = cc.compile(program, fullgraph=True)
    for size in (1, 2, 1):
        ours, plain, x = Config(size), Config(size), torch.ones(2)
        assert repr(compiled(ours, x)) == repr(program(plain, x))
        assert vars(ours) == vars(plain)


def test_views_of_parameters_are_captured_without_grad_mode():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))

        def forward(self, x):
            return x @ self.weight.transpose(0, 1) + self.weight.to(x.dtype)[0, 0]

    module = Tied()
    compiled = cc.compile(module, fullgraph=True)
    before = cc.stats()
    for rows in (2, 3, 2):
        x = torch.ones(rows, 3)
        with torch.no_grad():
            got = compiled(x)
        assert torch.equal(got, module(x))
        assert not got.requires_grad
        assert compiled(x).requires_grad
    now = cc.stats()
    assert (now.breaks, now.fallbacks) == (before.breaks, before.fallbacks)
    assert now.graphs > before.graphs
