"""Small models for the job kit; torch is loaded here, so only when a job that needs it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

WORDS = 1024


def ready(seed: int) -> tuple[Any, Any, bool]:
    """Return torch, the device to work on, and whether it can carry the larger models."""
    torch.manual_seed(seed)
    is_large = torch.cuda.is_available()
    if not is_large:
        torch.set_num_threads(1)
    return torch, torch.device("cuda" if is_large else "cpu"), is_large


def wait_for(library: Any, device: Any) -> None:
    """Wait until the device has done what it was given."""
    if device.type == "cuda":
        library.cuda.synchronize()


def train_step(
    library: Any, model: nn.Module, loss: Callable[[], Any], device: Any
) -> Callable[[], None]:
    """Return one step of training, in half precision where there is a GPU.

    Gradient descent with momentum, written out: torch's own optimisers load a compiler first, which
    takes longer than many of these jobs.
    """
    weights = list(model.parameters())
    momentum = [library.zeros_like(weight) for weight in weights]

    def step() -> None:
        with library.autocast(device.type, library.bfloat16, enabled=device.type == "cuda"):
            value = loss()
        gradients = library.autograd.grad(value, weights)
        with library.no_grad():
            for weight, speed, gradient in zip(weights, momentum, gradients, strict=True):
                speed.mul_(0.9).add_(gradient)
                weight.sub_(speed, alpha=1e-3)
        wait_for(library, device)

    return step


def _encoder(width: int, layers: int) -> nn.Module:
    layer = nn.TransformerEncoderLayer(
        width, nhead=4, dim_feedforward=4 * width, dropout=0.0, batch_first=True, norm_first=True
    )
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


class TokenModel(nn.Module):
    """A transformer over tokens that sees only what came before."""

    def __init__(self, *, is_large: bool) -> None:
        super().__init__()
        width, layers = (384, 6) if is_large else (32, 1)
        self.words = WORDS
        self.embedding = nn.Embedding(WORDS, width)
        self.body = _encoder(width, layers)
        self.head = nn.Linear(width, WORDS)

    def forward(self, tokens: Any) -> Any:
        """Return scores of the next token at every place."""
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=tokens.device)
        return self.head(self.body(self.embedding(tokens), mask=mask, is_causal=True))


class VisionTransformer(nn.Module):
    """Patches of 8 × 8 pixels, a transformer, and the mean over all patches."""

    def __init__(self, *, is_large: bool) -> None:
        super().__init__()
        width, layers = (384, 6) if is_large else (32, 1)
        self.patches = nn.Conv2d(3, width, kernel_size=8, stride=8)
        self.body = _encoder(width, layers)
        self.head = nn.Linear(width, 10)

    def forward(self, images: Any) -> Any:
        """Return scores of ten classes."""
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        return self.head(self.body(tokens).mean(dim=1))


def convolutions(*, is_large: bool) -> nn.Module:
    """Return a plain convolutional network for ten classes."""
    width = 64 if is_large else 8
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1), nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(2 * width, 4 * width, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, 10),
    )  # fmt: skip
