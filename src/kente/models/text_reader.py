"""A whole text as one vector, and the class it belongs to: any encoder, a pooling, perhaps a linear layer (lecture 004; BERT, section 3.2).

vector = pool(encode(text))          logits = W vector + b
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from kente.config import HeadConfig
from kente.models.interface import Encodes
from kente.nn.dropout import Dropout
from kente.nn.linear import Linear
from kente.nn.pooling import AttentionPool, MarkPool, MeanPool

ONE_WAY = ("language", "recurrent-language")
"""Architectures that read from left to right: only the last mark has seen the whole text."""


class TextReader(nn.Module):
    """An encoder that reads, what makes one vector of its states, and what tells classes by it."""

    def __init__(self, model: nn.Module, head: HeadConfig):
        super().__init__()
        width = keep_reading(model)
        self.encoder = model
        kind: str = model.config.kind  # type: ignore[union-attr, assignment]
        self.pool = _pool(head, width, one_way=kind in ONE_WAY)
        self.dropout = Dropout(head.dropout)
        self.output: Linear | None = None
        if head.kind == "classes":
            self.output = Linear(width, head.classes)
            nn.init.normal_(self.output.weight, std=0.02)
            nn.init.zeros_(self.output.bias)

    def encode(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        """A vector for each word in its context."""
        return self.encoder.encode(source, source_mask)  # type: ignore[operator]

    def forward(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
        """One vector for each text."""
        return self.pool(self.encode(source, source_mask), source_mask)

    def directions(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
        """The same, all of length one: their products are cosines."""
        return F.normalize(self(source, source_mask), dim=-1)

    def predict(self, hidden: Float[Tensor, "B D"]) -> Float[Tensor, "B C"]:
        """Logits over the classes; without classes, the vectors themselves."""
        return hidden if self.output is None else self.output(self.dropout(hidden))


def _pool(head: HeadConfig, width: int, one_way: bool) -> nn.Module:
    match head.pooling:
        case "mean":
            return MeanPool()
        case "cls":
            return MarkPool(last=one_way or not head.begins)
        case "attention":
            return AttentionPool(width)


def keep_reading(model: nn.Module) -> int:
    """Let go of the parts that reading does not need, a decoder or an output; returns the size of the vectors that reading gives.

    Which they are, a tiny text tells: no gradient goes from what was read to them.
    """
    assert isinstance(model, Encodes)
    was_training = model.training
    model.eval()
    parameters = list(model.parameters())
    ids = torch.ones(1, 2, dtype=torch.long, device=parameters[0].device)
    with torch.enable_grad():
        states = model.encode(ids, torch.ones_like(ids, dtype=torch.bool))
        movable = [parameter for parameter in parameters if parameter.requires_grad]
        found = torch.autograd.grad(states.sum(), movable, allow_unused=True)
    used = {id(parameter) for parameter, gradient in zip(movable, found, strict=True) if gradient is not None}  # type: ignore[redundant-expr]
    for name, part in list(model._modules.items()):  # one part may go by two names, and must lose both
        own = {id(parameter) for parameter in part.parameters()} if part else set()
        if own and not own & used:
            delattr(model, name)
    model.train(was_training)
    return states.shape[-1]
