"""Decoding and entering in every Python that is installed here; torch is not needed for it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import bytecode
import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def interpreters():
    """One interpreter for each supported version: this one, those on the path, and pyenv's."""
    found = {f"{sys.version_info.major}.{sys.version_info.minor}": sys.executable}
    for version in ("3.11", "3.12", "3.13", "3.14"):
        candidates = [shutil.which(f"python{version}")]
        candidates += sorted(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))
        for candidate in filter(None, candidates):
            if version not in found and runs(candidate, version):
                found[version] = candidate
    return found


def runs(python, version):
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    answer = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return answer.stdout.strip() == version


@pytest.mark.parametrize(("version", "python"), interpreters().items())
def test_every_instruction_decodes_and_can_be_entered(version, python, tmp_path):
    (tmp_path / "bytecode").symlink_to(Path(bytecode.__file__).parent)
    path = os.pathsep.join([str(ROOT), str(tmp_path)])
    done = subprocess.run(
        [python, "-X", "faulthandler", str(HERE / "versions_check.py")],
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    line = rf"{version}\.\d+: \d+ opcodes, (\d+) instructions decoded, entered at (\d+) .* (\d+)"
    decoded, entered, stepped = map(int, re.match(line, done.stdout).groups())
    assert decoded > 20_000 and entered > 1000 and stepped > 500


def test_the_bytecode_half_imports_without_torch():
    modules = "normalise, splice, resume_points, versions, dialect, sources, frames, skip, layout"
    code = (
        "import sys; sys.modules['torch'] = None\n"
        f"from compiler_core.capture import {modules}\n"
        "assert sys.modules['torch'] is None"
    )
    path = os.pathsep.join([str(ROOT), str(Path(bytecode.__file__).parents[1])])
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": path})


def test_only_versions_asks_for_the_python_version():
    folder = ROOT / "compiler_core" / "capture"
    asking = [p.name for p in folder.rglob("*.py") if "sys.version_info" in p.read_text()]
    assert asking == ["__init__.py"]
    assert "version_info" in (folder / "versions" / "__init__.py").read_text()


def test_only_splice_edits_bytecode():
    folder = ROOT / "compiler_core"
    users = [
        p.name
        for p in folder.rglob("*.py")
        if re.search(r"^\s*(from|import) bytecode\b", p.read_text(), re.M)
    ]
    assert users == ["splice.py"]
