"""`explore`, `open` and the `Report` that both give."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch
from explored import break_report, handle_of, hostile, mlp_report, wave, wave_report

import explorer
from compiler_core.errors import GraphBreakError, OptionError
from explorer.twin import html_twin


def test_stages_print_and_run() -> None:
    report = wave_report()
    assert "torch.sin(x)" in report.capture and "aten.sin" in report.joint
    assert "for (int64_t" in report.kernels["sin_cos_add_0"].source
    for form, text in {
        "triton": "@triton.jit",
        "ttir": "tt.func",
        "ptx": ".version",
        "llir": "define",
    }.items():
        assert text in getattr(report.kernels["forward/sin_cos_add_0"], form)
    x, y = torch.randn(64, 32), torch.randn(64, 32)
    for stage in (report.capture, report.joint, report.lower, report.fuse):
        torch.testing.assert_close(stage.run(x, y)[0], wave(x, y))
    assert report.code.captured.graph is report.capture.value.graph
    assert "capture" in str(report.timings) and repr(report.joint) == report.joint


def test_a_modules_stages_run_on_the_kept_inputs() -> None:
    layer, x = torch.nn.Linear(4, 3), torch.randn(2, 4)
    report = explorer.explore(layer, x)
    assert len(report.inputs) == 3
    for stage in (report.capture, report.forward, report.lower, report.fuse):
        torch.testing.assert_close(stage.run(*report.inputs)[0], layer(x))


def test_every_stage_is_within_tolerance() -> None:
    for report in (wave_report(), mlp_report(), break_report()):
        checks = report.check()
        assert len(checks) >= 6 and {row[-1] for row in checks} == {"ok"}
    assert {row[2] for row in mlp_report().check()} == {"", "forward", "backward"}


def test_grad_leaves_the_arguments_alone_and_records_a_backward_pass() -> None:
    x = torch.randn(4, 4)
    report = explorer.explore(lambda x: (x.sin() * x).sum(), x, grad=True)
    assert not x.requires_grad and x.grad is None
    assert "cos" in report.backward and any(name.startswith("backward/") for name in report.kernels)


def test_exploring_twice_compiles_twice() -> None:
    first, second = (explorer.explore(wave, torch.ones(3), torch.ones(3)) for _ in range(2))
    assert repr(first) == repr(second) and "1 graph, 0 breaks" in repr(first)


def test_the_selection_lights_what_links_say() -> None:
    report = wave_report()
    sin, cos = handle_of(report, "capture", "sin"), handle_of(report, "capture", "cos")
    report.selected = {sin}
    assert report.selected == {sin} and report.lit == report.links.lit(sin)
    assert handle_of(report, "joint", "sin") in report.lit and cos not in report.lit
    with pytest.raises(KeyError, match="no such item"):
        report.selected = ["capture:nothing"]
    assert report.selected == {sin}
    report.selected = ()
    assert report.lit == frozenset()


def test_of_several_graphs_each_is_told_apart() -> None:
    report = break_report()
    assert report.joint.count("def joint") == 3 and "# with_break/0" in report.joint
    line = next(n for (_, n), x in report._ledger.items() if "print(" in x.text)
    assert len(report.breaks) == 2 and report.breaks[0][0].endswith(f":{line}")
    assert "Remove the print" in str(report.breaks)
    assert "break at" in str(report) and "do: " in str(report)


def test_saved_and_opened_it_says_the_same(tmp_path: Path) -> None:
    report = wave_report()
    path = report.save(tmp_path / "wave.cutaway.gz")
    opened = explorer.open(path)
    assert opened.name == "wave" and opened.recording == report.recording
    assert str(opened) == str(report) and opened.joint == report.joint
    assert opened.kernels["sin_cos_add_0"].ptx == report.kernels["sin_cos_add_0"].ptx
    for use in (
        lambda: opened.code,
        lambda: opened.inputs,
        opened.check,
        lambda: opened.joint.run(1),
    ):
        with pytest.raises(ValueError, match="from a file"):
            use()
    assert report.save(tmp_path / "wave.html").stat().st_size < 1_000_000
    with pytest.raises(OptionError, match="neither"):
        report.save(tmp_path / "wave.txt")


def test_reading_needs_neither_torch_nor_jupyter(tmp_path: Path) -> None:
    wave_report().save(tmp_path / "w.gz")
    script = (
        "import sys\nfor name in ('torch', 'anywidget', 'IPython', 'ipywidgets', 'nbconvert'): sys.modules[name] = None\n"
        f"import explorer; r = explorer.open({str(tmp_path / 'w.gz')!r}); r.selected = r.on_line(int(sys.argv[1]))\n"
        f"print(len(r.lit)); str(r); r.save({str(tmp_path / 'w.html')!r})"
    )
    line = next(n for (_, n), x in wave_report()._ledger.items() if "torch.sin" in x.text)
    done = subprocess.run([sys.executable, "-c", script, str(line)], capture_output=True, text=True,
                          cwd=Path(__file__).resolve().parents[2])  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(wave_report().links.lit(*wave_report().on_line(line)))


def test_wrong_names_say_what_there_is() -> None:
    report = wave_report()
    with pytest.raises(AttributeError, match="did you mean 'joint'"):
        report.jont  # noqa: B018
    with pytest.raises(OptionError, match="no stage 'kernel'; did you mean 'kernels'"):
        report.stage("kernel")
    with pytest.raises(KeyError, match="sin_cos_add_0"):
        report.kernels["sin"]
    with pytest.raises(AttributeError, match="has no 'metal'; it has: cpp, triton"):
        report.kernels["sin_cos_add_0"].metal  # noqa: B018


def test_errors_of_the_function_and_of_arguments_are_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        explorer.explore(lambda x: x + 1 / 0, torch.ones(2))
    with pytest.raises(GraphBreakError):
        explorer.explore(lambda x: print(x), torch.ones(2), fullgraph=True)
    with pytest.raises(OptionError, match="unknown target"):
        explorer.explore(wave, torch.ones(2), torch.ones(2), targets=("cuda:x",))


def test_a_backend_that_only_captures_gives_a_report_too() -> None:
    report = explorer.explore(wave, torch.ones(2), torch.ones(2), backend="eager")
    assert "torch.sin" in report.capture and not report.kernels and "no joint" in report.joint


def test_twins_are_shown_everywhere_and_escape() -> None:
    report = explorer.explore(hostile, torch.ones(2))
    data = report._repr_mimebundle_()
    data = data[0] if isinstance(data, tuple) else data
    assert data["text/plain"] == str(report)
    html = data["text/html"]
    assert "<script" not in html and "<img" not in html and "<svg" not in html and "&lt;img" in html


class _Elements(HTMLParser):
    """Every element and attribute of a text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(f"{tag} {name}" for name, _ in attributes)}


# What notebooks without trust, and pages of code hosts, leave of an output's HTML.
KEPT = {"p", "b", "small", "code", "pre", "details", "details open", "summary", "table", "thead", "tbody", "tr",
        "th", "td", "th style", "td style", "ul", "li"}  # fmt: skip


@pytest.mark.parametrize("make", [wave_report, break_report, mlp_report])
def test_the_static_view_needs_no_trust_and_says_how_to_get_the_panes_back(make) -> None:
    html = html_twin(make())
    elements = _Elements()
    elements.feed(html)
    assert elements.found <= KEPT
    assert "come back when the cell is run again" in html
    assert make().guards._repr_html_() in html


def test_hostile_names_stay_text_in_every_table_and_line() -> None:
    report = explorer.explore(hostile, torch.ones(2), name="<script>alert(1)</script>")
    elements = _Elements()
    elements.feed(html_twin(report))
    assert elements.found <= KEPT
    assert "<script>alert(1)</script>: 1 graph" in str(report)  # as text it is what it is
