"""Provenance holds against edits: what an edit changed, the edited line had lit.

Fifty seeded edits, each of one operator in the source of an MLP training step. For each, both
programs are compiled for CPU and GPU, and every stage is compared. An item's *signature* is its
text with names and registers taken out. Where the two stages' counts of a signature differ by n,
at least n items with that signature must be lit by the edited line, in the version that has more.
"""

from __future__ import annotations

import ast
import importlib.util
import random
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

import compiler_core as cc
from compiler_core.ir.dtypes import DTYPES
from compiler_core.ir.ops import OPS, REDUCTIONS
from compiler_core.provenance import stage_of
from compiler_core.recording import Item, Version
from explorer.links import Links

SOURCE = """\
import torch
from torch.nn import functional as F


def step(x, target, gain, shift, w1, b1, w2, b2):
    mean = x.mean(-1, keepdim=True)
    centred = x - mean
    variance = (centred * centred).mean(-1, keepdim=True)
    scale = torch.rsqrt(variance + 0.00001)
    normal = centred * scale
    normed = normal * gain
    moved = normed + shift
    up = moved @ w1
    raised = up + b1
    hidden = F.gelu(raised)
    down = hidden @ w2
    logits = down + b2
    rows = torch.softmax(logits, -1)
    error = rows - target
    squares = error * error
    per_row = squares.sum(-1)
    loss = per_row.mean()
    return loss
"""

OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
CALLS = {
    "gelu": ("silu", "relu", "softplus", "elu", "leaky_relu", "hardtanh", "logsigmoid"),
    "rsqrt": ("exp", "sigmoid", "sqrt", "tanh"),
    "mean": ("sum", "amax"),
    "sum": ("mean", "amax"),
    "softmax": ("log_softmax",),
}
GPU = "cuda:90"
STAGES = ("capture", "joint", "forward", "backward", "lower", "fuse", "kernels", "ptx")


@dataclass(frozen=True)
class Edit:
    """One operator of one line replaced."""

    line: int
    text: str

    def apply(self) -> str:
        lines = SOURCE.splitlines()
        lines[self.line - 1] = self.text
        return "\n".join(lines) + "\n"


def possible_edits() -> Iterator[Edit]:
    """Every single-operator edit of the source: binary operators and the calls of CALLS."""
    lines = SOURCE.splitlines()
    for node in ast.walk(ast.parse(SOURCE)):
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            for other in set(OPERATORS) - {type(node.op)}:
                changed = ast.unparse(ast.BinOp(node.left, other(), node.right))
                yield _replaced(lines, node, changed)
        if isinstance(node, ast.Attribute) and node.attr in CALLS:
            for other in CALLS[node.attr]:
                yield _replaced(
                    lines, node, ast.unparse(ast.Attribute(node.value, other, node.ctx))
                )


def _replaced(lines: list[str], node: ast.expr, text: str) -> Edit:
    line = lines[node.lineno - 1]
    return Edit(node.lineno, line[: node.col_offset] + text + line[node.end_col_offset :])


def fifty_edits() -> list[Edit]:
    edits = sorted(set(possible_edits()), key=lambda e: (e.line, e.text))
    return random.Random(20261129).sample(edits, 50)


