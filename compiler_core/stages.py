"""The stages' values. Data flows one way through this list; stages meet here and nowhere else.

    Captured → Joint → Partitioned → Lowered → Fused → Generated → Built

Each is frozen, prints (`text()`), has a `digest()` of that text and runs (`run(*inputs)`). They hold
fake tensors and metadata, never parameters or inputs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from compiler_core.graph_text import print_graph
from compiler_core.ir.arguments import check_arguments
from compiler_core.ir.loop import Program
from compiler_core.options import Target
from compiler_core.provenance import Handle, Instruction, Origins, Span

__all__ = [
    "Artifact", "ArtifactLine", "BreakInfo", "Built", "Captured", "Effect", "Fused", "Generated", "GraphInput",
    "GuardRow", "HostProgram", "Instruction", "Joint", "Kernel", "KernelSource", "Launch", "Lowered", "Param",
    "Partitioned", "Saved", "digest_of",
]  # fmt: skip


def digest_of(text: str) -> str:
    """First 16 hex digits of the SHA-256 of a stage's text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Printed:
    """A stage's value: its text is what it prints, and what its digest is taken of."""

    __slots__ = ()

    def text(self) -> str:
        """The whole value as text a person can read, the same for the same value."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        """One line: a stage's fields hold graphs and programs, whose texts are long."""
        return f"<{type(self).__name__}: {len(self.text().splitlines())} lines, shown by print>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython shows of a value that ends a cell: the text."""
        printer.text(self.text())

    def digest(self) -> str:
        return digest_of(self.text())


