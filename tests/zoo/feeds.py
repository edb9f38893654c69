"""What the architectures are fed: one function a kind of input. In: a batch size. Out: keyword arguments.

The values depend on the batch size alone (a seeded generator), so that two runs see the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["FEEDS"]

VOCABULARY, LENGTH = 61, 12


def _random(batch: int) -> torch.Generator:
    return torch.Generator().manual_seed(100 + batch)


def _tokens(batch: int, length: int = LENGTH, low: int = 3, high: int = VOCABULARY) -> torch.Tensor:
    return torch.randint(low, high, (batch, length), generator=_random(batch))


def words(batch: int) -> dict[str, Any]:
    """Token ids (batch, 12), an attention mask of ones, the ids as labels."""
    ids = _tokens(batch)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.clone()}


def masked_words(batch: int) -> dict[str, Any]:
    """Token ids (batch, 12); the first row's last three positions are padding."""
    given = words(batch)
    given["attention_mask"][0, -3:] = 0
    return given


def word_pairs(batch: int) -> dict[str, Any]:
    """A padded source (batch, 12) and target ids (batch, 7)."""
    return {**masked_words(batch), "labels": _tokens(batch, 7)}


def spectrogram(batch: int) -> dict[str, Any]:
    """Mel features (batch, 8, 32) and target ids (batch, 7)."""
    features = torch.randn(batch, 8, 32, generator=_random(batch))
    return {"input_features": features, "labels": _tokens(batch, 7)}


def image(batch: int) -> dict[str, Any]:
    """Pictures (batch, 3, 32, 32) and one of three classes each."""
    pixels = torch.randn(batch, 3, 32, 32, generator=_random(batch))
    return {"pixel_values": pixels, "labels": torch.arange(batch) % 3}


def picture(batch: int) -> dict[str, Any]:
    """Larger pictures (batch, 3, 64, 64), for networks that halve them five times."""
    pixels = torch.randn(batch, 3, 64, 64, generator=_random(batch))
    return {"pixel_values": pixels, "labels": torch.arange(batch) % 3}


def image_map(batch: int) -> dict[str, Any]:
    """Pictures and a class for every pixel (batch, 32, 32)."""
    labels = torch.randint(0, 3, (batch, 32, 32), generator=_random(batch))
    return {**image(batch), "labels": labels}


def image_boxes(batch: int) -> dict[str, Any]:
    """Pictures without labels: matching boxes to queries needs scipy."""
    return {"pixel_values": image(batch)["pixel_values"]}


def image_and_text(batch: int) -> dict[str, Any]:
    """As many captions as pictures."""
    given = words(batch)
    del given["labels"]
    given["input_ids"][:, -1] = 2
    return {**given, "pixel_values": image(batch)["pixel_values"]}


def sound(batch: int) -> dict[str, Any]:
    """Waves (batch, 400) and characters (batch, 3)."""
    wave = torch.randn(batch, 400, generator=_random(batch))
    return {"input_values": wave, "labels": _tokens(batch, 3, 1, 23)}


def series(batch: int) -> dict[str, Any]:
    """Ten past values, four future ones, two time features each."""
    source = _random(batch)
    return {
        "past_values": torch.rand(batch, 10, generator=source),
        "past_time_features": torch.rand(batch, 10, 2, generator=source),
        "past_observed_mask": torch.ones(batch, 10),
        "future_values": torch.rand(batch, 4, generator=source),
        "future_time_features": torch.rand(batch, 4, 2, generator=source),
    }


FEEDS: dict[str, Callable[[int], dict[str, Any]]] = {
    make.__name__: make
    for make in (
        words, masked_words, word_pairs, spectrogram, image, picture, image_map, image_boxes, image_and_text,
        sound, series,
    )
}  # fmt: skip
