"""The walks of the provenance DAG: both ways, and never a zig-zag."""

from __future__ import annotations

from compiler_core.provenance import Span
from compiler_core.recording import Item, StageRecord
from explorer.links import Links

SIN, ADD = Span("f.py", 2, 2, 8, 14), Span("f.py", 3, 4, 4, 20)


def record(stage: str, **items: tuple[str, ...]) -> StageRecord:
    found = [Item(f"{stage}:{name}", name, origins) for name, origins in items.items()]
    return StageRecord(stage, "", "", "python", "", "", found)


def links() -> Links:
    return Links(
        [
            record("capture", sin=(SIN.handle,), add=(ADD.handle,)),
            record(
                "joint",
                sin=("capture:sin",),
                add=("capture:add",),
                mul=("capture:sin", "capture:add"),
            ),
            record("kernels", k1=("joint:sin",), k2=("joint:add", "joint:mul")),
        ]
    )


def test_a_line_lights_what_it_became() -> None:
    became = links().became(SIN.handle)
    assert became == {"capture:sin", "joint:sin", "joint:mul", "kernels:k1", "kernels:k2"}


def test_a_kernel_line_lights_what_it_came_from_and_nothing_beside() -> None:
    lit = links().lit("kernels:k1")
    assert lit == {"kernels:k1", "joint:sin", "capture:sin", SIN.handle}


def test_a_merged_item_has_all_its_source_lines() -> None:
    assert links().source_lines("kernels:k2") == {("f.py", 2), ("f.py", 3), ("f.py", 4)}


def test_spans_are_found_by_any_line_they_touch() -> None:
    assert links().on_line("f.py", 4) == {ADD.handle}
    assert links().on_line("f.py", 1) == frozenset()
    assert links().on_line("other.py", 2) == frozenset()


def test_span_handles_read_back() -> None:
    span = Span("/a:b/c d.py".replace(" ", "_"), 10, 12, 0, 7)
    assert Span.parse(span.handle) == span
