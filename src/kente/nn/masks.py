"""Masks. One meaning everywhere: True = may look."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

LEAST = 16
"""Positions to look at, at the least, where nothing is learnt from them: over fewer, torch's softmax on a CPU leaves its fast path, and attention to
14 words takes twice as long as to 16. Those that are missing are there and may not be looked at."""


def causal_mask(
    length: int, past: int = 0, device: torch.device | None = None
) -> Bool[Tensor, "{length} {past}+{length}"]:
    """Position t may look at itself and everything before it, the `past` positions already written included."""
    return torch.ones(length, past + length, dtype=torch.bool, device=device).tril(diagonal=past)


def padding_mask(mask: Bool[Tensor, "B S"]) -> Bool[Tensor, "B 1 1 S"]:
    """A mask over tokens, shaped so that it fits scores (B, H, T, S)."""
    return mask[:, None, None, :]


def as_numbers(mask: Bool[Tensor, "*B"], like: Tensor) -> Float[Tensor, "*B"]:
    """0 where one may look, -inf where not: to be added to the scores of many layers."""
    return like.new_zeros(mask.shape).masked_fill_(~mask, -math.inf)


def up_to_least(x: Tensor, dim: int) -> Tensor:
    """x with zeros, or False, behind its end: LEAST places along a dimension (counted from the last, negative)."""
    missing = LEAST - x.shape[dim]
    return x if missing <= 0 else F.pad(x, [0, 0] * (-1 - dim) + [0, missing])
