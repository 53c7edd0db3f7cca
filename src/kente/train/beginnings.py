"""Where weights begin before the first update, if not at random."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from kente.data.associations import associate
from kente.data.store import Store
from kente.nn.attention import CrossAttention, SelfAttention
from kente.nn.linear_attention import LinearAttention
from kente.nn.transformer import FeedForward
from kente.nn.words import Words


@torch.no_grad()
def begin_with_associations(model: nn.Module, store: Store) -> bool:
    """Put words that stand together close to each other in the model's tables, and let them through: what is added to them on their
    way around each sub-layer begins at nothing. False if the model has no tables to put them in."""
    source, target, output = (getattr(model, name, None) for name in ("source_embedding", "target_embedding", "output"))
    if not (isinstance(source, Words) and isinstance(target, Words) and isinstance(output, Words)):
        return False
    found = associate(store, source.weight.shape[1])
    if found is None:
        return False
    if source is target:
        _put(source, found.of_both())
    else:
        _put(source, found.source)
        _put(target, found.target)
    if output is not target and output.weight.shape == target.weight.shape:
        _put(output, found.target)
    _silence(model)
    return True


def _put(table: Words, vectors: Tensor) -> None:
    """Rows keep their usual length; those of words nothing is known of stay as they are."""
    vectors = vectors.to(table.weight)
    known = vectors.norm(dim=1, keepdim=True) > 0.5
    length = table.weight.norm(dim=1).mean()
    table.weight.copy_(torch.where(known, vectors * length, table.weight))


def _silence(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, SelfAttention | LinearAttention | CrossAttention):
            module.output.weight.zero_()
        elif isinstance(module, FeedForward):
            module.outer.weight.zero_()
