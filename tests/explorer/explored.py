"""Reports that several tests look at, made once a process."""

from __future__ import annotations

from functools import cache

import torch

import explorer
from explorer.programs import MLP, with_break


def wave(x, y):
    a = torch.sin(x)
    b = torch.cos(y)
    return a + b


@cache
def wave_report() -> explorer.Report:
    x, y = torch.randn(64, 32), torch.randn(64, 32)
    return explorer.explore(wave, x, y, targets=("cuda:90",))


@cache
def break_report() -> explorer.Report:
    return explorer.explore(with_break, torch.ones(8, 8))


@cache
def mlp_report() -> explorer.Report:
    torch.manual_seed(0)
    target = torch.softmax(torch.randn(8, 64), -1)
    return explorer.explore(MLP(), torch.randn(8, 64), target, grad=True, name="mlp")


def handle_of(report: explorer.Report, stage: str, label: str) -> str:
    """The handle of a stage's item by its label."""
    return next(
        i.handle
        for s in report._shown
        if s.record.name == stage
        for i in s.record.items
        if i.label == label
    )


def hostile(x):
    tag = "</script><img src=x onerror=\"document.title='broken'\">"
    return x + len(tag)
