"""Payloads: pure functions of a recording. What they say is checked against the recording itself."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from explored import break_report, mlp_report, wave_report

import explorer.highlight
from explorer.assets import packed, script, style
from explorer.highlight import COLOURED, highlight_lines
from explorer.joined import joined, stage_name, versions_of
from explorer.views.graph import kind_of
from explorer.views.linked import linked_payload


def test_the_ledger_counts_graphs_breaks_guards_and_kernels_of_each_line() -> None:
    lines = {line.text.strip(): line.cells() for line in break_report()._ledger.values()}
    assert lines["y = torch.relu(x) * 2"][0] == "1"
    assert lines['print("mean seen")'][:2] == ["", "1"]
    assert lines["if y.mean() > 0.5:"][:2] == ["2", "1"]
    assert lines["return y - 1"][0] == "3" and lines["return y + 1"][0] == ""
    assert [
        lines[t][3] for t in ("y = torch.relu(x) * 2", 'print("mean seen")', "return y - 1")
    ] == ["1", "", "1"]


def test_guards_of_the_ledger_are_the_guards_of_the_recording() -> None:
    report = break_report()
    assert sum(line.guards for line in report._ledger.values()) == len(report.guards)


def test_ledger_rows_select_the_spans_of_their_line() -> None:
    report = wave_report()
    payload = linked_payload(report.recording)
    ledger = payload["panes"][0]
    row = next(
        n for n, line in ledger["places"].items() if n.endswith(f":{line_of(report, 'torch.sin')}")
    )
    handles = {payload["handles"][i] for i in ledger["items"][str(ledger["places"][row])]}
    assert handles and all(stage_name(h) == "src" for h in handles)
    assert handles == report.on_line(line_of(report, "torch.sin"))


def line_of(report, text: str) -> int:
    return next(n for (_, n), line in report._ledger.items() if text in line.text)


def test_links_by_number_are_the_links_by_handle() -> None:
    report = wave_report()
    payload = linked_payload(report.recording)
    handles = payload["handles"]
    for number, origins in enumerate(payload["links"]):
        known = {h for h in report.links.origins[handles[number]] if h in report.links.origins}
        assert {handles[o] for o in origins} == known


def test_handles_are_unique_among_versions_and_source_is_shared() -> None:
    shown = joined(break_report().recording)
    by_version: dict[str, set[str]] = {}
    for s in shown:
        by_version.setdefault(s.version, set()).update(i.handle for i in s.record.items)
    first, *others = by_version.values()
    for handles in others:
        assert {stage_name(h) for h in first & handles} <= {"src"}
    assert len(by_version) == len(versions_of(break_report().recording)) > 1


def test_pictures_hold_every_node_once_or_as_copies_and_every_edge() -> None:
    report = mlp_report()
    payload = linked_payload(report.recording)
    for stage in ("capture", "joint", "forward", "backward"):
        record = next(s.record for s in report._shown if s.record.name == stage)
        picture = next(p["picture"] for p in payload["panes"] if p["stage"] == stage)
        shown = {payload["handles"][node[0]] for node in picture["nodes"]}
        assert shown == {item.handle for item in record.items}
        assert len(picture["edges"]) == sum(len(item.data["inputs"]) for item in record.items)
    joint = next(p["picture"] for p in payload["panes"] if p["stage"] == "joint")
    assert [lane[0] for lane in joint["lanes"]] == ["forward", "backward"]
    assert any(saved for *_, saved in joint["edges"])


def test_kinds_of_nodes() -> None:
    kinds = {t: kind_of({"op": "call_function", "target": t}) for t in ("aten.mm.default", "aten.sum.dim_IntList",
             "aten.view.default", "aten.mul.Tensor", "aten.native_layer_norm.default")}  # fmt: skip
    assert list(kinds.values()) == ["product", "reduction", "shape", "pointwise", "reduction"]
    assert kind_of({"op": "placeholder", "target": "sum"}) == "input"


def test_a_payload_is_plain_data_and_packs_to_the_same_bytes() -> None:
    payload = linked_payload(wave_report().recording, "wave", ["ptx"])
    assert json.loads(json.dumps(payload)) == payload
    assert packed(payload) == packed(linked_payload(wave_report().recording, "wave", ["ptx"]))
    assert payload["show"] == ["ptx"] and payload["title"] == "wave"


def test_decisions_name_items_that_exist() -> None:
    payload = linked_payload(wave_report().recording)
    fused = [row for row in payload["facts"]["decisions"] if row[1] == "fuse"]
    assert fused and all(row[5] for row in fused)


def test_every_line_is_closed_and_escaped_in_every_language() -> None:
    hostile = "</script><img src=x onerror=alert(1)> \"&' %r1 ld.global.b32 0x1f // <b>\n\tret;"
    for language in (*explorer.highlight._WORDS, *explorer.highlight._PYGMENTS, "unknown"):
        lines = highlight_lines(hostile, language)
        assert len(lines) == 2
        for html, text in zip(lines, hostile.splitlines()):
            plain = re.sub(r"</?span[^>]*>", "", html)
            assert "<" not in plain and html.count("<span") == html.count("</span>")
            back = (
                plain.replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&quot;", '"')
                .replace("&#x27;", "'")
            )
            assert back.replace("&amp;", "&") == text


def test_the_style_colours_what_the_highlighter_marks() -> None:
    assert set(re.findall(r"\.pg-(\w+)", style())) == COLOURED


def test_the_script_is_small_and_imports_nothing() -> None:
    assert len(script()) + len(style()) < 300_000
    assert not re.search(r"^\s*import\s", script(), re.M) and "http" not in script().replace(
        "http://www.w3.org", ""
    )


def test_the_script_parses(tmp_path: Path) -> None:
    if (node := shutil.which("node")) is None:
        pytest.skip("no node on this machine; Chromium parses the script in test_page.py")
    (tmp_path / "report.mjs").write_text(script())
    subprocess.run([node, "--check", tmp_path / "report.mjs"], check=True)


def test_files_of_the_explorer_stay_small() -> None:
    root = Path(explorer.__file__).parent
    for path in [*root.rglob("*.py"), *root.rglob("*.js")]:
        assert len(path.read_text().splitlines()) <= 250, path
