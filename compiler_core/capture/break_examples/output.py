"""Breaks because the program speaks to the outside at this point."""

from __future__ import annotations

import io
import logging
import os
import warnings
from typing import Any

import torch

from compiler_core.capture.break_examples.example import Example, vector
from compiler_core.capture.break_kinds import output as kinds

Tensor = torch.Tensor
logger = logging.getLogger(__name__)


def prints(x: Tensor) -> Tensor:
    y = x * 2
    print("largest", y.max())  # breaks
    return y + 1


def asks(x: Tensor) -> Tensor:
    y = x * 2
    scale = float(input("scale? "))  # breaks
    return y * scale


def asks_fixed(x: Tensor, scale: float) -> Tensor:
    return x * 2 * scale


def logs(x: Tensor) -> Tensor:
    y = x * 2
    logger.warning("largest %s", y.max())  # breaks
    return y + 1


def logs_fixed(x: Tensor) -> Tensor:
    y = x * 2
    logger.warning("doubled %s numbers", y.numel())
    return y + 1


def warns(x: Tensor) -> Tensor:
    y = x * 2
    warnings.warn("doubling is slow", stacklevel=1)  # breaks
    return y + 1


def silent(x: Tensor) -> Tensor:
    y = x * 2
    return y + 1


def reads_file(x: Tensor) -> Tensor:
    y = x * 2
    with open(os.devnull) as file:  # breaks
        text = file.read()  # breaks
    return y + len(text)


def reads_file_fixed(x: Tensor, text: str) -> Tensor:
    return x * 2 + len(text)


def with_buffer(call: int) -> tuple[Any, ...]:
    return (*vector(call), io.BytesIO())


def saves(x: Tensor, target: io.BytesIO) -> Tensor:
    y = x * 2
    torch.save(y, target)  # breaks
    return y + 1


def saves_fixed(x: Tensor) -> Tensor:
    y = x * 2
    return y + 1


EXAMPLES = (
    Example(kinds.PRINTS, prints, silent, alternative="the caller prints"),
    Example(
        kinds.READS_INPUT, asks, asks_fixed,
        fixed_arguments=lambda call: (*vector(call), 3.0),
    ),
    Example(kinds.LOGS, logs, logs_fixed, alternative="a text that is known without running"),
    Example(kinds.WARNS, warns, silent, alternative="the caller warns"),
    Example(
        kinds.FILES, reads_file, reads_file_fixed,
        fixed_arguments=lambda call: (*vector(call), ""),
    ),
    Example(
        kinds.SAVES, saves, saves_fixed, with_buffer, fixed_arguments=vector,
        alternative="the caller saves",
    ),
)  # fmt: skip
