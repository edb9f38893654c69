"""Stage values as records: text, items and links, what the explorer is given to see.

In: a `Compilation` (live values). Out: `StageRecord`s in pipeline order. Every item names its
origins in the stage just before it; nothing here computes a link, it only writes links down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import torch
from torch import fx

from compiler_core.graph_text import print_graph, target_text, type_text
from compiler_core.ir.text import print_program, statement_handles
from compiler_core.pipeline import Compilation, PartCode, parts_of
from compiler_core.provenance import NOWHERE, Handle, Origins, handle, stage_of
from compiler_core.recording import Item, StageRecord
from compiler_core.source_record import source_record
from compiler_core.stages import (
    Artifact,
    Captured,
    Fused,
    Generated,
    KernelSource,
    Lowered,
    digest_of,
)

__all__ = ["captured_records", "shared_records", "target_records"]

_SHARED = (
    "src",
    "instr",
    "capture",
    "joint",
    "forward",
    "backward",
    "synthetic",
)  # before the target enters


def shared_records(compilation: Compilation) -> Iterator[StageRecord]:
    """The stages before a target enters: capture, the joint graph and its two parts."""
    yield from captured_records(compilation.captured)
    yield _graph("joint", "", compilation.joint.graph)
    for part, graph in parts_of(compilation.partitioned):
        yield _graph(part, "", graph)


def target_records(
    compilation: Compilation, target: str, lazy: bool = False
) -> Iterator[StageRecord]:
    """The stages of one target in order; `lazy` includes forms that take seconds to make (SASS, assembly)."""
    for part, code in compilation.targets[target].items():
        yield from code_records(code, part, target, lazy)


def captured_records(captured: Captured) -> Iterator[StageRecord]:
    """The source, the bytecode, the captured graph and the replacement of a frame: all there is without a backend."""
    yield source_record(i.span for i in captured.instructions.values() if i.span)
    yield bytecode_record(captured)
    yield _graph("capture", "", captured.graph)
    yield _record("replacement", "", "", "python", captured.replacement, ())


def code_records(code: PartCode, part: str, target: str, lazy: bool) -> Iterator[StageRecord]:
    """Lowered, fused, kernels, host program and machine-side forms of one graph for one target."""
    for record in _unqualified_records(code, part, target, lazy):
        record.items = [_for_target(item, target) for item in record.items]
        yield record


def _unqualified_records(
    code: PartCode, part: str, target: str, lazy: bool
) -> Iterator[StageRecord]:
    yield _program("lower", code.lowered, part, target)
    yield _program("fuse", code.fused, part, target)
    yield _host(code.generated, target)
    for kernel in code.generated.kernels:
        name = f"{part}/{kernel.name}"
        yield _kernel(kernel, name, target)
        for artifact in code.built.artifacts(kernel.name, lazy=lazy):
            yield _artifact(artifact, name, target, len(kernel.line_origins))


def _for_target(item: Item, target: str) -> Item:
    """The item with `@target` behind its handles: one graph may be compiled for several targets."""
    origins = tuple(_at_target(h, target) for h in item.origins)
    return replace(item, handle=_at_target(item.handle, target), origins=origins)


def _at_target(item: Handle, target: str) -> Handle:
    return item if stage_of(item) in _SHARED else f"{item}@{target}"


def bytecode_record(captured: Captured) -> StageRecord:
    """Instructions in the order in which they were interpreted, inlined frames included."""
    lines, items = [], []
    for number, (name, instruction) in enumerate(captured.instructions.items(), start=1):
        argument = "" if instruction.arg is None else f" {instruction.arg!r:.60}"
        lines.append(f"{name.removeprefix('instr:'):>14}  {instruction.op}{argument}")
        origins = (instruction.span.handle,) if instruction.span else ()
        items.append(Item(name, instruction.op, origins, (number,)))
    return _record("bytecode", "", "", "bytecode", "\n".join(lines) + "\n", items)


def _record(
    name: str, part: str, target: str, language: str, text: str, items: Iterable[Item]
) -> StageRecord:
    return StageRecord(name, part, target, language, text, digest_of(text), list(items))


def _graph(stage: str, part: str, graph: fx.GraphModule) -> StageRecord:
    text, lines = print_graph(graph, stage)
    items = [
        _node_item(stage, node, lines[node.name])
        for node in graph.graph.nodes
        if node.op != "output"
    ]
    return _record(stage, part, "", "python", text, items)


def _node_item(stage: str, node: fx.Node, line: int) -> Item:
    value = node.meta.get("val")
    data = {
        "op": node.op,
        "target": target_text(node.target),
        "type": type_text(value),
        "bytes": _bytes(value),
        "phase": node.meta.get("phase", ""),
        "inputs": [handle(stage, n.name) for n in node.all_input_nodes],
    }
    origins: Origins = node.meta.get("origins", NOWHERE)
    return Item(handle(stage, node.name), node.name, tuple(sorted(origins)), (line,), data)


def _bytes(value: object) -> int | None:
    """Bytes of a tensor, None when a size is symbolic: unknown is never shown as zero."""
    if not isinstance(value, torch.Tensor) or any(isinstance(s, torch.SymInt) for s in value.shape):
        return None
    return value.numel() * value.element_size()


def _program(stage: str, value: Lowered | Fused, part: str, target: str) -> StageRecord:
    handles = statement_handles(value.program, stage, part)
    items = [
        Item(h, label, tuple(sorted(origins)), (line,))
        for h, (label, origins, line) in handles.items()
    ]
    return _record(stage, part, target, "ir", print_program(value.program), items)


def _host(generated: Generated, target: str) -> StageRecord:
    host = generated.host
    items = _lines(handle("host", generated.part), host.source, host.line_origins)
    return _record("host", generated.part, target, "python", host.source, items)


def _kernel(kernel: KernelSource, name: str, target: str) -> StageRecord:
    items = _lines(handle("kernels", name), kernel.source, kernel.line_origins)
    return _record("kernels", name, target, kernel.language, kernel.source, items)


def _lines(prefix: Handle, source: str, origins: Iterable[Origins]) -> Iterator[Item]:
    for number, (text, line_origins) in enumerate(zip(source.splitlines(), origins), start=1):
        if line_origins:
            yield Item(f"{prefix}:{number}", text.strip(), tuple(sorted(line_origins)), (number,))


def _artifact(artifact: Artifact, name: str, target: str, kernel_lines: int) -> StageRecord:
    texts = artifact.text.splitlines()
    items = [
        Item(
            handle(artifact.stage, name, line.number),
            texts[line.number - 1].strip(),
            tuple(handle("kernels", name, k) for k in line.kernel_lines if 0 < k <= kernel_lines),
            (line.number,),
        )
        for line in artifact.lines
        if line.is_instruction
    ]
    return _record(artifact.stage, name, target, artifact.stage, artifact.text, items)
