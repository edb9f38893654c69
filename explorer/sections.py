"""What a report's attributes are: texts, tables and kernels that print as one would read them.

In: strings and rows. Out: values whose `str` and `repr` are the text, and which a notebook shows as a
`<pre>` or a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from compiler_core.recording import StageRecord
from explorer.columns import aligned
from explorer.joined import Shown

__all__ = ["Kernel", "Kernels", "Rows", "Section", "headed"]


class Section(str):
    """The text of a stage. `value` is the live stage value, None in a report that was read from a file."""

    value: Any

    def __new__(cls, text: str, value: Any = None) -> Section:
        self = super().__new__(cls, text)
        self.value = value
        return self

    def run(self, *inputs: Any) -> Any:
        """Run the stage on a graph's inputs, flat: `joint` takes tangents behind them, `backward` belongs to
        `Partitioned.run` (both say what they take). Raises ValueError where there is no live value."""
        if self.value is None:
            raise ValueError("this stage is text only: it was read from a file, or does not run")
        return self.value.run(*inputs)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"


def headed(shown: Shown, many: bool) -> str:
    """A record's text, under a heading where there are several."""
    record = shown.record
    words = " · ".join(w for w in (shown.version, record.part, record.target) if w)
    return f"# {words}\n{record.text}" if many else record.text


class Rows(Sequence[tuple[str, ...]]):
    """A table of text: an immutable sequence of rows that prints with aligned columns.

    folds: rows that are printed as one, as (how many from the next row on, what the one row says).
    """

    def __init__(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        empty: str = "none",
        folds: Mapping[int, tuple[int, Sequence[str]]] | None = None,
    ):
        self.columns = tuple(columns)
        self._rows = [tuple(map(str, row)) for row in rows]
        self._empty = empty
        self._folds = dict(folds or {})

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        """A row, or the table of a slice."""
        if isinstance(index, slice):
            return Rows(self.columns, self._rows[index], self._empty)
        return self._rows[index]

    def __str__(self) -> str:
        shown = [row for row, _ in self._shown()]
        return aligned(self.columns, shown) if shown else self._empty

    __repr__ = __str__

    def _shown(self) -> Iterator[tuple[Sequence[str], list[tuple[str, ...]]]]:
        """What is printed: a row, and those that it stands for."""
        at = 0
        while at < len(self._rows):
            count, row = self._folds.get(at, (1, self._rows[at]))
            yield row, self._rows[at : at + count] if at in self._folds else []
            at += count

    def _repr_html_(self) -> str:
        if not self._rows:
            return f"<p>{escape(self._empty)}</p>"
        left = ' style="text-align: left"'
        head = "".join(f"<th{left}>{escape(c)}</th>" for c in self.columns)
        body = "".join(_html_row(row, folded, left) for row, folded in self._shown())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _html_row(row: Sequence[str], folded: Sequence[Sequence[str]], left: str) -> str:
    """A row; one that stands for several opens."""
    cells = [escape(c) for c in row]
    if folded:
        items = "".join(f"<li>{escape(' · '.join(filter(None, f[1:])))}</li>" for f in folded)
        cells[1] = f"<details><summary>{cells[1]}</summary><ul>{items}</ul></details>"
    return "<tr>" + "".join(f"<td{left}>{c}</td>" for c in cells) + "</tr>"


_FORMS = ("ttir", "ttgir", "llir", "ptx", "sass", "asm")


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel in every language and form that it was made in: `.cpp`, `.triton`, `.ttir` … `.asm`.

    records: its stage records, of all targets. live: its built parts, by target; empty for a file.
    """

    name: str
    records: tuple[StageRecord, ...]
    live: Mapping[str, Any]

    @property
    def source(self) -> Section:
        """The source for the target that is called."""
        return Section(next(r.text for r in self.records if r.name == "kernels"))

    def __getattr__(self, form: str) -> Section:
        if form.startswith("_"):
            raise AttributeError(form)
        for record in self.records:
            if form in (record.name, record.language):
                return Section(record.text)
        for target, built in self.live.items() if form in _FORMS else ():
            for artifact in built.artifacts(self.name.rpartition("/")[2], lazy=True):
                if artifact.stage == form:
                    return Section(artifact.text)
            del target
        have = ", ".join(dict.fromkeys(r.language for r in self.records))
        raise AttributeError(f"kernel {self.name} has no {form!r}; it has: {have}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(r.language for r in self.records)})

    def __str__(self) -> str:
        sources = [r for r in self.records if r.name == "kernels"]
        return "\n".join(f"# {self.name} · {r.target} · {r.language}\n{r.text}" for r in sources)

    __repr__ = __str__


class Kernels(Mapping[str, Kernel]):
    """Kernels by name: `add_0`, or with part and version where that is not enough (`backward/add_0`)."""

    def __init__(self, kernels: Sequence[Kernel]):
        self._kernels = {k.name: k for k in kernels}

    def __getitem__(self, name: str) -> Kernel:
        if name in self._kernels:
            return self._kernels[name]
        found = [k for full, k in self._kernels.items() if full.endswith(f"/{name}")]
        if len(found) == 1:
            return found[0]
        what = f"{name!r} is ambiguous" if found else f"no kernel {name!r}"
        names = ", ".join(k.name for k in found) or ", ".join(self._kernels) or "none"
        raise KeyError(f"{what}; there are: {names}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __str__(self) -> str:
        return "\n".join(map(str, self._kernels.values())) or "no kernel"

    __repr__ = __str__
