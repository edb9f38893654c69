"""What the autodiff stage refuses, as rows of the error catalogue (CC2xx).

In: nothing. Out: the rows, and `refuse`, which makes the error of one. A refusal is an
`InternalError`: the program falls back to eager with this text as the reason, strict raises it.
"""

from __future__ import annotations

from compiler_core.errors import InternalError, Kind, register

__all__ = [
    "ALIASED_MUTATION", "DOUBLE_BACKWARD", "DRAWS_LOST", "LEAF_MUTATION", "METADATA_MUTATION", "NESTED_GRAD",
    "OUTPUT_ALIAS", "TRACE_FAILED", "refuse",
]  # fmt: skip

DRAWS_LOST = register(
    "CC201",
    "the traced graph does not draw random numbers as often as the captured one",
    "An operator is taken apart by torch into something that draws at other times; running it would "
    "give other numbers than eager and leave the generator in another state.",
    "Draw the numbers with an operator of their own, or keep this one outside the compiled function.",
)
ALIASED_MUTATION = register(
    "CC202",
    "an input that shares memory with another input is written in place",
    "Functional graphs give each input a value of its own, so a write through one of two views of "
    "the same memory would be lost in the other.",
    "Pass one tensor and take the view inside the function, or clone one of the two.",
)
METADATA_MUTATION = register(
    "CC203",
    "an input's shape, strides or dtype is changed in place",
    "The new value is copied back into the input, and a copy cannot change metadata.",
    "Use the out-of-place operator (`x = x.t()` instead of `x.t_()`).",
)
LEAF_MUTATION = register(
    "CC204",
    "a leaf that requires grad, or a view of one, is written in place",
    "Eager raises a RuntimeError here; the frame runs in eager so that you get that error.",
    "Write under torch.no_grad(), or clone the tensor first.",
)
OUTPUT_ALIAS = register(
    "CC205",
    "outputs share memory in a way that cannot be rebuilt",
    "Outputs that are views are rebuilt from their base with as_strided; this needs one base of "
    "the same dtype that carries the gradient of all of them.",
    "Return a clone() of one of them.",
)
TRACE_FAILED = register(
    "CC206",
    "the forward and backward pass could not be traced together",
    "An operator raised on fake tensors, or asked for the value of a tensor.",
    "Read the cause below; an operator without a meta function needs one (torch.library).",
)
DOUBLE_BACKWARD = register(
    "CC207",
    "the gradient of a compiled function cannot be differentiated again here",
    "A second gradient runs the captured graph again in eager, which needs its inputs alive and "
    "unchanged and a graph that writes none of them.",
    "Keep the inputs alive until the second backward, or call the function uncompiled when "
    "create_graph=True is used.",
)
NESTED_GRAD = register(
    "CC208",
    "gradients are switched on inside a function that was called with them off",
    "The graph also writes an input or returns a view, which autograd would record outside of it.",
    "Call the function with grad mode on and switch it off inside where it is not wanted.",
)


def refuse(kind: Kind, detail: str = "") -> InternalError:
    """The error of a refusal, to be raised by the caller."""
    return InternalError(kind, detail)
