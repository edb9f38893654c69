"""The linked panes as a widget: the same script as in a page, a payload sent once, a selection in step.

In: a report. Out: an anywidget. The payload is gzipped JSON in one binary trait, so that a notebook
that keeps widget state shows the panes again without a kernel.
"""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from explorer.assets import packed, script, style
from explorer.views.linked import linked_payload

__all__ = ["LinkedWidget"]


class LinkedWidget(anywidget.AnyWidget):
    """`selected`: handles, sorted; set from either side. `payload`: what `linked_payload` made."""

    _esm = script()
    _css = style()
    payload = traitlets.Bytes().tag(sync=True)
    selected = traitlets.List(traitlets.Unicode()).tag(sync=True)

    @classmethod
    def of(cls, report: Any) -> LinkedWidget:
        """The widget of a report, with the report's selection."""
        payload = linked_payload(report.recording, report.name, report.show)
        return cls(payload=packed(payload), selected=sorted(report.selected))
