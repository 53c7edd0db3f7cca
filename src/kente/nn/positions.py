"""How a network without recurrence knows where a word stands. Attention alone cannot tell ABC from BCA (lecture 000)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn


def sinusoid(length: int, width: int, start: int = 0) -> Float[Tensor, "T D"]:
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)),  PE(pos, 2i+1) = cos(pos / 10000^(2i/D))      (lecture 001)

    Computed in double precision and rounded once, so that a position's code does not depend on the table's length.
    """
    positions = torch.arange(start, start + length, dtype=torch.float64)[:, None]
    angles = positions / 10_000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)  # (T, D/2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).float()


class Sinusoid(nn.Module):
    """Adds the sinusoid code; knows every length, trained on or not."""

    table: Tensor

    def __init__(self, width: int):
        super().__init__()
        self.width = width
        self.register_buffer("table", sinusoid(256, width), persistent=False)

    def forward(self, x: Float[Tensor, "B T D"], start: int = 0) -> Float[Tensor, "B T D"]:
        end = start + x.shape[1]
        if end > len(self.table):
            with torch.inference_mode(False):  # grown while translating, it must still serve training
                self.table = sinusoid(2 * end, self.width).to(self.table.device)
        return x + self.table[start:end].to(x.dtype)


class Learned(nn.Module):
    """Adds a trained vector for each position. It cannot extrapolate: positions beyond `limit` share the last vector."""

    def __init__(self, limit: int, width: int):
        super().__init__()
        self.vectors = nn.Embedding(limit, width)
        nn.init.normal_(self.vectors.weight, std=0.02)

    def forward(self, x: Float[Tensor, "B T D"], start: int = 0) -> Float[Tensor, "B T D"]:
        positions = torch.arange(start, start + x.shape[1], device=x.device)
        return x + self.vectors(positions.clamp(max=self.vectors.num_embeddings - 1))


class Unplaced(nn.Module):
    """Adds nothing: for rotary positions, which act inside attention, and to show what happens without any."""

    def forward(self, x: Float[Tensor, "B T D"], start: int = 0) -> Float[Tensor, "B T D"]:
        return x


class Rotary(nn.Module):
    """Turns pairs of values of queries and keys by an angle that grows with position, so that q_m . k_n depends on m - n only."""

    cosine: Tensor
    sine: Tensor

    def __init__(self, head_width: int):
        super().__init__()
        self.head_width = head_width
        self._fill(256, torch.device("cpu"))

    def _fill(self, length: int, device: torch.device) -> None:
        code = sinusoid(length, self.head_width).to(device)  # sin at even, cos at odd columns: the same angles
        self.register_buffer("sine", code[:, 0::2].contiguous(), persistent=False)
        self.register_buffer("cosine", code[:, 1::2].contiguous(), persistent=False)

    def forward(self, x: Float[Tensor, "B H T K"], start: int = 0) -> Float[Tensor, "B H T K"]:
        end = start + x.shape[2]
        if end > len(self.sine):
            with torch.inference_mode(False):  # grown while translating, it must still serve training
                self._fill(2 * end, self.sine.device)
        sine, cosine = self.sine[start:end].to(x.dtype), self.cosine[start:end].to(x.dtype)
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1).flatten(-2)
