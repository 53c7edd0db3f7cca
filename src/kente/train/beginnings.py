"""Where weights begin before the first update, if not at random."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from kente.data.associations import associate
from kente.data.store import Store
from kente.nn.words import Words


@torch.no_grad()
def begin_with_associations(model: nn.Module, store: Store) -> bool:
    """Put words that stand in the same pairs close to each other in the model's tables. False if it has no table to put them in."""
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
    return True


def _put(table: Words, vectors: Tensor) -> None:
    """Rows keep their length; those of words nothing is known of stay as they are."""
    vectors = vectors.to(table.weight)
    known = vectors.norm(dim=1, keepdim=True) > 0.5
    lengths = table.weight.norm(dim=1, keepdim=True).mean()
    table.weight.copy_(torch.where(known, vectors * lengths, table.weight))