class LoopProgram(Printed):
    """A stage whose value is a program of the loop IR; it runs in the reference interpreter."""

    __slots__ = ()

    program: Program

    def text(self) -> str:
        from compiler_core.ir.text import print_program

        return print_program(self.program)

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Interpret the program on its graph's inputs, in the order of its arguments; gives the flat outputs.

        A forward program takes the captured graph's inputs (`Captured.inputs`) and gives outputs, new values
        of written inputs, saved values. A backward program takes those saved values, then one tangent per
        differentiable output (`Joint.diff_outputs`), each like that output; it gives the gradients.
        """
        from compiler_core.ir.interpret import run_program

        return run_program(self.program, inputs)


# ---------------------------------------------------------------------------------- capture


@dataclass(frozen=True, slots=True)
class GuardRow:
    """One condition under which a captured version may be used again.

    `source` is a Python expression over the frame's locals (`L['x']`) and globals (`G['f']`);
    `check` the expression that must hold, as text that the check function contains; `expected` the
    value at capture, as text; `line` the user's 'file:line' that made the guard; `reason` why.
    """

    source: str
    kind: str
    expected: str
    check: str
    line: str
    reason: str
    dynamic: tuple[int, ...] = ()  # tensor guards: dimensions that may change


@dataclass(frozen=True, slots=True)
class GraphInput:
    """A placeholder of the captured graph: its name and the source expression that feeds it."""

    name: str
    source: str
    value: Any  # FakeTensor, SymInt or a number
    is_parameter: bool = False
    dynamic: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Effect:
    """A side effect replayed after the graph, in order: text of the statement, and who caused it."""

    text: str
    kind: str
    origins: Origins


@dataclass(frozen=True, slots=True)
class BreakInfo:
    """Why and where the graph ended before the function did."""

    code: str  # catalogue code
    sentence: str
    detail: str
    hints: tuple[str, ...]
    where: Span | None
    stack: tuple[str, ...]  # the user's frames, outermost first, 'file:line in name'
    alive: tuple[str, ...]  # local names alive at the break
    resumes: tuple[str, ...]  # names of the resume functions


@dataclass(frozen=True, slots=True, repr=False)
class Captured(Printed):
    """A frame, or its prefix up to a graph break, as an FX graph of torch calls.

    `graph` placeholders are `inputs`; its output is a flat tuple. `node.meta["origins"]` are
    instruction handles, `meta["val"]` the fake value. `instructions` maps instruction handles to
    instructions with spans. `replacement` is the readable Python source that runs in place of the
    frame; it calls the graph under the global name `graph_name`, if there is one to call.
    """

    name: str
    graph: fx.GraphModule
    inputs: tuple[GraphInput, ...]
    guards: tuple[GuardRow, ...]
    effects: tuple[Effect, ...]
    break_: BreakInfo | None
    replacement: str
    graph_name: str
    instructions: dict[Handle, Instruction]
    grad_enabled: bool = True
    inference: bool = False
    shape_env: Any = None
    has_graph: bool = True  # False: the frame needs no operation, nothing is compiled for it

    def text(self) -> str:
        return print_graph(self.graph, self.name)[0]

    def run(self, *inputs: Any) -> Any:
        """Run the graph on values for `inputs`, in their order; gives its flat outputs."""
        return self.graph(*inputs)


# ---------------------------------------------------------------------------------- autodiff


@dataclass(frozen=True, slots=True, repr=False)
class Joint(Printed):
    """Forward and backward in one functional ATen graph.

    Placeholders: primals (as `Captured.inputs`), then one tangent per differentiable output. Output:
    the flat tuple (outputs, new values of mutated inputs, gradients of `diff_inputs`); `diff_outputs`
    counts the new values too, after the outputs.
    `node.meta["origins"]` are `capture:` handles, `meta["phase"]` is "forward" or "backward".
    """

    graph: fx.GraphModule
    primals: int
    outputs: int
    diff_outputs: tuple[int, ...]  # outputs that have a gradient, in tangent order
    diff_inputs: tuple[int, ...]  # inputs that get one
    mutated: tuple[int, ...]  # inputs written in place
    aliases: tuple[
        tuple[int, int], ...
    ] = ()  # (output, input) pairs where the output is the input itself
    views: tuple[Any, ...] = ()  # how outputs that are views are rebuilt (autodiff.outputs.View)
    hidden: int = 0  # outputs, the last ones, that exist only as bases of views
    reaches: tuple[tuple[int, ...], ...] = ()  # per diff input: positions in diff_outputs it feeds
    captured: fx.GraphModule | None = None  # run again in eager for a gradient of a gradient

    def text(self) -> str:
        return print_graph(self.graph, "joint")[0]

    def run(self, *inputs: Any) -> Any:
        """Run it on the captured graph's inputs, then one tangent per entry of `diff_outputs`, each with the
        shape and dtype of that output; gives outputs, new values of written inputs, gradients."""
        return self.graph(*inputs)


@dataclass(frozen=True, slots=True)
class Saved:
    """A value that crosses from forward to backward: joint node, bytes (None if symbolic), why it is kept."""

    node: str
    bytes: int | None
    reason: str


@dataclass(frozen=True, slots=True, repr=False)
class Partitioned(Printed):
    """The joint graph cut in two.

    `forward`: primals → (outputs, mutated values, saved …). `backward`: (saved …, tangents) →
    gradients; None when nothing needs a gradient. Saved symbolic sizes come first among the saved.
    Node origins are `joint:` handles; a saved output's node also names the backward nodes that read
    it, in `meta["readers"]` (a frozenset of `backward:` handles).
    """

    joint: Joint
    forward: fx.GraphModule
    backward: fx.GraphModule | None
    saved: tuple[Saved, ...]

    def text(self) -> str:
        parts = [print_graph(self.forward, "forward")[0]]
        if self.backward is not None:
            parts.append(print_graph(self.backward, "backward")[0])
        return "\n\n".join(parts)

    def run(self, *inputs: Any) -> Any:
        """Run the forward graph on the captured graph's inputs; gives outputs, new values, saved values.

        The backward one is run as `value.backward(*saved, *tangents)`: what the forward gave behind its
        `joint.outputs` outputs and `len(joint.mutated)` new values, then a tangent per differentiable output.
        """
        return self.forward(*inputs)


# ---------------------------------------------------------------------------------- lower, fuse


@dataclass(frozen=True, slots=True, repr=False)
class Lowered(LoopProgram):
    """One graph (`part` is "forward" or "backward") in the loop IR: a nest per operator, library calls."""

    program: Program
    target: Target
    part: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """What fusion decided about one nest of `Fused.program`.

    strategy: "pointwise" (no inner loops), "row" (reductions over axes that are contiguous in memory),
    "column" (reductions over an outer dimension). `reads`, `writes`: buffer names in parameter order.
    `members`: names of the lowered nests in it.
    """

    name: str
    strategy: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    symbols: tuple[str, ...]
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Fused(LoopProgram):
    """The program after fusion: its nests are kernels, in execution order; and the buffer plan.

    `reuse` maps a buffer to the dead buffer whose memory it takes. `last_use` maps a buffer to the
    position in `program.body` after which nothing reads it.
    """

    program: Program
    kernels: dict[str, Kernel]
    reuse: dict[str, str]
    last_use: dict[str, int]
    target: Target
    part: str


# ---------------------------------------------------------------------------------- codegen


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a kernel: a buffer's first element, a size symbol, or where a C kernel notes the
    first position that is out of bounds: two integers, the number of the check and the position."""

    name: str
    kind: str  # "in", "out", "size" or "failed"
    dtype: str  # name of the IR type; "i64" for sizes


