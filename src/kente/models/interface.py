"""What search asks of a model, and nothing more. Architectures stay out of the search; search stays out of architectures.

One law: batch is dimension 0 of every tensor in a State, and a State is a plain dataclass, never a cache hidden in a module.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

State = Any  # a dataclass of tensors, tuples of tensors and further such dataclasses


@dataclass
class Step:
    """One word further: logits (B, V) for the next token, the state after reading this one, attention over the source (B, S) if the model has any."""

    logits: Tensor
    state: State
    attention: Tensor | None = None


@dataclass
class AttentionMap:
    """Where one head looked: weights (B, T, S), rows sum to one. `kind` is encoder, decoder or cross."""

    kind: str
    layer: int
    head: int
    weights: Tensor


class Generator(Protocol):
    """A model that writes one token at a time."""

    def start(self, source: Tensor, source_mask: Tensor) -> State:
        """Read the source (B, S) once; source_mask is True where a token stands."""
        ...

    def step(self, state: State, tokens: Tensor) -> Step:
        """Read one token for each row (B,) and say what may come next."""
        ...

    def look(self, source: Tensor, source_mask: Tensor, target: Tensor) -> list[AttentionMap]:
        """Read source and target input (B, T) in one go with every attention weight visible."""
        ...


def select(state: State, rows: Tensor) -> State:
    """Keep, repeat or reorder batch rows: every tensor x becomes x[rows]."""
    if isinstance(state, Tensor):
        return state.index_select(0, rows)
    if isinstance(state, tuple | list):
        return type(state)(select(part, rows) for part in state)
    if dataclasses.is_dataclass(state) and not isinstance(state, type):
        return dataclasses.replace(
            state, **{f.name: select(getattr(state, f.name), rows) for f in dataclasses.fields(state)}
        )
    return state
