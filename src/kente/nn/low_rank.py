"""Low-rank adaptation (Hu et al., 2021): what a linear map has learned stays, and a small map beside it learns what is new.

y = (W + B A) x + b        A is (rank, in), B is (out, rank) and begins at zero

Afterwards the two are one matrix, W + B A, and nobody can tell (`checkpoints.merged`). The paper's factor alpha / rank is left to the
learning rate.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kente.nn.linear import linear


class LowRank(nn.Module):
    """A linear map that is fixed, and one of low rank beside it that learns."""

    def __init__(self, fixed: nn.Linear, rank: int):
        super().__init__()
        self.fixed = fixed.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, fixed.in_features) * fixed.in_features**-0.5)
        self.up = nn.Parameter(torch.zeros(fixed.out_features, rank))

    @property
    def weight(self) -> Tensor:
        """W + B A, for whoever reads the matrix instead of applying it."""
        return self.fixed.weight + self.up @ self.down

    @property
    def bias(self) -> Tensor | None:
        return self.fixed.bias

    def forward(self, x: Float[Tensor, "*B in"]) -> Float[Tensor, "*B out"]:
        return self.fixed(x) + linear(linear(x, self.down), self.up)


def linear_maps(model: nn.Module) -> list[tuple[nn.Module, str, nn.Linear]]:
    """(where it stands, its name there, the map) of every plain linear one; the normalised ones of convolutions are others."""
    return [
        (module, name, child)
        for module in model.modules()
        for name, child in module.named_children()
        if isinstance(child, nn.Linear)
    ]


def with_low_rank(model: nn.Module, rank: int) -> nn.Module:
    """The model with a map of low rank beside each of its linear ones, in place; all else no longer learns."""
    model.requires_grad_(False)
    for module, name, child in linear_maps(model):
        setattr(module, name, LowRank(child, min(rank, child.in_features, child.out_features)))
    return model


def plain_names(model: nn.Module) -> dict[str, nn.Parameter]:
    """Every weight under the name it has in the model without maps of low rank; tied ones under each of their names."""
    return {name.replace(".fixed.", "."): p for name, p in model.named_parameters(remove_duplicate=False)}
