"""Sizes that depend on data, operators that cannot be traced, tensors that are not plain."""

from __future__ import annotations

from compiler_core.errors import register

DATA_SHAPE = register(
    "CC107",
    "the shape of a result depends on data",
    "Sizes must be known, or be expressions of input sizes, before the graph runs.",
    "Use a masked form with a fixed shape: torch.where(mask, x, 0) instead of x[mask].",
    "Do the selection before or after the compiled function.",
)
OPERATOR_RAISES = register(
    "CC110",
    "an operator raises on these inputs",
    "Tracing it with fake tensors raised, so it is run natively to give the plain exception at its place.",
    "Check the shapes, dtypes and devices of the operands in the detail.",
    "If it works in eager, the operator has no rule for fake tensors: keep it outside.",
)
OVERLAP = register(
    "CC116",
    "an input is changed in place while another overlaps its memory",
    "A graph assumes that its inputs do not share memory; this operation runs natively instead.",
    "Clone one of the inputs before the call.",
    "Use the out-of-place form of the operation.",
)
LAZY_BIT = register(
    "CC124",
    "a tensor that is conjugated or negated lazily",
    "Its memory holds other numbers than it stands for (x.conj(), x.conj().imag), and kernels read memory.",
    "Resolve it before the call: x.resolve_conj(), x.resolve_neg().",
    "Conjugate inside of the compiled function.",
)
SUBCLASS = register(
    "CC117",
    "a tensor of a class of its own",
    "Tensor subclasses may change what every operator means.",
    "Convert it with .as_subclass(torch.Tensor) first.",
    "Keep code that needs the subclass outside of the compiled function.",
)
POSITIONS = register(
    "CC150",
    "the places at which a tensor is not zero are asked for",
    "Their number is the size of the result, and it depends on the values.",
    "Use the mask itself: x.masked_fill(mask, 0), torch.where(mask, a, b).",
    "torch.topk or argsort with a fixed k gives places in a fixed shape.",
)
DISTINCT = register(
    "CC151",
    "the distinct values of a tensor are asked for",
    "Their number is the size of the result, and it depends on the values.",
    "Sort instead, and compare neighbours: the shape stays fixed.",
    "Compute them before the call, and pass the result.",
)
SIZES_IN_TENSOR = register(
    "CC152",
    "the values of a tensor decide the size of a result",
    "repeat_interleave, bincount, one_hot and others read their sizes from a tensor.",
    "Give the size: output_size=…, minlength with scatter_add, num_classes=….",
    "Pass the sizes as ints, which are guarded.",
)
NO_FAKE = register(
    "CC153",
    "a custom operator has no fake implementation",
    "Without one nobody knows the shape and dtype of its results before it runs.",
    'Register one: @torch.library.register_fake("namespace::name") that returns an empty result.',
    "Call the operator before or after the compiled function.",
)
STRIDED_MEMORY = register(
    "CC154",
    "memory behind a tensor is read by strides",
    "as_strided reaches elements that belong to the storage, and an input's storage may differ later.",
    "Use the view that is meant: unfold, expand, transpose, diagonal, narrow.",
    "Make the tensor inside, or clone it, so that its memory is known to be dense.",
)
LAYOUT = register(
    "CC155",
    "a tensor that is sparse, quantized or nested",
    "Its values do not lie in one dense block, which is what generated kernels read.",
    "Convert it before the call: x.to_dense(), x.dequantize(), nested.to_padded_tensor(0).",
    "Keep the operations on it outside of the compiled function.",
)
CUSTOM_WRITES = register(
    "CC186",
    "a custom operator writes to its arguments",
    "What it writes is known to the operator alone, so it runs natively.",
    "Return the new tensor instead of writing it: mutates_args=().",
    "Call the operator before or after the compiled function.",
)