def compiled_version(source: str, path: Path) -> Version:
    """Compile the source's `step`, forward and backward, for CPU and GPU; its record."""
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("edited", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.manual_seed(0)
    shapes = [(8, 32), (8, 32), (32,), (32,), (32, 48), (48,), (48, 32), (32,)]
    inputs = [torch.randn(s, requires_grad=k >= 2) for k, s in enumerate(shapes)]
    before = cc.stats()
    with cc.record() as recorder:
        loss = cc.compile(module.step, options={"strict": True, "also": (GPU,)})(*inputs)
        loss.backward()
    after = cc.stats()
    assert after.graphs == before.graphs + 1 and after.fallbacks == before.fallbacks
    (frame,) = recorder.recording.frames
    (version,) = frame.versions
    return version


WORDS = {
    *OPS,
    *REDUCTIONS,
    *DTYPES,
    *"nest for over load store const index yield if in call".split(),
}
NAME = re.compile(r"[A-Za-z_$%][\w$.%]*(\()?")


# How an address is formed (one multiply-add, or a shift and an add) is LLVM's choice among equals.
ADDRESS = ("mad.wide", "mul.wide", "shl.b64", "add.s64", "cvt.s64", "cvt.u64", "mad.lo.s64")


def _word(found: re.Match[str]) -> str:
    """A word of the loop IR stays; a name, which an edit may renumber, does not."""
    return found[0] if found[0].rstrip("(") in WORDS else "_"


def _called(found: re.Match[str]) -> str:
    """A called function stays; other names do not."""
    return found[0] if found[1] and found[1] != "_(" else "_"


def signature(item: Item) -> str:
    """What an item says, without the names and numbers that another item's presence may shift."""
    stage = stage_of(item.handle)
    if stage in ("capture", "joint", "forward", "backward"):
        is_input = item.data["op"] == "placeholder"
        return item.data["type"] if is_input else f"{item.data['target']} {item.data['type']}"
    if stage == "ptx":
        opcode = item.label.split()[item.label.startswith("@")]
        return "address" if opcode.startswith(ADDRESS) else opcode
    if stage == "kernels":
        is_header = item.label.startswith(("def ", "void "))
        return "header" if is_header else _sorted_sums(NAME.sub(_called, item.label))
    return _sorted_sums(NAME.sub(_word, re.sub(r"^nest \w+", "nest", item.label)))


def _sorted_sums(text: str) -> str:
    """Sums in an index in one order: the printed order follows the names."""
    return re.sub(r"\[([^\]]*)\]", lambda m: f"[{' + '.join(sorted(m[1].split(' + ')))}]", text)


def by_signature(version: Version) -> dict[tuple[str, str], list[str]]:
    """(stage and language, signature) → handles."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for record in version.stages:
        if record.name in STAGES:
            for item in record.items:
                found[f"{record.name} {record.target}", signature(item)].append(item.handle)
    return found


def unlit_changes(one: Version, other: Version, file: str, line: int) -> list[str]:
    """Signatures of which `one` has more than `other`, and too few of them lit by the line."""
    links = Links(one.stages)
    lit = links.lit(*links.on_line(file, line))
    mine, theirs = by_signature(one), by_signature(other)
    missing = []
    for key, handles in mine.items():
        excess = len(handles) - len(theirs.get(key, ()))
        if excess > sum(h in lit for h in handles):
            missing.append(f"{key[0]}: {key[1]}")
    return missing


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> tuple[Version, Path]:
    path = tmp_path_factory.mktemp("edits") / "edited.py"
    return compiled_version(SOURCE, path), path


@pytest.mark.parametrize("number", range(50))
def test_what_an_edit_changed_was_lit_by_the_edited_line(
    number: int, base: tuple[Version, Path]
) -> None:
    edit = fifty_edits()[number]
    before, path = base
    after = compiled_version(edit.apply(), path)
    changed = Counter({k: len(v) for k, v in by_signature(before).items()})
    changed.subtract({k: len(v) for k, v in by_signature(after).items()})
    stages = {key[0] for key, count in changed.items() if count}
    assert {"capture ", "joint ", "kernels cpu", f"kernels {GPU}"} <= stages, "it changed nothing"
    unlit = unlit_changes(before, after, str(path), edit.line) + unlit_changes(
        after, before, str(path), edit.line
    )
    assert not unlit, "\n".join([edit.text.strip(), *unlit])


def test_instructions_have_few_source_lines(base: tuple[Version, Path]) -> None:
    version, _ = base
    links = Links(version.stages)
    instructions = [h for h in links.origins if stage_of(h) == "ptx"]
    counts = [len(links.source_lines(h)) for h in instructions]
    assert len(instructions) > 200
    assert statistics.median(counts) <= 3
    assert sum(c > 0 for c in counts) >= 0.8 * len(counts)


def test_every_item_resolves_to_a_source_line(base: tuple[Version, Path]) -> None:
    version, _ = base
    links = Links(version.stages)
    for stage in ("capture", "joint", "forward", "backward", "lower", "fuse", "kernels"):
        items = [h for h in links.origins if stage_of(h) == stage]
        resolved = [h for h in items if links.lit_sources(h)]
        assert len(resolved) >= 0.95 * len(items), (stage, sorted(set(items) - set(resolved))[:10])
