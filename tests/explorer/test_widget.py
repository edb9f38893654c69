"""The widget's state in Python, and exported notebooks that are live without a kernel or a network."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from browser import chromium, hits, page_of, source_line
from explored import handle_of, wave_report

import explorer

pytest.importorskip("anywidget", reason="anywidget is not installed")
nbformat = pytest.importorskip("nbformat")

NOTEBOOK = [
    "import torch\n%load_ext explorer\nx = torch.ones(8, 8)",
    "%%compile f(x)\ndef f(x):\n    a = torch.sin(x)\n    return a * 2",
    "report.selected = report.on_line(3)\nprint(len(report.lit))",
    "%%compile\ndef g(x):\n    return x.exp() - 1\ng(x)",
]


def fresh() -> explorer.Report:
    return explorer.Report(wave_report().recording, "wave")


def test_the_selection_is_one_in_python_and_in_the_widget() -> None:
    report = fresh()
    widget = report.widget()
    assert widget is report.widget()
    report.selected = {handle_of(report, "joint", "sin")}
    assert widget.selected == [handle_of(report, "joint", "sin")]
    message = {
        "method": "update",
        "state": {"selected": [handle_of(report, "joint", "cos")]},
        "buffer_paths": [],
    }
    widget._handle_msg({"content": {"data": message}, "buffers": []})
    assert report.selected == {handle_of(report, "joint", "cos")}
    report.selected = ()
    assert widget.selected == []


def test_the_payload_is_sent_once_as_gzipped_json() -> None:
    report = fresh()
    payload = json.loads(gzip.decompress(report.widget().payload))
    assert payload["title"] == "wave" and payload["handles"]
    assert len(report.widget().payload) < 150_000


def test_the_mimebundle_has_the_widget_and_both_twins() -> None:
    data, _ = fresh()._repr_mimebundle_()
    assert list(data) == ["text/plain", "application/vnd.jupyter.widget-view+json", "text/html"] or set(data) == {
        "text/plain", "text/html", "application/vnd.jupyter.widget-view+json"}  # fmt: skip
    assert "<details" in data["text/html"] and "<pre>" in data["text/html"]


def test_without_anywidget_the_twins_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.twin.find_spec", lambda name: None)
    assert set(fresh()._repr_mimebundle_()) == {"text/plain", "text/html"}


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """The notebook, run by a real kernel, widget state included."""
    nbclient = pytest.importorskip("nbclient")
    cells = [nbformat.v4.new_code_cell(text) for text in NOTEBOOK]
    notebook = nbformat.v4.new_notebook(cells=cells)
    folder = str(Path(__file__).resolve().parents[2])
    nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": folder}}
    ).execute()
    return notebook


def test_an_executed_notebook_keeps_state_and_nothing_but_reports(executed) -> None:
    kinds = [[o.output_type for o in cell.outputs] for cell in executed.cells]
    assert kinds == [[], ["execute_result"], ["stream"], ["execute_result"]]
    state = executed.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    ours = [m for m in state.values() if m["model_name"] == "AnyModel"]
    assert len(ours) == 2 and any(m["state"]["selected"] for m in ours)


def test_an_exported_notebook_is_live_offline(executed, tmp_path: Path) -> None:
    pytest.importorskip("nbconvert", reason="nbconvert is not installed")
    from nbconvert import HTMLExporter

    from explorer.nbexport import CutawayExporter, LivePanes

    html, _ = CutawayExporter().from_notebook_node(executed)
    (tmp_path / "notebook.html").write_text(html)
    assert html.count('id="cutaway-script"') == 1 and "widget-state" not in html
    with chromium() as browser, page_of(browser, width=1300) as page:
        page.goto((tmp_path / "notebook.html").as_uri())
        for n in (0, 1):
            page.wait_for_selector(f"#cutaway-{n}[data-ready]")
        assert "a = torch.sin(x)" in hits(page, "source")
        source_line(page, "x.exp()").click()
        assert "return x.exp() - 1" in hits(page, "source")
    stock = HTMLExporter()
    stock.register_preprocessor(LivePanes(), enabled=True)
    assert 'id="cutaway-1"' in stock.from_notebook_node(executed)[0]
