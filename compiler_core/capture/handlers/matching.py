"""match statements over sequences, mappings and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compiler_core.capture.breaks import OPCODE, Break
from compiler_core.capture.frame import SymbolicFrame
from compiler_core.capture.handlers.table import handles
from compiler_core.capture.iteration import items_of
from compiler_core.capture.keys import as_key
from compiler_core.capture.values.constant import NONE, Constant
from compiler_core.capture.values.containers import DictValue, TupleValue
from compiler_core.stages import Instruction


@handles("MATCH_MAPPING")
def match_mapping(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(Constant(issubclass(frame.top().python_type(), Mapping)))


@handles("MATCH_SEQUENCE")
def match_sequence(frame: SymbolicFrame, i: Instruction) -> None:
    cls = frame.top().python_type()
    is_sequence = issubclass(cls, Sequence) and not issubclass(cls, (str, bytes, bytearray))
    frame.push(Constant(is_sequence))


@handles("MATCH_KEYS")
def match_keys(frame: SymbolicFrame, i: Instruction) -> None:
    keys, subject = items_of(frame.trace, frame.top()), frame.top(2)
    if not isinstance(subject, DictValue):
        raise Break(OPCODE, "a mapping pattern on something that is not a dict")
    subject.look()
    found = [subject.items.get(as_key(frame.trace.look(key))) for key in keys]
    values = TupleValue(tuple(pair[1] for pair in found if pair is not None))
    frame.push(values if len(values.items) == len(keys) else NONE)


@handles("MATCH_CLASS")
def match_class(frame: SymbolicFrame, i: Instruction) -> None:
    """Subject, class, keyword names → tuple of attributes, or None."""
    from compiler_core.capture.attributes import get_attribute
    from compiler_core.capture.instances import is_instance

    subject, cls, names = frame.pop_n(3)
    if not is_instance(frame.trace, subject, cls):
        return frame.push(NONE)
    wanted = [as_key(name) for name in items_of(frame.trace, names)]
    if i.arg:
        declared = items_of(frame.trace, get_attribute(frame.trace, cls, "__match_args__"))
        wanted = [as_key(name) for name in declared[: i.arg]] + wanted
    values = tuple(get_attribute(frame.trace, subject, str(name)) for name in wanted)
    frame.push(TupleValue(values))
