"""Drawing words at random. A draw depends on the seed, the sentence and the number of the sample, never on the rest of the batch."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from kente.config import DecodeConfig
from kente.decode.hypothesis import Living


class Sampler:
    """Draws the next token of every row from the model's distribution, sharpened and cut as the settings say."""

    def __init__(
        self, config: DecodeConfig, sentences: list[list[int]], samples: int, steps: list[int], device: torch.device
    ) -> None:
        self.config = config
        rows = zip(sentences, steps, strict=True)
        draws = [
            _uniform(config.seed, sentence, sample, count) for sentence, count in rows for sample in range(samples)
        ]
        self.draws = pad_sequence(draws, batch_first=True).to(device)  # (B * samples, steps) in [0, 1)

    def __call__(self, scores: Tensor, living: Living) -> Tensor:
        """A column of `scores` (N, V) for each row, which is the sample that the row's owner says."""
        return self.draw(scores, living.owner, living.written)

    def draw(self, scores: Tensor, lines: Tensor, positions: Tensor) -> Tensor:
        """A column for each row; row i writes sample lines[i] and stands at positions[i]."""
        config = self.config
        probabilities, ids = narrow(
            torch.softmax(scores / config.temperature, dim=-1), config.top_k, config.top_p, config.min_p
        )
        mass = probabilities.double().cumsum(1)
        points = self.draws[lines, positions, None] * mass[:, -1:]
        places = torch.searchsorted(mass, points, right=True).clamp(max=mass.shape[1] - 1)
        return places[:, 0] if ids is None else ids.gather(1, places)[:, 0]


def narrow(probabilities: Tensor, top_k: int, top_p: float, min_p: float = 0.0) -> tuple[Tensor, Tensor | None]:
    """The k likeliest, then the likeliest that together reach p, with their ids; all of them (ids None) where nothing is cut.

    `min_p` leaves out what is less than that share as likely as the likeliest.
    """
    if min_p:
        probabilities = probabilities.masked_fill(probabilities < min_p * probabilities.amax(1, keepdim=True), 0.0)
    if not top_k and top_p >= 1:
        return probabilities, None
    count = min(top_k or probabilities.shape[1], probabilities.shape[1])
    likeliest, ids = probabilities.topk(count, dim=1)
    share = likeliest / likeliest.sum(1, keepdim=True)
    before = share.cumsum(1) - share
    return likeliest.masked_fill(before >= top_p, 0.0), ids


def _uniform(seed: int, sentence: list[int], sample: int, steps: int) -> Tensor:
    name = f"{seed} {sample} {' '.join(map(str, sentence))}"
    key = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)
    return torch.rand(steps, generator=torch.Generator().manual_seed(key), dtype=torch.float64)
