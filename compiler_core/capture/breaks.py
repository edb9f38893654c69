"""Why a graph ends before its function does: the kinds, and the exceptions of ours that carry them.

In: a kind of the catalogue and the facts of one case. Out: `BreakInfo`, which the replacement's
comments, the recording and `fullgraph=True` show. A break is never an error of the user's program:
the instruction runs natively and capture goes on behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from compiler_core.capture.values.objects import Instance
from compiler_core.errors import Kind, register
from compiler_core.provenance import Span
from compiler_core.stages import BreakInfo

__all__ = [
    "Again",
    "Break",
    "CannotCapture",
    "Raised",
    "Restart",
    "break_info",
    "describe",
    "raise_real",
]

TENSOR_BRANCH = register(
    "CC101",
    "the program branches on the value of a tensor",
    "Which way to go is known only when the tensor has been computed, so each way is compiled on its own.",
    "Write the choice as data: torch.where(condition, a, b).",
    "If the condition depends only on shapes, dtypes or Python values, compute it from those.",
)
SCALAR_READ = register(
    "CC102",
    "a tensor's value is read into Python",
    "The value does not exist while the graph is built; it is read from the result of the graph so far.",
    "Keep the value as a zero-dimensional tensor: most operators take one where they take a number.",
    "Move the read (.item(), int(), float(), .tolist()) behind the last tensor operation.",
)
PRINTS = register(
    "CC103",
    "the program prints",
    "Output must appear at this point, in order, with the values that the graph so far computes.",
    "Remove the print, or move it to the caller.",
    "Print shapes and dtypes instead, outside of the hot function: they are known without running.",
)
UNKNOWN_CALL = register(
    "CC104",
    "a call that is not understood",
    "The function is not Python that can be followed, and no rule says what it does to its arguments.",
    "Move the call out of the compiled function, or to its start or end.",
    "Use a torch operator that does the same.",
)
OPCODE = register(
    "CC105",
    "an instruction that is not supported",
    "The bytecode interpreter has no handler for this operation.",
    "Write the statement in another way; the detail names what is not supported.",
    "Move it into a function of its own that is called at the end.",
)
RANDOM = register(
    "CC106",
    "a random operator that no graph can hold",
    "Graphs draw from torch's default generators, into dense tensors; this one asks for more, so it runs natively.",
    "Draw into a new tensor, from the default generator (torch.manual_seed sets its state).",
    "Pass the random tensor in as an argument.",
)
DATA_SHAPE = register(
    "CC107",
    "the shape of a result depends on data",
    "Sizes must be known, or be expressions of input sizes, before the graph runs.",
    "Use a masked form with a fixed shape: torch.where(mask, x, 0) instead of x[mask].",
    "Do the selection before or after the compiled function.",
)
UNCAUGHT = register(
    "CC108",
    "an exception leaves the function",
    "The statement is run natively, so that it raises at its place with the effects before it done.",
    "If the exception is expected, catch it inside the function.",
    "If it is not, this is an error of the program: it raises in eager as well.",
)
ITERATION = register(
    "CC109",
    "an iterator whose items are not known",
    "The iterator was made outside of this graph, and taking an item from it cannot be undone.",
    "Iterate over a list, tuple, dict or range.",
    "Turn the iterator into a list before the compiled function.",
)
OPERATOR_RAISES = register(
    "CC110",
    "an operator raises on these inputs",
    "Tracing it with fake tensors raised, so it is run natively to give the plain exception at its place.",
    "Check the shapes, dtypes and devices of the operands in the detail.",
    "If it works in eager, the operator has no rule for fake tensors: keep it outside.",
)
SIDE_EFFECT = register(
    "CC111",
    "a side effect that cannot be replayed for sure",
    "Writes to objects from outside are replayed after the graph, when it is certain what they do.",
    "Return the new value and store it in the caller.",
    "Use a plain attribute, list or dict for the state.",
)
ATTRIBUTE = register(
    "CC112",
    "an attribute that is not understood",
    "Reading it may run code that cannot be followed, or gives a value that only exists at run time.",
    "Read the attribute before the compiled function and pass its value.",
    "Use a plain attribute or a Python property.",
)
HOOKS = register(
    "CC113",
    "a module with backward hooks",
    "Backward hooks attach to autograd nodes that exist only in eager, so the module is called natively.",
    "Remove the hooks for the compiled run.",
    "Register a hook on the output tensor outside of the compiled function.",
)
SUSPENDED = register(
    "CC114",
    "a half-consumed generator is alive",
    "A suspended generator of the trace cannot be turned into a real one, so it is made natively.",
    "Use a list instead of the generator.",
    "Consume the generator before the statement that breaks the graph.",
)
TOO_DEEP = register(
    "CC115",
    "the trace is too long",
    "Calls nest deeper, or loops run longer, than the limit for one graph.",
    "Raise options={'inline_limit': n} if the depth is intended.",
    "Compile the body of the loop instead of the function around it.",
)
OVERLAP = register(
    "CC116",
    "an input is changed in place while another overlaps its memory",
    "A graph assumes that its inputs do not share memory; this operation runs natively instead.",
    "Clone one of the inputs before the call.",
    "Use the out-of-place form of the operation.",
)
SUBCLASS = register(
    "CC117",
    "a tensor of a class of its own",
    "Tensor subclasses may change what every operator means.",
    "Convert it with .as_subclass(torch.Tensor) first.",
    "Keep code that needs the subclass outside of the compiled function.",
)
AUTOGRAD = register(
    "CC118",
    "the autograd engine is called from inside",
    "Gradients, hooks and custom autograd functions work on the eager graph, which this one replaces.",
    "Call backward() or autograd.grad on the result of the compiled function.",
    "Compile the function that computes the loss, not the training step.",
)
DISABLED = register(
    "CC119",
    "a function that must not be compiled",
    "It is marked with torch.compiler.disable, or is a compiled function itself.",
    "Remove the mark if the function may be captured.",
    "Call it before or after the compiled function.",
)
NOT_REBUILT = register(
    "CC120",
    "a value that cannot be carried over the break",
    "It exists only in the trace, and there is no code that would make the real object.",
    "Use plain lists, dicts, tuples or functions.",
    "Shorten its life so that it is not needed behind the statement that breaks the graph.",
)
GLOBAL_STATE = register(
    "CC121",
    "global state of torch is read or changed",
    "The setting decides what later operators do, and changing it is seen outside of the function.",
    "Change the setting outside of the compiled function.",
    "Use a form that is captured: torch.no_grad(), torch.enable_grad(), torch.set_grad_enabled().",
)
UNHASHABLE = register(
    "CC122",
    "a dict or set key whose hash is not known while tracing",
    "Equality of the keys decides which entry is meant, and it is not known for these objects.",
    "Use strings, numbers, tuples of them, enum members or plain objects as keys.",
    "Look the entry up outside of the compiled function.",
)
IDENTITY = register(
    "CC123",
    "the identity of an object is used as a value",
    "id(), hash() of an object and the address in its repr differ from run to run.",
    "Use a name or an index instead.",
    "Compute the value outside of the compiled function.",
)

LAZY_BIT = register(
    "CC124",
    "a tensor that is conjugated or negated lazily",
    "Its memory holds other numbers than it stands for (x.conj(), x.conj().imag), and kernels read memory.",
    "Resolve it before the call: x.resolve_conj(), x.resolve_neg().",
    "Conjugate inside of the compiled function.",
)

CONTROL_FLOW = register(
    "CC140",
    "a control flow operator",
    "Its branches or its body are graphs of their own, which this graph does not hold; it runs natively, and "
    "the functions given to it as torch runs them.",
    "Where both branches are cheap, compute both and choose: torch.where(condition, a, b).",
    "Write a loop whose count does not depend on data as a Python for: it is unrolled.",
)
TRANSFORM = register(
    "CC141",
    "a transform of torch.func",
    "Batching and differentiating a function changes what every operator in it means, so the call runs natively.",
    "Apply the transform outside, to the compiled function or to its result.",
    "Write the batch out: most operators take a further dimension as they are.",
)

Because = tuple[str, Any, Any, dict[str, Any]]


class CannotCapture(Exception):
    """The frame stays in eager as a whole. The text is the reason, for the recording.

    `once`: the reason is the state of this call, not the code; ask again on the next one.
    """

    def __init__(self, reason: str, once: bool = False):
        self.once = once
        super().__init__(reason)


class Break(Exception):
    """The instruction at hand cannot be part of the graph.

    `because`: (guard kind, source, value, data) of what was found; a version that is broken here is
    for values of this kind only, also when a later attempt does not look at them again.
    """

    def __init__(self, kind: Kind, detail: str = "", because: Sequence[Because] = ()):
        self.kind, self.detail, self.because = kind, detail, tuple(because)
        self.user_stack: tuple[str, ...] = ()
        super().__init__(f"{kind.sentence}: {detail}" if detail else kind.sentence)


class Restart(Exception):
    """Trace again, and break in front of outer step `step`: the state was changed before the break."""

    def __init__(self, step: int, cause: Break):
        self.step, self.cause = step, cause
        super().__init__(f"break at step {step}: {cause}")


class Again(Exception):
    """Trace again: what was learnt is kept outside of the trace."""


class Raised(Exception):
    """The traced program raised; `value` models the exception.

    settled: its `__context__` is set already, or stays as it is because the exception is raised again.
    """

    def __init__(self, value: Instance, settled: bool = False):
        self.value, self.settled = value, settled
        super().__init__(value.cls.__name__)


def raise_real(error: BaseException) -> Raised:
    """`Raised` for an exception that a host function raised while it ran on constants."""
    from compiler_core.capture.values.constant import Constant, is_constant
    from compiler_core.capture.values.objects import ObjectValue

    args = tuple(Constant(a) if is_constant(a) else ObjectValue(a) for a in error.args)
    return Raised(Instance(type(error), args=args, real=error))


def describe(exception: Instance) -> str:
    """'ValueError: text' of a modelled exception."""
    text = ", ".join(arg.describe() for arg in exception.args or ())
    return f"{exception.cls.__name__}: {text}" if text else exception.cls.__name__


def break_info(
    cause: Break, where: Span | None, alive: Iterable[str], resumes: Iterable[str]
) -> BreakInfo:
    """The record of a break."""
    kind = cause.kind
    return BreakInfo(
        kind.code, kind.sentence, cause.detail, kind.hints, where, cause.user_stack, tuple(alive), tuple(resumes)
    )  # fmt: skip
