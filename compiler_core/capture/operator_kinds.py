"""The kind of break for a torch call whose trace with fake tensors raised.

In: the name of the call and what it raised. Out: a kind. Torch names the operator inside that could
not be computed without data; which call of the user it belongs to decides the remedy.
"""

from __future__ import annotations

from torch._subclasses import fake_tensor
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from compiler_core.capture.break_kinds.tensors import (
    DATA_SHAPE,
    DISTINCT,
    NO_FAKE,
    OPERATOR_RAISES,
    POSITIONS,
    SIZES_IN_TENSOR,
)
from compiler_core.capture.break_kinds.values import SCALAR_READ, WHOLE_COMPARE
from compiler_core.errors import Kind

__all__ = ["kind_of_failure"]

_SHAPE_BY_OPERATOR = {
    "aten::_unique2": DISTINCT, "aten::unique_dim": DISTINCT, "aten::unique_consecutive": DISTINCT,
    "aten::_unique": DISTINCT, "aten::unique_dim_consecutive": DISTINCT, "aten::nonzero": DATA_SHAPE,
    "aten::masked_select": DATA_SHAPE, "aten::index": DATA_SHAPE,
}  # fmt: skip
_ASKS_FOR_PLACES = frozenset({"where", "nonzero", "argwhere"})
_READS_SIZES = frozenset(
    ("one_hot", "getitem", "zeros", "ones", "empty", "new_zeros", "new_ones", "new_empty", "arange", "narrow",
     "expand", "split", "tensor_split", "repeat", "view", "reshape", "select", "roll", "eye")
)  # fmt: skip


def kind_of_failure(call: str, error: Exception) -> Kind:
    """The kind of what fake tensors could not do. OPERATOR_RAISES for what eager would raise, too.

    call: the torch call as the user wrote it, `where`; error: what it raised.
    """
    match error:
        case fake_tensor.DynamicOutputShapeException():
            return POSITIONS if call in _ASKS_FOR_PLACES else _kind_of_shape(error)
        case fake_tensor.DataDependentOutputException() | GuardOnDataDependentSymNode():
            if call in _READS_SIZES:
                return SIZES_IN_TENSOR
            return WHOLE_COMPARE if call in ("equal", "allclose") else SCALAR_READ
    return NO_FAKE if _lacks_fake(error) else OPERATOR_RAISES


def _kind_of_shape(error: fake_tensor.DynamicOutputShapeException) -> Kind:
    return _SHAPE_BY_OPERATOR.get(error.func._schema.name, SIZES_IN_TENSOR)


def _lacks_fake(error: Exception) -> bool:
    """torch.library.custom_op raises a plain RuntimeError; an operator defined by hand, a class of its own."""
    if isinstance(error, fake_tensor.UnsupportedOperatorException):
        return not error.func._schema.name.startswith(("aten::", "prims::"))
    return isinstance(error, RuntimeError) and "no fake impl registered" in str(error)
