"""One vector for a whole text, from the vectors of its words (lecture 004's embeddings for matching, clustering, classification)."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from kente.nn.attention import attend


class MeanPool(nn.Module):
    """c = sum_t h_t / T over the tokens that stand there."""

    def forward(self, states: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
        there = mask[..., None].to(states.dtype)
        return (states * there).sum(dim=1) / there.sum(dim=1)


class MarkPool(nn.Module):
    """c = h_1, the mark that opens the text; or h_T, the one that ends it, where only that one has read everything."""

    def __init__(self, last: bool = False):
        super().__init__()
        self.last = last

    def forward(self, states: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
        if not self.last:
            return states[:, 0]
        return states[torch.arange(len(states), device=states.device), mask.sum(dim=1) - 1]


class AttentionPool(nn.Module):
    """c = sum_t a_t h_t  with  a = softmax_t(q . h_t): many-to-one attention, its query learned. It begins as the mean."""

    def __init__(self, width: int):
        super().__init__()
        self.query = nn.Parameter(torch.zeros(width))

    def forward(self, states: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
        return self.attend(states, mask)[0]

    def attend(
        self, states: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"]
    ) -> tuple[Float[Tensor, "B D"], Float[Tensor, "B S"]]:
        """(c, a)"""
        context, weights = attend((states @ self.query)[:, None], states, mask[:, None])
        return context[:, 0], weights[:, 0]
