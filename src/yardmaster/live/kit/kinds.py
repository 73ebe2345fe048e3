"""The kinds of jobs: each a function of a seed that gets ready and returns one step of work."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

Step = Callable[[], None]
Kind = Callable[[int], Step]


def prepare(seed: int) -> Step:
    """Data preparation: shuffle, tokenise and compress text on the CPU; no GPU, no torch."""
    rng = np.random.default_rng(seed)
    text = rng.integers(97, 123, size=1 << 16, dtype=np.uint8)

    def step() -> None:
        words = rng.permutation(text.reshape(-1, 8))
        _, tokens = np.unique(words[:, 0], return_inverse=True)
        zlib.compress(np.ascontiguousarray(words).tobytes() + tokens.astype(np.uint16).tobytes(), 1)

    return step


def transformer(seed: int) -> Step:
    """Fine-tuning: a small decoder-like transformer learns to predict the next token."""
    from yardmaster.live.kit.models import TokenModel, ready, train_step

    torch, device, is_large = ready(seed)
    model = TokenModel(is_large=is_large).to(device)
    tokens = torch.randint(0, model.words, (16 if is_large else 2, 129 if is_large else 17),
                           device=device)  # fmt: skip

    def loss() -> Any:
        scores = model(tokens[:, :-1])
        return torch.nn.functional.cross_entropy(
            scores.reshape(-1, model.words), tokens[:, 1:].reshape(-1)
        )

    return train_step(torch, model, loss, device)


def cnn(seed: int) -> Step:
    """Training of a convolutional network on images."""
    from yardmaster.live.kit.models import convolutions

    return _classifier(seed, convolutions)


def vit(seed: int) -> Step:
    """Training of a vision transformer on images."""
    from yardmaster.live.kit.models import VisionTransformer

    return _classifier(seed, VisionTransformer)


def _classifier(seed: int, build: Callable[..., Any]) -> Step:
    from yardmaster.live.kit.models import ready, train_step

    torch, device, is_large = ready(seed)
    model = build(is_large=is_large).to(device)
    side, batch = (64, 64) if is_large else (16, 4)
    images = torch.randn(batch, 3, side, side, device=device)
    labels = torch.randint(0, 10, (batch,), device=device)

    def loss() -> Any:
        return torch.nn.functional.cross_entropy(model(images), labels)

    return train_step(torch, model, loss, device)


def inference(seed: int) -> Step:
    """Inference: the transformer answers batches of requests."""
    from yardmaster.live.kit.models import TokenModel, ready, wait_for

    torch, device, is_large = ready(seed)
    model = TokenModel(is_large=is_large).to(device).eval()
    tokens = torch.randint(0, model.words, (32 if is_large else 2, 128 if is_large else 16),
                           device=device)  # fmt: skip

    def step() -> None:
        with torch.inference_mode():
            model(tokens).argmax(-1)
        wait_for(torch, device)

    return step


KINDS: dict[str, Kind] = {
    "prepare": prepare,
    "transformer": transformer,
    "cnn": cnn,
    "vit": vit,
    "inference": inference,
}
