"""Sources: the two texts of a path say where the object is, and `get` finds it."""

import pytest
import torch

from compiler_core.capture.sources import (
    GLOBALS,
    Source,
    builtin,
    constant,
    glob,
    is_literal,
    local,
)


def function(a, b=2, *, k=3):
    return closed


closed = 5


def maker(z):
    def inner():
        return z

    return inner


class Box:
    pass


box = Box()
box.items = [1, {"a": torch.ones(2, 3)}]
setattr(box, "0", "odd name")
inner = maker(7)
L = {"box": box, "f": function, "inner": inner, "d": {"x": 1, "y": 2}, ".0": iter([4])}
G = globals()

PATHS = [
    (local("box").attr("items").item(1).item("a"), "box.items[1]['a']", lambda: box.items[1]["a"]),
    (local("box").attr("0"), "getattr(box, '0')", lambda: "odd name"),
    (local("f").default_of(0), "f.__defaults__[0]", lambda: 2),
    (local("f").default_of("k"), "f.__kwdefaults__['k']", lambda: 3),
    (local("f").global_of("closed"), "f.__globals__['closed']", lambda: 5),
    (local("inner").closure_of(0), "inner.__closure__[0].cell_contents", lambda: 7),
    (
        local("inner").attr("__closure__").item(0).cell_content(),
        "inner.__closure__[0].cell_contents",
        lambda: 7,
    ),
    (local("d").dict_key(1), "list(d)[1]", lambda: "y"),
    (local("box").type_of(), "type(box)", lambda: Box),
    (local("box").attr("items").item(1).item("a").size(1), "box.items[1]['a'].size(1)", lambda: 3),
    (
        local("box").attr("items").item(1).item("a").stride(0),
        "box.items[1]['a'].stride(0)",
        lambda: 3,
    ),
    (glob("closed"), "closed", lambda: 5),
    (builtin("len"), "len", lambda: len),
    (GLOBALS.item("closed"), "globals()['closed']", lambda: 5),
    (local("d").item(constant("key_object")), "d[key_object]", lambda: 1),
]
key_object = "x"


@pytest.mark.parametrize(("source", "text", "value"), PATHS, ids=[p[1] for p in PATHS])
def test_texts_and_walk_agree(source, text, value):
    import builtins

    assert source.expr() == text
    found = source.get(L, G)
    assert found is value() or found == value()
    scope = {"L": L, "G": G, "builtins": builtins, "key_object": key_object}
    assert eval(source.guard(), scope) is found or eval(source.guard(), scope) == found
    assert eval(source.expr(), dict(G), {n: v for n, v in L.items() if n != ".0"}) is not None


def test_names_that_the_frame_hides_are_reached_past_it():
    hidden = frozenset({"len", "closed", "globals"})
    assert glob("closed").expr(hidden) == "__import__('builtins').globals()['closed']"
    assert glob("closed").expr(frozenset({"closed"})) == "globals()['closed']"
    assert builtin("len").expr(hidden) == "__import__('builtins').len"
    namespace = dict(G)
    exec(f"def f(len, closed, globals):\n    return {glob('closed').expr(hidden)}", namespace)
    assert namespace["f"](1, 2, 3) == 5


def test_what_has_no_text_says_so():
    with pytest.raises(ValueError, match="no name in source"):
        local(".0").expr()
    assert local(".0").guard() == "L['.0']"
    with pytest.raises(TypeError, match="inject it"):
        local("d").item(torch.float32).expr()
    with pytest.raises(KeyError):
        local("missing").get(L, G)


def test_equal_paths_are_equal_values():
    assert local("a").attr("b") == Source("attr", "b", local("a"))
    assert {local("a").attr("b"), local("a").attr("b")} == {local("a").attr("b")}
    assert local("a").attr("b").item(0).root == local("a")
    assert str(glob("x").attr("y")) == "G['x'].y"


@pytest.mark.parametrize("value", [1, -2, "a", b"b", None, ..., True, 0.5, (1, ("x", 2.0))])
def test_literals(value):
    assert is_literal(value) and eval(repr(value)) == value


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), [1], (1, [2]), object(), torch.ones(1)]
)
def test_no_literals(value):
    assert not is_literal(value)
