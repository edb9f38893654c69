"""Recordings saved and opened: whole, cut short, newer, damaged; and without torch."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

import explorer
from compiler_core.recording import Item, Recorder, Rewrite, StageRecord, Step
from explorer.session import RecordingError, open_recording


def recorder() -> Recorder:
    r = Recorder(explore=True)
    with r.version("f", "f.py", 3, "def f(x):\n    return x\n", "first call"), r.phase("capture"):
        with r.phase("guards"):
            r.decide("fuse", {"lower:forward/b", "lower:forward/a"}, "refused", "cycle", bytes=None)
        r.stage(
            StageRecord(
                "capture",
                "",
                "",
                "python",
                "x\n",
                "d",
                [Item("capture:x", "x", ("instr:f0:2",), (1,), {"n": 1})],
            )
        )
        r.step(Step("instr:f0:2", "LOAD_FAST", ("x",), (("x", "f32[3]"),), 0, 1))
        r.rewrite(Rewrite("fuse", "merge", "merge.py:3", "a", "b", ("lower:forward/a",)))
    return r


def test_what_is_saved_is_what_is_read(tmp_path: Path) -> None:
    r = recorder()
    for name in ("one.gz", "two.gz"):
        r.recording.save(tmp_path / name)
        assert open_recording(tmp_path / name) == r.recording
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "two.gz").read_bytes()
    assert [t.phase for t in r.recording.frames[0].versions[0].timings] == [
        "capture/guards",
        "capture",
    ]


def test_a_second_version_of_a_frame_is_kept_beside_the_first() -> None:
    r = recorder()
    with r.version("f", "f.py", 3, "", "L['x'] changed"):
        r.decide("skip", (), "eager", "limit")
    assert [v.name for v in r.recording.frames[0].versions] == ["f/0", "f/1"]


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda data: data[: len(data) // 2], "cannot be read"),
        (lambda data: b"not a recording", "cannot be read"),
        (lambda data: gzip.compress(b"[]"), "no schema number"),
        (lambda data: gzip.compress(b'{"schema": 99}'), "newer version"),
        (lambda data: gzip.compress(b'{"schema": 1}'), "KeyError"),
        (lambda data: _with(data, frames=["f"]), "expected"),
    ],
)
def test_damaged_files_are_refused_with_a_reason(tmp_path: Path, damage, message: str) -> None:
    good = tmp_path / "good.gz"
    recorder().recording.save(good)
    bad = tmp_path / "bad.gz"
    bad.write_bytes(damage(good.read_bytes()))
    for read in (open_recording, explorer.open):
        with pytest.raises(RecordingError, match=message):
            read(bad)


def _with(data: bytes, **changes: object) -> bytes:
    return gzip.compress(json.dumps({**json.loads(gzip.decompress(data)), **changes}).encode())


def test_opens_without_torch(tmp_path: Path) -> None:
    recorder().recording.save(tmp_path / "r.gz")
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "import explorer; r = explorer.open(sys.argv[1]); print(r.recording.frames[0].versions[0].name)"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "r.gz")],
        capture_output=True,
        text=True,
        cwd=root,
    )
    assert done.stdout.strip() == "f/0", done.stderr
