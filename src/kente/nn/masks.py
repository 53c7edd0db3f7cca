"""Masks. One meaning everywhere: True = may look."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor


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
