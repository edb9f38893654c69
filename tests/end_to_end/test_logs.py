"""Each log channel prints what it promises, and only while it is on."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from agreement import STRICT, compiling

import compiler_core as cc
from compiler_core.errors import OptionError
from compiler_core.logs import CHANNELS

EXPECTED = {
    "graph_breaks": f"CC103: the program prints: print at {__file__}:",
    "guards": "L['x']",
    "recompiles": "L['x'] (tensor)",
    "fusion": "fused",
    "partition": "saved",
    "fallbacks": "aten.mm",
    "output_code": "def call(args)",
}


def program(x):
    y = torch.softmax(x * 2, -1) @ x
    print("between")
    return y.exp().sum()


def compile_and_change():
    cc.reset()
    compiled = cc.compile(program, options=STRICT)
    with compiling():
        for x in (torch.randn(4, 4, requires_grad=True), torch.randn(4, 4), torch.randn(4, 4)):
            torch.testing.assert_close(compiled(x), program(x))


@pytest.mark.parametrize("channel", CHANNELS)
def test_channel_prints_its_facts(channel, capsys):
    cc.set_logs(**{channel: True})
    try:
        compile_and_change()
    finally:
        cc.set_logs(**{channel: False})
    lines = capsys.readouterr().err
    assert lines and EXPECTED[channel] in lines
    assert all(line.startswith(f"[{channel}] ") for line in lines.splitlines() if line[:1] == "[")
    compile_and_change()
    assert capsys.readouterr().err == ""


def test_the_environment_switches_channels_on():
    done = subprocess.run(
        [sys.executable, "-c", "from compiler_core import logs; print(sorted(logs._on))"],
        env={**os.environ, "CUTAWAY_LOGS": "guards,fusion,guard"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.strip() == "['fusion', 'guards']"
    assert "unknown log channel 'guard'; did you mean 'guards'?" in done.stderr


def test_channels_are_independent_and_unknown_ones_are_refused(capsys):
    cc.set_logs(guards=True, recompiles=True)
    cc.set_logs(guards=False)
    compile_and_change()
    cc.set_logs(recompiles=False)
    printed = capsys.readouterr().err
    assert "[recompiles]" in printed and "[guards]" not in printed
    with pytest.raises(OptionError, match="did you mean 'guards'"):
        cc.set_logs(guard=True)
