"""One run of real JupyterLab in Chromium: a cell is run, the panes appear, a click reaches Python; notebooks that
were saved, with trust and without."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest
from browser import chromium
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
CELLS = [
    "import torch\n%load_ext explorer\nx = torch.ones(8, 8)",
    "%%compile f(x)\ndef f(x):\n    a = torch.sin(x)\n    return a * 2",
    "print('selected', len(report.selected), 'lit', len(report.lit))",
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def lab(tmp_path: Path):
    pytest.importorskip("jupyterlab", reason="jupyterlab is not installed: pip install jupyterlab")
    cells = [nbformat.v4.new_code_cell(text) for text in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata.kernelspec = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    (tmp_path / "work").mkdir()
    nbformat.write(notebook, tmp_path / "work" / "panes.ipynb")
    settings = tmp_path / "app" / "settings"
    settings.mkdir(parents=True)
    quiet = {
        "@jupyterlab/apputils-extension:notification": {
            "fetchNews": "false",
            "checkForUpdates": False,
        }
    }
    (settings / "overrides.json").write_text(json.dumps(quiet))
    folders = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR",
               "IPYTHONDIR", "JUPYTER_RUNTIME_DIR")  # fmt: skip
    env = {**os.environ, **{name: str(tmp_path / name) for name in folders}, "PYTHONPATH": str(ROOT),
           "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}  # fmt: skip
    saved(tmp_path, env)
    port = free_port()
    command = [sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
               "--IdentityProvider.token=token", f"--ServerApp.root_dir={tmp_path / 'work'}",
               f"--LabApp.app_settings_dir={settings}"]  # fmt: skip
    with (tmp_path / "log.txt").open("w") as log:
        server = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_for(f"http://127.0.0.1:{port}/api/status?token=token", tmp_path / "log.txt")
        yield f"http://127.0.0.1:{port}/lab/tree/{{}}?token=token&reset"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(20)


def saved(tmp_path: Path, env: dict[str, str]) -> None:
    """The same notebook as somebody left it: run, with a selection, its state kept, trusted."""
    text = "report.selected = report.on_line(3)"
    cells = [nbformat.v4.new_code_cell(c) for c in (*CELLS[:2], text)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(ROOT)}}).execute()
    nbformat.write(notebook, tmp_path / "work" / "saved.ipynb")
    command = [sys.executable, "-m", "jupyter", "trust", str(tmp_path / "work" / "saved.ipynb")]
    subprocess.run(command, env=env, check=True, capture_output=True)
    notebook.cells[2].source += "  # as it came by mail: nobody trusts it yet"
    nbformat.write(notebook, tmp_path / "work" / "untrusted.ipynb")


def wait_for(url: str, log: Path) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(url, timeout=2).read()
            return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"JupyterLab did not start: {log.read_text()[-2000:]}")


def run_cell(page, number: int) -> None:
    page.locator(".jp-Notebook .jp-CodeCell").nth(number).locator(".cm-content").click()
    page.keyboard.press("Control+Enter")


@pytest.mark.slow
def test_a_click_in_jupyterlab_reaches_python(lab: str, tmp_path: Path) -> None:
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1500, "height": 1000})
        outside: list[str] = []
        page.on(
            "request",
            lambda r: (
                outside.append(r.url)
                if r.url.startswith("http") and "127.0.0.1" not in r.url
                else None
            ),
        )
        page.goto(lab.format("panes.ipynb"), wait_until="domcontentloaded")
        page.wait_for_selector("text=/\\| Idle/", timeout=60_000)
        run_cell(page, 0)
        run_cell(page, 1)
        page.wait_for_selector(".ct-widget[data-ready]", timeout=60_000)
        page.locator('.ct-pane[data-stage="source"] .ct-line', has_text="torch.sin").click()
        assert page.locator(".ct-pane .hit").count() >= 3
        page.keyboard.press("ArrowDown")  # stays in the panes: JupyterLab does not take the key
        assert "return a * 2" in page.evaluate("document.activeElement.textContent")
        if folder := os.environ.get("CUTAWAY_SCREENSHOTS"):
            shot(page, Path(folder))
        run_cell(page, 2)
        page.wait_for_selector("text=/selected [1-9]\\d* lit [1-9]/", timeout=30_000)
        page.goto(lab.format("saved.ipynb"), wait_until="domcontentloaded")
        page.wait_for_selector(".ct-widget[data-ready]", timeout=60_000)  # no cell was run
        page.wait_for_selector(".ct-line.chosen")
        assert "torch.sin" in page.locator(".ct-line.chosen").inner_text()
        page.goto(lab.format("untrusted.ipynb"), wait_until="domcontentloaded")
        page.wait_for_selector("text=This is the static view", timeout=60_000)
        shown = page.locator(".jp-OutputArea-output").first.inner_text()
        assert "f: 1 graph, 0 breaks" in shown and "a = torch.sin(x)" in shown
        assert "come back when the cell is run again" in shown
        assert page.locator(".ct-widget").count() == 0
        assert outside == []


def shot(page, folder: Path) -> None:
    """Pictures of both themes, for people to look at."""
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / "lab_light.png")
    for choose in (page.locator("text=Settings").first.click, page.locator(".lm-Menu-item:has-text('Theme')").first.hover,
                   page.locator(".lm-Menu-item:has-text('JupyterLab Dark')").first.click):  # fmt: skip
        choose()
        page.wait_for_timeout(600)
    page.wait_for_function("document.body.dataset.jpThemeLight === 'false'", timeout=20_000)
    page.wait_for_timeout(1000)
    page.screenshot(path=folder / "lab_dark.png")
