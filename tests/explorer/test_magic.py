"""`%%compile` in a real IPython shell: what it shows, and what it says to bad input."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from explorer.magic_line import OPTIONS, completions, help_text, parse_line
from explorer.report import Report

pytest.importorskip("IPython", reason="IPython is not installed")
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output


class Shell:
    """A shell with the extension loaded, `torch`, and tensors x and y."""

    def __init__(self) -> None:
        self.ip = InteractiveShell.instance()
        self.ip.run_cell(
            "import torch\nx, y = torch.ones(4, 4), torch.ones(4, 4)", store_history=True
        )
        self.ip.run_line_magic("load_ext", "explorer")

    def run(self, cell: str) -> Any:
        """The result of a cell; a failure inside it is raised."""
        with capture_output() as self.shown:
            done = self.ip.run_cell(cell, store_history=True)
        done.raise_error()
        return done.result

    def error(self, cell: str) -> str:
        """What a failing cell shows."""
        with capture_output() as shown:
            done = self.ip.run_cell(cell, store_history=True)
        assert not done.success
        return re.sub(r"\x1b\[[0-9;]*m", "", shown.stdout + shown.stderr)


@pytest.fixture(scope="module")
def shell() -> Shell:
    return Shell()


def test_a_cell_with_its_call_on_the_line(shell: Shell) -> None:
    report = shell.run("%%compile f(x, y)\ndef f(x, y):\n    a = torch.sin(x)\n    return a + y\n")
    assert isinstance(report, Report) and report is shell.ip.user_ns["report"]
    assert report.result.shape == (4, 4) and report.name == "f"
    number = shell.ip.execution_count - 1
    places = {(file, n): line.text for (file, n), line in report._ledger.items()}
    assert places[f"Cell In[{number}]", 3] == "    a = torch.sin(x)"
    assert report.on_line(3) and report.source.count("Cell In") == 3
    assert "ipython-input" not in report.recording.to_json()


def test_the_last_line_is_the_example_and_runs_once(shell: Shell) -> None:
    report = shell.run(
        "%%compile\ncount = []\ndef f(x):\n    return x * 2\nz = f(torch.full((2,), 3.0))"
    )
    assert shell.ip.user_ns["z"].tolist() == [6.0, 6.0] and report.name == "f"
    report = shell.run("%%compile\ndef g(x):\n    print('seen')\n    return x * 2\ng(x=x)")
    assert shell.shown.stdout.startswith("seen\nOut[") and len(report.breaks) == 1
    assert report.breaks[0][0].endswith(":3")


def test_a_function_without_arguments_needs_no_example(shell: Shell) -> None:
    assert shell.run("%%compile\ndef f():\n    return torch.ones(3).sum()").result.item() == 3


def test_modules_and_functions_of_other_cells(shell: Shell) -> None:
    shell.run("def helper(t):\n    return t.cos()")
    report = shell.run(
        "%%compile\nclass M(torch.nn.Module):\n    def forward(self, t):\n        return helper(t) + 1\nm = M()\nm(x)"
    )
    assert {file for file, _ in report._ledger} == {
        f"Cell In[{n}]" for n in (shell.ip.execution_count - 2, shell.ip.execution_count - 1)
    }


def test_options(shell: Shell, tmp_path: Path) -> None:
    cell = "\ndef f(x):\n    return (x * 2).sum()"
    report = shell.run(
        f"%%compile --target cuda:90 --show ptx,source --save {tmp_path / 'f.html'} f(x){cell}"
    )
    assert report.kernels["mul_sum_0"].ptx if "mul_sum_0" in report.kernels else report.kernels
    assert report.show == ("ptx", "source") and (tmp_path / "f.html").exists()
    assert shell.run(f"%%compile --quiet --backend=eager f(x){cell}") is None
    assert "no joint" in shell.ip.user_ns["report"].joint
    assert "backward" in shell.run(f"%%compile --grad f(x){cell}").backward


BAD = {
    "\n   \n": ("the cell is empty", 1),
    " f(x)\ndef f(x:\n    return x": ("SyntaxError", 2),
    " f(x)\na = 1\n1 / 0\ndef f(x): return x": ("ZeroDivisionError: division by zero", 3),
    " f(x)\n  ": ("the cell is empty", 1),
    " f(x)\ndef f(x):\n    return x +": ("SyntaxError: invalid syntax", 3),
    "\nprint('before')\nraise ValueError('no <b>luck</b>')": ("ValueError: no <b>luck</b>", 3),
    "\nclass A:\n    pass": ("defines no function and calls none", 1),
    "\ndef f(x): return x\nf(x, *None)": ("fails: TypeError", 3),
    "\ndef f(x): return x\nf(**3)": ("fails: TypeError: 'int' object is not iterable", 3),
    "\ndef f(x): return x\nf(k=1 / 0)": ("the example '1 / 0' fails: ZeroDivisionError", 3),
    "\na = 1": ("defines no function and calls none", 1),
    "\ndef f(x): return x\ndef g(x): return x": ("several functions (f, g)", 1),
    "\ndef f(x): return x": ("f takes arguments: put the call", 1),
    " f(missing)\ndef f(x): return x": ("the example 'missing' fails: NameError", 1),
    "\ndef f(x): return x\nf(x[9])": ("the example 'x[9]' fails: IndexError", 3),
    " f(x,\ndef f(x): return x": ("this is no call", 1),
    " f\ndef f(x): return x": ("this is no call: put the call behind", 1),
    " x(1)\na = 1": ("x is a Tensor, not a function", 1),
    " nothing(1)\na = 1": ("name 'nothing' is not defined", 1),
    " f(x)\ndef f(x):\n    y = x + 1\n    return x.view(3)": ("RuntimeError: shape '[3]' is invalid", 4),
    " f(x)\ndef f(x, y): return x": ("missing 1 required positional argument", 1),
    " --fullgraph f(x)\ndef f(x):\n    print(x)\n    return x": ("the program prints", 3),
    " --bakend eager f(x)\ndef f(x): return x": ("unknown option '--bakend'; did you mean '--backend'?", 1),
    " --backend tvm f(x)\ndef f(x): return x": ("--backend cannot be 'tvm'. Valid: cutaway, eager.", 1),
    " --target gpu f(x)\ndef f(x): return x + 1": ("unknown target 'gpu'", 1),
    " --show kernel f(x)\ndef f(x): return x": ("did you mean 'kernels'?", 1),
    " --save": ("--save needs a value", 1),
    " --quiet=3 f(x)\ndef f(x): return x": ("--quiet takes no value", 1),
    " --save x.txt f(x)\ndef f(x): return x + 1": ("ends neither in .html", 1),
}  # fmt: skip


@pytest.mark.parametrize("cell", BAD, ids=lambda c: c[:30])
def test_bad_input_is_answered_with_the_cells_own_line(shell: Shell, cell: str) -> None:
    message, line = BAD[cell]
    body = cell if "\n" in cell else f"{cell}\na = 1"
    shown = shell.error(f"%%compile{body}")
    assert message in shown and "Traceback" not in shown and "explorer/" not in shown
    mark = next(text for text in shown.splitlines() if text.startswith("-->"))
    assert mark.split("|")[0].split() == ["-->", str(line)], shown
    assert f"Cell In[{shell.ip.execution_count - 1}], line {line}" in shown


def test_what_a_cell_prints_and_assigns_stays(shell: Shell) -> None:
    report = shell.run("%%compile\nprint('hello')\nkept = 41\ndef f(x):\n    return x + kept\nf(x)")
    assert shell.shown.stdout.startswith("hello\n") and shell.ip.user_ns["kept"] == 41
    assert isinstance(report, Report) and report.result[0, 0] == 42
    shell.error("%%compile f(x)\nkept = 7\nraise KeyError('late')")
    assert shell.ip.user_ns["kept"] == 7  # as in any cell: what ran before the error has run


def test_a_class_as_the_example_is_answered_with_the_way_to_an_object(shell: Shell) -> None:
    shown = shell.error("%%compile\nclass M(torch.nn.Module):\n    pass\nM()")
    assert "CC009" in shown and "Make the object first" in shown


def test_an_error_deeper_down_says_where_it_was_raised(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "deep.py").write_text("def fails(x):\n    raise KeyError('k')\n")
    shell.run(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import deep")
    shown = shell.error("%%compile f(x)\ndef f(x):\n    return deep.fails(x)")
    assert "-->   3 |" in shown and "deep.py:2, fails" in shown


def test_completion_offers_options_then_their_words(shell: Shell) -> None:
    def offered(line: str) -> list[str]:
        with provisionalcompleter():
            return [c.text for c in shell.ip.Completer.completions(line, len(line))]

    assert offered("%%compile --ba") == ["--backend"]
    assert offered("%%compile --backend ") == ["cutaway", "eager"]
    assert offered("%%compile --show source,ker") == ["source,kernels"]
    assert completions("--backend eager ") == [name for name in OPTIONS if name != "--backend"]
    assert completions("f(x") == []


def test_help_names_every_option(shell: Shell) -> None:
    magic = shell.ip.find_cell_magic("compile")
    assert magic.__doc__ == help_text()
    for option in OPTIONS.values():
        assert option.name in magic.__doc__ and option.help in magic.__doc__


def test_the_line_is_split_where_the_call_begins() -> None:
    request = parse_line("--grad  --target cuda:80,cuda:90 f(x, k=[1,  2])")
    assert request.call == "f(x, k=[1,  2])" and request.many("--target") == ("cuda:80", "cuda:90")
    assert request.has("--grad") and not request.has("--quiet")


def test_a_kernel_loads_the_stages_while_it_is_idle() -> None:
    """The cell that loads the extension does not wait for it."""
    script = """
import asyncio, sys
from IPython.core.interactiveshell import InteractiveShell
async def kernel():
    InteractiveShell.instance().run_line_magic("load_ext", "explorer")
    print("compiler_core.driver" in sys.modules)
    await asyncio.sleep(0.5)
    print("compiler_core.driver" in sys.modules)
asyncio.run(kernel())
InteractiveShell.instance().run_line_magic("reload_ext", "explorer")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split()[:2] == ["False", "True"], done.stderr


def test_loading_twice_changes_nothing(shell: Shell) -> None:
    before = len(shell.ip.Completer.custom_matchers)
    shell.ip.run_line_magic("reload_ext", "explorer")
    assert len(shell.ip.Completer.custom_matchers) == before
