"""A value that the graph computes is wanted by Python."""

from __future__ import annotations

from compiler_core.errors import register

SCALAR_READ = register(
    "CC102",
    "a tensor's value is read into Python",
    "The value does not exist while the graph is built; it is read from the result of the graph so far.",
    "Keep the value as a zero-dimensional tensor: most operators take one where they take a number.",
    "Move the read (.item(), int(), float(), .tolist()) behind the last tensor operation.",
)
IDENTITY = register(
    "CC123",
    "the identity of an object is used as a value",
    "id(), hash() of an object and the address in its repr differ from run to run.",
    "Use a name or an index instead.",
    "Compute the value outside of the compiled function.",
)
UNHASHABLE = register(
    "CC122",
    "a dict or set key whose hash is not known while tracing",
    "Equality of the keys decides which entry is meant, and it is not known for these objects.",
    "Use strings, numbers, tuples of them, enum members or plain objects as keys.",
    "Look the entry up outside of the compiled function.",
)
AS_LIST = register(
    "CC137",
    "a tensor is turned into a Python list",
    "Its values do not exist while the graph is built; they are read from the result of the graph so far.",
    "Stay with tensors: unbind() gives the rows, indexing gives an item.",
    "Call .tolist() in the caller, on the result.",
)
AS_NUMBER = register(
    "CC138",
    "a tensor is turned into a Python number",
    "int(), float(), bool() and complex() need the value, which exists only when the graph has run.",
    "Convert the dtype and stay with the tensor: x.to(torch.int64), x.float(), x != 0.",
    "If the number only depends on sizes, compute it from x.shape.",
)
MATH_OF_TENSOR = register(
    "CC139",
    "a function of the math module is applied to a tensor",
    "It takes a float, so the tensor's value is read into Python first.",
    "Use the function of the same name in torch: torch.sqrt(x) instead of math.sqrt(x).",
    "Compute it with math before, if the number does not depend on tensors.",
)
TENSOR_INDEX = register(
    "CC140",
    "a tensor is the index of a list, tuple or string",
    "Which item is meant is known only when the tensor has been computed.",
    "Stack the items into one tensor and index that: torch.stack(items).index_select(0, i.view(1))[0].",
    "Pass the index as an int argument.",
)
TENSOR_TEXT = register(
    "CC141",
    "the text of a tensor is made",
    "str(), repr(), format() and f-strings show values, which exist only when the graph has run.",
    "Show what is known without running: x.shape, x.dtype.",
    "Return the tensor and make the text in the caller.",
)
AS_NUMPY = register(
    "CC142",
    "a tensor is turned into a numpy array",
    "Numpy computes at once on memory, which exists only when the graph has run.",
    "Use the torch function that does the same; most have numpy's name.",
    "Call .numpy() in the caller, on the result.",
)
WHOLE_COMPARE = register(
    "CC143",
    "two tensors are compared as a whole",
    "torch.equal and torch.allclose answer with a bool of Python, which needs the values.",
    "Keep the answer as a tensor: (a == b).all(), torch.isclose(a, b).all().",
    "Compare in the caller, on the results.",
)
ADDRESS = register(
    "CC144",
    "the memory behind a tensor is looked at",
    "Addresses and storages exist only when the graph has run, and differ from run to run.",
    "Ask about what is meant: `a is b`, x.is_contiguous(), x.stride().",
    "Look at the memory in the caller, on the argument or the result.",
)
