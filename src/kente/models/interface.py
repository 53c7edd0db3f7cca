"""What search asks of a model, and nothing more. Architectures stay out of the search; search stays out of architectures.

One law: batch is dimension 0 of every tensor in a State, and a State is a plain dataclass, never a cache hidden in a module.

A batch is made of rows, one for each answer being written. Search may write several answers to a sentence at once, as many for each
and side by side. What belongs to the sentence and not to its answers, such as the source, need not be there for every row: a field
marked as SHARED has one entry for each sentence. A State without such fields works too; there, everything is a row's own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor

State = Any  # a dataclass of tensors, tuples of tensors and further such dataclasses


SHARED = {"shared": True}
"""field(metadata=SHARED): tensors of a State that have one entry for each sentence, not for each row."""


@dataclass
class Step:
    """One word further: logits (B, V) for the next token, the state after reading this one, attention over the source (B, S) if the model has any.

    The logits are the caller's to write on.
    """

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
        """Read the source (B, S) once; source_mask is True where a token stands. One row for each sentence."""
        ...

    def step(self, state: State, tokens: Tensor) -> Step:
        """Read one token for each row (B,) and say what may come next.

        It may write into the state's own buffers, beyond what they hold: of two steps from one state, only the last can be carried on.
        """
        ...

    def look(self, source: Tensor, source_mask: Tensor, target: Tensor) -> list[AttentionMap]:
        """Read source and target input (B, T) in one go with every attention weight visible."""
        ...


@runtime_checkable
class Encodes(Protocol):
    """A model whose reading of a text can be had by itself: a translator's encoder, a masked encoder, a language model."""

    def encode(self, source: Tensor, source_mask: Tensor) -> Tensor:
        """A vector for each token in its context, (B, S, D); source_mask (B, S) is True where a token stands."""
        ...


class Output(Protocol):
    """Turns hidden vectors into scores of words."""

    def scores(self, hidden: Tensor) -> Tensor: ...


@runtime_checkable
class Narrowable(Protocol):
    """A Generator that can weigh a few words instead of all: step(state, tokens, model.narrowed(ids)) gives logits of those ids.

    ids are (A,) for all sentences or (B, A) for each its own.
    """

    def narrowed(self, ids: Tensor) -> Output: ...

    def step(self, state: State, tokens: Tensor, output: Output | None = None) -> Step: ...


@runtime_checkable
class Trims(Protocol):
    """A Generator whose state may become narrower once the longest sentences have left."""

    def trimmed(self, state: State, width: int) -> State:
        """The state of sentences of at most so many source tokens, without the padding beyond."""
        ...


def select(state: State, rows: Tensor) -> State:
    """Keep, repeat or reorder rows, each with its sentence: every tensor x becomes x[rows]. For states with one row for each sentence."""
    return regroup(state, rows, rows)


def regroup(state: State, rows: Tensor, sentences: Tensor | None = None) -> State:
    """Keep, repeat or reorder rows beside their sentences: x[rows], and x[sentences] of what is shared.

    Without `sentences` all stay where they are, and nothing shared is touched.
    """

    def pick(x: Tensor, is_shared: bool) -> Tensor:
        index = sentences if is_shared else rows
        return x if index is None else x.index_select(0, index)

    return _each(pick, state)


def join(states: Sequence[State]) -> State:
    """One state of all their rows and sentences. Where sizes beyond the batch differ, the smaller are filled up with zeros.

    For models with `joins = True`: in their states zeros beyond the end mean nothing.
    """

    def put(x: Tensor, _: bool, *others: Tensor) -> Tensor:
        wanted = [max(sizes) for sizes in zip(*(y.shape[1:] for y in (x, *others)), strict=True)]
        return torch.cat([_filled_up(y, wanted) for y in (x, *others)])

    return _each(put, *states)


def _filled_up(x: Tensor, sizes: list[int]) -> Tensor:
    """x (B, ...) with zeros at the end of each dimension up to these sizes."""
    missing = [wanted - there for wanted, there in zip(sizes, x.shape[1:], strict=True)]
    return F.pad(x, [pad for size in reversed(missing) for pad in (0, size)]) if any(missing) else x


def _each(change: Callable[..., Tensor], state: State, *others: State, is_shared: bool = False) -> State:
    """A state of the same form: change(tensor, is it shared?, the others' tensors) in place of every tensor."""
    if isinstance(state, Tensor):
        return change(state, is_shared, *others)
    if isinstance(state, tuple | list):
        parts = zip(state, *others, strict=True)
        return type(state)(_each(change, *part, is_shared=is_shared) for part in parts)
    if dataclasses.is_dataclass(state) and not isinstance(state, type):
        changed = {
            f.name: _each(
                change,
                *(getattr(one, f.name) for one in (state, *others)),
                is_shared=is_shared or f.metadata.get("shared", False),
            )
            for f in dataclasses.fields(state)
        }
        return dataclasses.replace(state, **changed)
    return state
