"""The command line: its help, its versions, what it prints of several programs, what it refuses."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console

from compiler_core import __version__
from explorer.command import main
from explorer.programs import PROGRAMS
from explorer.terminal import bar, print_summary, print_times, stage_times


def test_the_help_of_the_demonstration_lists_every_program(capsys) -> None:
    with pytest.raises(SystemExit) as left:
        main(["demo", "--help"])
    text = capsys.readouterr().out
    assert left.value.code == 0
    for program in PROGRAMS:
        assert f"  {program.name} " in text and program.about in text
    assert "the page to write" in text and "a GPU to compile for" in text


def test_the_version_names_what_it_stands_on_without_loading_it() -> None:
    script = (
        "import sys\nfrom explorer.command import main\ntry: main(['--version'])\n"
        "finally: print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    first, loaded = done.stdout.splitlines()
    assert first.startswith(f"cutaway {__version__} (torch {torch.__version__.partition('+')[0]}")
    assert "Python 3." in first and loaded == "False"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["demo", "sin_cs"], "unknown program 'sin_cs'; did you mean 'sin_cos'?"),
        (["demo", "x"], "unknown program 'x'. Valid: graph_break"),
        (["demo", "sin_cos", "--also", "cuda"], "unknown target 'cuda'. Valid: cpu, cuda:75"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_compiled(
    arguments, message, capsys
) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert message in shown.err and shown.out == ""


def test_each_frame_of_a_program_is_named_and_its_stages_stand_below(tmp_path, capsys) -> None:
    arguments = ["demo", "graph_break", "--also", "", "--report", str(tmp_path / "r.html")]
    assert main([*arguments, "--json", str(tmp_path / "r.json")]) == 0
    shown = capsys.readouterr().out
    (program,) = json.loads((tmp_path / "r.json").read_text())["programs"]
    versions = list(dict.fromkeys(stage["version"] for stage in program["stages"]))
    assert len(versions) == 4 and versions[0] == "with_break/0"
    assert all("with_break, resumed " in version for version in versions[1:])
    places = [shown.index(version) for version in versions]
    assert places == sorted(places)
    assert "a print and a branch on a tensor's value in the middle" in shown


def test_bars_are_on_one_scale_over_all_programs() -> None:
    class Fixed:
        def __init__(self, name, phases):
            self.name, self.phases = name, phases

    console = Console(width=90, record=True, file=io.StringIO())
    first = Fixed("first", {"capture": 1.0, "build forward cpu": 0.25, "build backward cpu": 0.25})
    print_times([first, Fixed("second", {"capture": 0.1})], console)
    lines = [line for line in console.export_text().splitlines() if "█" in line]
    assert [line.count("█") for line in lines] == [30, 15, 3]


def test_stages_are_summed_over_parts_and_small_bars_differ() -> None:
    assert stage_times({"lower forward cpu": 1.0, "lower backward cpu": 2.0, "joint": 3.0}) == {
        "lower": 3.0,
        "joint": 3.0,
    }
    assert len({bar(share, 30) for share in (0.001, 0.01, 0.02, 0.05, 0.5, 1.0)}) == 6
    assert bar(1.0, 30) == "█" * 30


def test_the_summary_fits_into_eighty_columns():
    row = SimpleNamespace(
        name="mlp_training_step", graphs=10, breaks=12, guards=554, kernels=38, fallbacks=0,
        compiled_call=1.868e-4, eager_call=8.302e-4, ok=True,
    )  # fmt: skip
    text = io.StringIO()
    print_summary([row], Console(file=text, width=80))
    assert "186.8 µs 830.2 µs ok" in text.getvalue() and "…" not in text.getvalue()