@dataclass(frozen=True, slots=True)
class Launch:
    """How a Triton kernel is started: grid and constants as Python expressions over the size symbols."""

    grid: tuple[str, ...]
    constants: dict[str, int] = field(default_factory=dict)
    num_warps: int = 4
    num_stages: int = 2


@dataclass(frozen=True, slots=True)
class KernelSource:
    """The text of one kernel. `line_origins[i]` are the `fuse:` handles behind line i + 1."""

    name: str
    language: str  # "cpp" or "triton"
    source: str
    line_origins: tuple[Origins, ...]
    params: tuple[Param, ...]
    launch: Launch | None = None


@dataclass(frozen=True, slots=True)
class HostProgram:
    """The Python function `call(args)` that allocates, launches and frees."""

    source: str
    line_origins: tuple[Origins, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Generated(Printed):
    """Kernels and the host program of one graph for one target."""

    kernels: tuple[KernelSource, ...]
    host: HostProgram
    target: Target
    part: str
    program: Program | None = None  # what it was generated from, to check the arguments of a run

    def text(self) -> str:
        return "\n\n".join([*(k.source for k in self.kernels), self.host.source])


# ---------------------------------------------------------------------------------- runtime


@dataclass(frozen=True, slots=True)
class ArtifactLine:
    """A line of machine-side text and the lines of the kernel source it came from (1-based)."""

    number: int
    kernel_lines: tuple[int, ...]
    is_instruction: bool


@dataclass(frozen=True, slots=True)
class Artifact:
    """One form of a built kernel: stage "ttir", "ttgir", "llir", "ptx", "sass" or "asm"."""

    stage: str
    text: str
    lines: tuple[ArtifactLine, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Built(Printed):
    """Runnable code of one graph for one target.

    `call(list of inputs)` returns the outputs; the list is emptied so that inputs can be freed early.
    `artifacts(kernel name)` gives the forms of one kernel in order; `lazy` forms (SASS, assembly) are
    made when `artifacts(name, lazy=True)` is asked for.
    """

    generated: Generated
    call: Callable[[list[Any]], Sequence[Any]]
    artifacts: Callable[..., tuple[Artifact, ...]]
    evaluates: bool = False  # True when kernels run in the TTIR evaluator, for want of a GPU

    def text(self) -> str:
        return self.generated.text()

    def run(self, *inputs: torch.Tensor | int) -> tuple[Any, ...]:
        """`call` on checked arguments: kernels trust sizes, strides and types, and would read astray.

        inputs: of a forward graph, the captured graph's; of a backward one, what the forward saved, then
        one tangent per differentiable output (as `Lowered.run`). GPU code that runs takes GPU tensors.
        Raises TypeError or ValueError for an argument that is not as the program declares it.
        """
        if self.generated.program is not None:
            check_arguments(self.generated.program, inputs)
        return tuple(self.call(list(inputs)))
