"""Objects and classes: what is read, made and written that has no model."""

from __future__ import annotations

from compiler_core.errors import register

ATTRIBUTE = register(
    "CC112",
    "an attribute that is not understood",
    "Reading it may run code that cannot be followed, or gives a value that only exists at run time.",
    "Read the attribute before the compiled function and pass its value.",
    "Use a plain attribute or a Python property.",
)
NOT_REBUILT = register(
    "CC120",
    "a value that cannot be carried over the break",
    "It exists only in the trace, and there is no code that would make the real object.",
    "Use plain lists, dicts, tuples or functions.",
    "Shorten its life so that it is not needed behind the statement that breaks the graph.",
)
SIDE_EFFECT = register(
    "CC111",
    "a side effect that cannot be replayed for sure",
    "Writes to objects from outside are replayed after the graph, when it is certain what they do.",
    "Return the new value and store it in the caller.",
    "Use a plain attribute, list or dict for the state.",
)
OWN_LOOKUP = register(
    "CC169",
    "a class that decides itself what its attributes are",
    "`__getattribute__` runs at each look, also at those that the capture itself must do.",
    "Use `__getattr__`, which is asked only for what is missing, or a property.",
    "Read the attributes before the call, and pass them.",
)
DESCRIPTOR = register(
    "CC170",
    "an attribute that a descriptor computes",
    "cached_property and descriptors of the program's own keep state that the capture does not model.",
    "Use a plain property, or set the attribute in `__init__`.",
    "Read it once before the call: a cached value is an attribute like any other.",
)
LAYER_MADE = register(
    "CC171",
    "a module or parameter is made inside",
    "Its parameters are initialised at random and registered by code that works on real tensors.",
    "Make it in `__init__` of the module around it, and only call it here.",
    "Use the function without state: torch.nn.functional.linear(x, weight, bias).",
)
METACLASS = register(
    "CC172",
    "a class whose metaclass decides what a call makes",
    "The metaclass has its own `__call__`: it may return a kept object or run anything.",
    "Give the class a `__new__` or a function that makes its objects.",
    "Make the object before the call.",
)
CLASS_MADE = register(
    "CC173",
    "a class is made inside",
    "A class statement runs a body and a metaclass, and gives a new class at each call.",
    "Define the class at the top of the file.",
    "Use a dict, a named tuple or a dataclass that exists already.",
)
FOREIGN_OBJECT = register(
    "CC174",
    "an object of a class that is not written in Python is made",
    "Its state lies in C, so there is no model of it, and no way to follow its methods.",
    "Make it before the call, or where the model is made.",
    "Use numbers, strings and containers of Python.",
)
WEAK = register(
    "CC175",
    "a weak reference is followed or made",
    "Whether the object still lives is known only at this point of the run.",
    "Follow it in the caller, and pass the object.",
    "Keep a plain reference.",
)
CLASS_WRITTEN = register(
    "CC176",
    "an attribute of a class is set",
    "Plain values of a program's class are stored behind the graph; a function, a descriptor or a special name changes what the graph was built from.",
    "Keep the state on the instance, or in a dict.",
    "Set it in the caller, before or after.",
)
MODULE_CHANGED = register(
    "CC177",
    "a parameter or submodule is replaced",
    "Registering it changes what the module is made of, which graphs take for granted.",
    "Write into it: with torch.no_grad(): self.weight.copy_(new).",
    "Keep changing tensors in buffers, which may be set.",
)
TENSOR_WRITTEN = register(
    "CC178",
    "an attribute of a tensor is set",
    "It stays with the real tensor, which exists only when the graph has run.",
    "Return the value beside the tensor: `return x, scale`.",
    "Keep it in a dict or on the module.",
)
