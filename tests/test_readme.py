"""The README's Python, pasted into one script in order, runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_snippets_run_in_order(tmp_path: Path) -> None:
    snippets = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(snippets) == 3
    script = tmp_path / "readme.py"
    script.write_text("\n".join(snippets))
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Counters(graphs=2, fallbacks=0" in done.stdout and "'ptx', 'sass'" in done.stdout
    assert {p.name for p in tmp_path.iterdir()} >= {"f.html", "f.cutaway.gz"}
