"""A `Report`: everything that one compile left behind, as values that print, link and can be shown.

In: a recording, and the live stage values where the compile was of this process. Out: sections, tables,
links, a selection; a widget, a page, a file. Reading a saved report needs neither torch nor Jupyter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler_core.errors import BAD_VALUE, OptionError, closest
from compiler_core.provenance import Handle
from compiler_core.recording import Recording, Version, write_atomically
from explorer.html import report_html
from explorer.joined import Shown, joined, versions_of
from explorer.links import Links
from explorer.sections import Kernel, Kernels, Rows, Section, headed
from explorer.session import open_recording
from explorer.tables import breaks_table, guards_table, timings_table
from explorer.views.facts import summary
from explorer.views.ledger import ledger_lines
from explorer.views.linked import STAGES

if TYPE_CHECKING:
    from explorer.widgets.linked import LinkedWidget

__all__ = ["Report", "open_report"]


def open_report(path: str | Path) -> Report:
    """A report from a saved recording, text only. Raises RecordingError, or OSError."""
    return Report(open_recording(path), Path(path).name.partition(".")[0])


class Report:
    """One exploration. `print(report)` tells what happened; a notebook shows the linked panes.

    Stages (`bytecode`, `capture`, `joint`, `forward`, `backward`, `lower`, `fuse`, `host`) are texts;
    of several graphs, all of them one below the other. `result` is what the explored call returned.
    """

    def __init__(
        self,
        recording: Recording,
        name: str = "",
        live: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Sequence[Any]] | None = None,
        result: Any = None,
        show: Sequence[str] = (),
    ):
        self.recording = recording
        self.name = name or next((f.name for f, _ in versions_of(recording)), "nothing")
        self.result = result
        self.show = tuple(show)
        self.compilations = dict(live or {})
        self._inputs = dict(inputs or {})
        self._selected: frozenset[Handle] = frozenset()
        self._widget: LinkedWidget | None = None

    # ------------------------------------------------------------------ stages

    @property
    def versions(self) -> tuple[Version, ...]:
        return tuple(v for _, v in versions_of(self.recording))

    @property
    def code(self) -> Any:
        """The live `Compilation` of the first graph. Raises ValueError in a report from a file."""
        if not self.compilations:
            raise ValueError("there are no live stage values: the report was read from a file, "
                             "or nothing was compiled by the cutaway backend")  # fmt: skip
        return next(iter(self.compilations.values()))

    @property
    def inputs(self) -> list[Any]:
        """What the first graph was called with, parameters included: `report.capture.run(*report.inputs)`."""
        self.code  # noqa: B018  raises in a report from a file
        return list(next(iter(self._inputs.values()), ()))

    @property
    def source(self) -> Section:
        """The program, with what was made of each line."""
        rows = [
            (f"{Path(file).name}:{n}", *line.cells(), line.text)
            for (file, n), line in self._ledger.items()
        ]
        columns = ("line", "graphs", "breaks", "guards", "kernels", "source")
        return Section(str(Rows(columns, rows, "no source: nothing was compiled")))

    def __getattr__(self, stage: str) -> Section:
        if stage not in STAGES:
            raise AttributeError(f"a report has no {stage!r}{closest(stage, STAGES)}")
        return self.stage(stage)

    def stage(self, name: str, target: str = "") -> Section:
        """The text of a stage, for the target that is called if none is named. OptionError for no stage's name."""
        if name not in STAGES:
            raise OptionError(BAD_VALUE, f"a report has no stage {name!r}{closest(name, STAGES)}")
        found = [s for s in self._shown if s.record.name == name]
        target = target or next((s.record.target for s in found), "")
        found = [s for s in found if s.record.target == target]
        text = "\n".join(headed(s, len(found) > 1) for s in found)
        return Section(text or f"no {name} stage was recorded\n", self._live(name, target))

    def _live(self, name: str, target: str) -> Any:
        if not self.compilations:
            return None
        values = {
            "capture": self.code.captured,
            "joint": self.code.joint,
            "forward": self.code.partitioned,
        }
        if name in ("lower", "fuse"):
            part = self.code.part("forward", target)
            return part.lowered if name == "lower" else part.fused
        return values.get(name)

    @cached_property
    def kernels(self) -> Kernels:
        """Kernels by name, each in all its forms."""
        groups: dict[str, list[Shown]] = {}
        for s in self._shown:
            if s.record.part.count("/"):
                prefix = f"{s.version}|" if len(self.versions) > 1 else ""
                groups.setdefault(prefix + s.record.part, []).append(s)
        return Kernels([
            Kernel(name, tuple(s.record for s in group), self._built(group[0]))
            for name, group in groups.items()
        ])  # fmt: skip

    def _built(self, shown: Shown) -> dict[str, Any]:
        code = self.compilations.get(shown.version)
        part = shown.record.part.partition("/")[0]
        return {t: parts[part].built for t, parts in code.targets.items()} if code else {}

    # ------------------------------------------------------------------ tables

    @property
    def guards(self) -> Rows:
        """What must hold for a version to be used again, and why."""
        return guards_table(self.recording)

    @property
    def breaks(self) -> Rows:
        return breaks_table(self.recording)

    @property
    def timings(self) -> Rows:
        return timings_table(self.recording)

    def check(self) -> Rows:
        """Run every stage on the kept inputs and compare it with float64. Raises ValueError for a file."""
        from compiler_core.devtools.compare_stages import check_stages

        rows = [
            (name, c.name, c.part, c.target, f"{c.max_error:.1e}", f"{c.tolerance:.1e}", "ok" if c.ok else "WRONG")
            for name, code in (self.compilations or {"": self.code}).items()
            if name in self._inputs
            for c in check_stages(code, self._inputs[name])
        ]  # fmt: skip
        columns = ("version", "stage", "part", "target", "max error", "allowed", "")
        return Rows(columns, rows, "no graph ran: nothing to check")

    # ------------------------------------------------------------------ links and the selection

    @cached_property
    def links(self) -> Links:
        return Links(s.record for s in self._shown)

    def on_line(self, line: int) -> frozenset[Handle]:
        """The source spans on a line of the first function's file: `report.selected = report.on_line(3)`."""
        files = [f.file for f, _ in versions_of(self.recording)]
        return self.links.on_line(files[0], line) if files else frozenset()

    @property
    def selected(self) -> frozenset[Handle]:
        """The selected handles, in step with the shown panes. Setting unknown ones raises KeyError."""
        return self._selected

    @selected.setter
    def selected(self, handles: Iterable[Handle] | Handle) -> None:
        chosen = frozenset([handles] if isinstance(handles, str) else handles)
        if unknown := sorted(chosen - self.links.origins.keys()):
            raise KeyError(f"no such item: {', '.join(unknown[:3])}")
        self._selected = chosen
        if self._widget is not None:
            self._widget.selected = sorted(chosen)

    @property
    def lit(self) -> frozenset[Handle]:
        """The selection, all that it came from and all that it became."""
        return self.links.lit(*self._selected)

    # ------------------------------------------------------------------ shown and saved

    def widget(self) -> LinkedWidget:
        """The linked panes as a notebook widget, one for this report. Needs anywidget."""
        if self._widget is None:
            from explorer.widgets.linked import LinkedWidget

            self._widget = LinkedWidget.of(self)
            self._widget.observe(self._follow, "selected")
        return self._widget

    def _follow(self, change: Any) -> None:
        self._selected = frozenset(change["new"])

    def save(self, path: str | Path) -> Path:
        """Write `x.html`, a page that needs nothing, or `x.cutaway.gz`, a recording for `explorer.open`."""
        path = Path(path)
        if path.suffix == ".html":
            write_atomically(path, report_html([(self.name, self.recording)], self.show).encode())
        elif path.suffix == ".gz":
            self.recording.save(path)
        else:
            raise OptionError(BAD_VALUE, f"{path.name!r} ends neither in .html nor in .cutaway.gz")
        return path

    def summary(self) -> str:
        """Counts of graphs, breaks, guards, kernels, fallbacks."""
        return summary(self.recording, self._shown)

    def __str__(self) -> str:
        from explorer.twin import text_twin

        return text_twin(self)

    def __repr__(self) -> str:
        return f"<Report {self.name}: {self.summary()}>"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        from explorer.twin import mimebundle

        return mimebundle(self, **kwargs)

    @cached_property
    def _shown(self) -> list[Shown]:
        return joined(self.recording)

    @cached_property
    def _ledger(self) -> dict[Any, Any]:
        return ledger_lines(self.recording, self._shown, self.links)
