"""Notebooks to HTML with live panes, offline: the state of our widgets becomes a part of the page.

In: an executed notebook with widget state. Out: the same, in which each of our widgets is an HTML output
with the script, the style and its payload inline. The stock exporter would load widgets from a CDN and
shows nothing without one.

    jupyter nbconvert --to cutaway notebook.ipynb
    jupyter nbconvert --to html --HTMLExporter.preprocessors=explorer.nbexport.LivePanes notebook.ipynb
"""

from __future__ import annotations

import json
from typing import Any

from nbconvert.exporters import HTMLExporter
from nbconvert.preprocessors import Preprocessor

from explorer.assets import script, style

__all__ = ["CutawayExporter", "LivePanes"]

_VIEW = "application/vnd.jupyter.widget-view+json"
_STATE = "application/vnd.jupyter.widget-state+json"

# The script goes into the page once, as text that is made into a module for every widget.
_ASSETS = """<style>{css}</style>
<script type="text/plain" id="cutaway-script">{js}</script>"""
_WIDGET = """<div class="ct-widget" id="cutaway-{n}"></div>
<script type="text/plain" id="cutaway-payload-{n}">{payload}</script>
<script type="module">
globalThis.cutawayModule ??= import(URL.createObjectURL(new Blob([document.getElementById("cutaway-script").textContent], {{ type: "text/javascript" }})));
const {{ mountView, unpack }} = await globalThis.cutawayModule;
const box = document.getElementById("cutaway-{n}");
mountView(box, await unpack(document.getElementById("cutaway-payload-{n}").textContent)).selectHandles({selected});
box.dataset.ready = "1";
</script>"""


class LivePanes(Preprocessor):
    """Replaces our widgets by HTML that needs neither a kernel nor a network."""

    def preprocess(self, notebook: Any, resources: Any) -> tuple[Any, Any]:
        state = notebook.metadata.get("widgets", {}).get(_STATE, {}).get("state", {})
        outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
        number = 0
        for output in outputs:
            model = state.get(output.get("data", {}).get(_VIEW, {}).get("model_id"))
            payload = _payload(model) if model else None
            if payload is None:
                continue
            html = _widget(number, payload, model["state"].get("selected", []))
            output["data"] = {"text/html": html if number else _assets() + html}
            number += 1
        if number:
            _drop_ours(notebook, state)
        return notebook, resources


class CutawayExporter(HTMLExporter):
    """`jupyter nbconvert --to cutaway`: HTML with live panes, that loads nothing."""

    export_from_notebook = "HTML with live Cutaway panes"

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]
        self.register_preprocessor(LivePanes(parent=self), enabled=True)  # type: ignore[no-untyped-call]
        self.require_js_url = self.jquery_url = self.mathjax_url = self.mermaid_js_url = ""


def _payload(model: Any) -> str | None:
    """The gzipped payload of one of our widgets, as base64 text; None for another widget."""
    if not str(model["state"].get("_anywidget_id", "")).endswith("LinkedWidget"):
        return None
    return next((b["data"] for b in model.get("buffers", []) if b["path"] == ["payload"]), None)


def _assets() -> str:
    return _ASSETS.format(css=style(), js=script().replace("</script", "<\\/script"))


def _widget(number: int, payload: str, selected: list[str]) -> str:
    handles = json.dumps(selected).replace("<", "\\u003c")
    return _WIDGET.format(n=number, payload=payload.strip(), selected=handles)


def _drop_ours(notebook: Any, state: Any) -> None:
    """Without our models; and without any widget state where no other widget is left to need it."""
    for key in [key for key, model in state.items() if model and _payload(model) is not None]:
        del state[key]
    if all(m["model_name"] in ("LayoutModel", "DOMWidgetModel") for m in state.values()):
        notebook.metadata.pop("widgets", None)
