"""The state of one fusion: groups of nests, calls, and who reads and writes what.

In: a lowered program. Out: a graph that merges update. The one mutable value of this stage; the rules
(legality, benefit, merge) only read it. Reachability is kept as one bit set per node, so "is there
another way from P to C" is a look at P's successors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from compiler_core.fuse.accesses import read_buffers, written_buffers
from compiler_core.fuse.blocks import size
from compiler_core.fuse.fresh import Names
from compiler_core.fuse.linear import estimate, product
from compiler_core.fuse.viewed import viewed_buffers
from compiler_core.ir.index import Index
from compiler_core.ir.loop import Buffer, Call, Nest, Program
from compiler_core.options import Context, Target
from compiler_core.provenance import Handle

__all__ = ["Group", "Workspace"]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """A nest that may become a kernel. `members` are the lowered nests in it, by name."""

    number: int
    nest: Nest
    members: tuple[str, ...]
    position: int  # of its first member in the lowered program
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    size: int  # statements


@dataclass(slots=True)
class Workspace:
    """See the module. `nodes` maps numbers to groups and calls; a merge takes a new number."""

    program: Program
    part: str
    target: Target
    context: Context
    names: Names
    forbid: frozenset[frozenset[str]] = frozenset()
    nodes: dict[int, Group | Call] = field(default_factory=dict)
    writer: dict[str, int] = field(default_factory=dict)
    readers: dict[str, set[int]] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()  # buffers that must be materialised whoever reads them
    fixed: frozenset[str] = frozenset()  # buffers written more than once, or read by their writer
    maker: dict[str, str] = field(default_factory=dict)  # buffer → the lowered nest that stores it
    takers: dict[str, tuple[str, ...]] = field(default_factory=dict)  # buffer → nests that load it
    below: dict[int, int] = field(default_factory=dict)  # bit set of the nodes that come after
    following: dict[int, frozenset[int]] = field(default_factory=dict)  # order between fixed nodes
    places: dict[str, int] = field(default_factory=dict)  # nest or call → its place in the program
    halved: set[Handle] = field(default_factory=set)  # reductions that were split
    next_number: int = 0
    _sizes: dict[str, Index] = field(default_factory=dict)

    def group(self, number: int) -> Group:
        node = self.nodes[number]
        assert isinstance(node, Group), "only nests are merged"
        return node

    def groups(self) -> list[Group]:
        """All groups, in the order of their first members."""
        return sorted(
            (n for n in self.nodes.values() if isinstance(n, Group)),
            key=lambda group: (group.position, group.number),
        )

    def buffer(self, name: str) -> Buffer:
        return self.program.buffers[name]

    def bytes(self, name: str) -> int:
        """The bytes of a buffer's elements, with a stand-in for symbolic sizes."""
        return estimate(self.size_of(name))

    def size_of(self, name: str) -> Index:
        """The bytes of a buffer's elements."""
        size = self._sizes.get(name)
        if size is None:
            buffer = self.buffer(name)
            size = self._sizes[name] = product(buffer.shape) * buffer.dtype.bytes
        return size

    def is_kept(self, buffer: str, without: Iterable[int]) -> bool:
        """Whether a store to the buffer is needed when the nodes `without` need it no more."""
        return buffer in self.kept or bool(self.readers.get(buffer, set()).difference(without))

    def successors(self, number: int) -> set[int]:
        """Nodes that must come after a node: the readers of what it writes, and `following`."""
        node = self.nodes[number]
        writes = node.writes if isinstance(node, Group) else [b for b in node.outputs if b]
        once = [buffer for buffer in writes if buffer not in self.fixed]
        after = set().union(*(self.readers.get(buffer, ()) for buffer in once))
        return (after | self.following.get(number, frozenset())) - {number}

    def reaches(self, start: int, goal: int) -> bool:
        return bool(self.below[start] >> goal & 1)

    def add(self, nest: Nest, members: tuple[str, ...], position: int) -> Group:
        """A new group; its accesses become the graph's."""
        number = self.next_number
        self.next_number += 1
        group = Group(
            number, nest, members, position, read_buffers(nest), written_buffers(nest), size(nest)
        )
        self.nodes[number] = group
        self.writer.update(dict.fromkeys(group.writes, number))
        for buffer in group.reads:
            self.readers.setdefault(buffer, set()).add(number)
        return group

    def add_call(self, call: Call) -> int:
        number = self.next_number
        self.next_number += 1
        self.nodes[number] = call
        self.writer.update(dict.fromkeys([b for b in call.outputs if b], number))
        for buffer in viewed_buffers((call.args, call.kwargs)):
            self.readers.setdefault(buffer, set()).add(number)
        return number

    def remove(self, group: Group) -> None:
        """Forget a group and what it read."""
        del self.nodes[group.number]
        self._reorder(group.number, self.following.pop(group.number, frozenset()))
        for buffer in group.reads:
            self.readers[buffer].discard(group.number)

    def _reorder(self, number: int, instead: frozenset[int]) -> None:
        """What ran before a node runs before others instead."""
        for first, after in list(self.following.items()):
            if number in after:
                self.following[first] = (after - {number}) | instead

    def replace_pair(self, a: Group, b: Group, nest: Nest) -> Group:
        """One group in place of two. Nodes above either are now above it."""
        later = self.following.pop(a.number, frozenset()) | self.following.pop(
            b.number, frozenset()
        )
        new = self.next_number
        self._reorder(a.number, frozenset({new}))
        self._reorder(b.number, frozenset({new}))
        if later - {a.number, b.number}:
            self.following[new] = later - {a.number, b.number}
        self.remove(a)
        self.remove(b)
        members = tuple(dict.fromkeys(a.members + b.members))
        group = self.add(nest, members, min(a.position, b.position))
        ends = 1 << a.number | 1 << b.number
        after = (self.below.pop(a.number) | self.below.pop(b.number)) & ~ends
        self.below[group.number] = after
        reached = after | 1 << group.number
        for number, bits in self.below.items():
            if bits & ends:
                self.below[number] = bits | reached
        return group

    def replace_nest(self, group: Group, nest: Nest, members: tuple[str, ...]) -> Group:
        """The same group with another body that depends on no node it did not come after."""
        for buffer in group.reads:
            self.readers[buffer].discard(group.number)
        changed = replace(
            group, nest=nest, members=members, reads=read_buffers(nest), size=size(nest)
        )
        self.nodes[group.number] = changed
        for buffer in changed.reads:
            self.readers.setdefault(buffer, set()).add(group.number)
        return changed

    def find_reachability(self) -> None:
        """Fill `below` from the nodes, which are in program order at this point."""
        for number in sorted(self.nodes, reverse=True):
            bits = 0
            for after in self.successors(number):
                bits |= 1 << after | self.below[after]
            self.below[number] = bits
