"""The house rules that tools can hold: formatting, lint, types, layers, public names."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

CHECKS = {
    "ruff format": ["ruff", "format", "--check", "."],
    "ruff check": ["ruff", "check", "."],
    "mypy": ["mypy"],
    "import layers": ["lint-imports"],
}


@pytest.mark.parametrize("name", CHECKS)
def test_tool(name: str) -> None:
    tool, *arguments = CHECKS[name]
    command = [str(Path(sys.executable).parent / tool), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.parametrize("package", ["compiler_core", "explorer"])
def test_public_names_exist(package: str) -> None:
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_version_checks_stand_in_one_folder() -> None:
    found = [
        path.relative_to(ROOT)
        for path in (ROOT / "compiler_core").rglob("*.py")
        if "sys.version_info" in path.read_text() and path.parent.name != "versions"
    ]
    assert found == []


def test_the_peers_are_never_imported() -> None:
    peers = ("torch._dynamo", "torch._inductor")
    for path in [*(ROOT / "compiler_core").rglob("*.py"), *(ROOT / "explorer").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.startswith(peers) for name in names), (path, names)


def test_importing_the_reader_needs_no_torch() -> None:
    script = (
        "import sys; sys.modules['torch'] = None; import explorer; print(explorer.open.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "open_report", done.stderr


def test_collected_tests_have_stable_names() -> None:
    """Two processes that share the work must agree on the list."""
    lists = []
    for seed in ("1", "2"):
        command = [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-o",
            "addopts=",
            "--import-mode=importlib",
            "tests",
        ]
        env = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=env)
        lists.append([line for line in done.stdout.splitlines() if "<Function" in line])
    assert lists[0] and lists[0] == lists[1]
