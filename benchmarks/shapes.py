"""The models that are measured, each once for every peer. Nothing here needs more than Python: adapters import it in any environment."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

VOCABULARY = 8000
"""Pieces of the one joint BPE vocabulary that every peer is given."""
BATCH_TOKENS = 4096
"""Target tokens in a batch, padding included; the source side may hold as many."""
DROPOUT = 0.1
SMOOTHING = 0.1
PAD, UNK, BOS, EOS = 0, 1, 2, 3


@dataclass(frozen=True)
class Shape:
    """Layers and widths of one architecture, in words that fit all peers. A recurrent shape has one layer on each side, no heads."""

    name: str
    kind: Literal["transformer", "recurrent"]
    width: int
    layers: int = 1
    feedforward: int = 0
    heads: int = 0
    embedding: int = 0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("tiny", "transformer", width=128, layers=4, feedforward=256, heads=4, embedding=128),
        Shape("small", "transformer", width=256, layers=4, feedforward=1024, heads=4, embedding=256),
        Shape("base", "transformer", width=512, layers=6, feedforward=2048, heads=8, embedding=512),
        Shape("gru", "recurrent", width=208, embedding=128),
    )
}
"""tiny and small are Kente's recipes of that name, base is the paper's, gru is Kente's recipe gru-attention."""
