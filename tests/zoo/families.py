"""Further rows where torchvision or timm is installed: families of image classifiers.

In: nothing. Out: rows as in `architectures.py`, whose model gives its logits and a loss.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import torch

__all__ = ["NAMES", "Classifier", "classifier", "found"]

NAMES = {
    "torchvision": (
        "resnet18", "mobilenet_v3_small", "efficientnet_b0", "shufflenet_v2_x0_5", "squeezenet1_1", "densenet121",
        "regnet_y_400mf", "vgg11", "convnext_tiny", "swin_t",
    ),
    "timm": (
        "resnet10t", "mobilenetv3_small_050", "efficientnet_b0", "ghostnet_050", "hardcorenas_a", "mixnet_s",
        "rexnet_100", "convnext_atto", "edgenext_xx_small", "repvgg_a0",
    ),
}  # fmt: skip


def found() -> list[tuple[str, str]]:
    """(library, model) of every family that can be built here."""
    there = [library for library in NAMES if importlib.util.find_spec(library) is not None]
    return [(library, name) for library in there for name in NAMES[library]]


class Classifier(torch.nn.Module):
    """A network of pictures as the other rows are: keyword arguments in, a mapping with a loss out."""

    def __init__(self, network: torch.nn.Module):
        super().__init__()
        self.network = network

    def forward(self, pixel_values: torch.Tensor, labels: torch.Tensor) -> dict[str, Any]:
        """pixel_values (batch, 3, 64, 64), labels (batch,) of three classes."""
        logits = self.network(pixel_values)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


def classifier(library: str, name: str) -> Classifier:
    """The named network with three classes and random weights."""
    if library == "timm":
        import timm

        return Classifier(timm.create_model(name, pretrained=False, num_classes=3))
    import torchvision

    return Classifier(getattr(torchvision.models, name)(weights=None, num_classes=3))
