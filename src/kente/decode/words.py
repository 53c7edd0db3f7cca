"""The words a step weighs: all of them, or the few on the sentences' shortlists.

A probability still is a share among all words. How much of it the words off a list have is told by a sample of them, the same for all
sentences: each of those that are not on a sentence's list speaks for many. Shares among the listed alone would be larger, most of all
where the model is in doubt, and answers would come out longer than they do with all words.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kente.decode.hypothesis import NEVER, Living
from kente.models.interface import Generator, Narrowable, Output

SAMPLE = 128
"""Words that speak for those off a list."""


@dataclass(frozen=True)
class Words:
    """What the columns of the logits (N, A) are: all words, or `ids`.

    A column may be foreign to a sentence, there for the sake of others, or of the sample: those speak for no word of it, or are not chosen.
    No answer depends on its neighbours.
    """

    never: Tensor  # (B, x) columns that are never chosen
    output: Output | None = None
    ids: Tensor | None = (
        None  # (L,) for all sentences, sorted; or (B, L), for each its own; the sample stands behind them
    )
    speaks_for: Tensor | None = None  # (B, A) logarithm of how many words a column speaks for

    @classmethod
    def of(cls, model: Generator | Narrowable, living: Living, never: Tensor, several: bool) -> Words:
        """The words of the sentences at hand: put together, or for each its own if it has `several` rows.

        With one row a sentence, one product is faster although most of it is foreign to each; with several, many small ones are.
        """
        sentences, vocabulary = living.allowed.shape
        never = never.expand(sentences, -1)
        if not vocabulary:
            return cls(never)
        assert isinstance(model, Narrowable), "a shortlist needs a model that can weigh a few words alone"
        sample = torch.arange(0, vocabulary, max(1, vocabulary // SAMPLE), device=never.device)
        layout = _each_its_own if several else _together
        output, ids, own = layout(model, living.allowed, sample)
        off = ~living.allowed[:, sample]  # which of the sample are off a sentence's list
        others = (vocabulary - living.allowed.sum(1)) / off.sum(1)  # words off the list for each of those
        for_itself = others.new_zeros(own.shape).masked_fill_(~own, NEVER)
        speaks_for = torch.cat([for_itself, torch.where(off, others.log()[:, None], NEVER)], dim=1)
        words = cls(never, output, ids, speaks_for)
        rows = torch.arange(sentences, device=never.device).repeat_interleave(never.shape[1])
        return cls(words.columns(rows, never.flatten()).view_as(never), output, ids, speaks_for)

    def of_some(self, sentences: Tensor) -> Words | None:
        """The words of some of the sentences, where those put together for all will do; None where each has its own."""
        if self.ids is not None and self.ids.dim() > 1:
            return None
        speaks_for = None if self.speaks_for is None else self.speaks_for.index_select(0, sentences)
        return Words(self.never.index_select(0, sentences), self.output, self.ids, speaks_for)

    def columns(self, sentences: Tensor, ids: Tensor) -> Tensor:
        """Where these ids, each of its sentence, stand in the logits; both (M,)."""
        if self.ids is None:
            return ids
        if self.ids.dim() == 1:
            return torch.searchsorted(self.ids, ids)
        return (self.ids[sentences] == ids[:, None]).int().argmax(1)

    def tokens(self, columns: Tensor) -> Tensor:
        """The ids of these columns (B, C) of each sentence; of those that cannot be chosen, any."""
        if self.ids is None:
            return columns
        columns = columns.clamp(max=self.ids.shape[-1] - 1)
        return self.ids[columns] if self.ids.dim() == 1 else self.ids.gather(1, columns)

    def log_softmax(self, logits: Tensor) -> Tensor:
        """log p(word) for each row and column (N, A), -inf where a word is foreign or of the sample."""
        if self.ids is None or self.speaks_for is None:
            return torch.log_softmax(logits, dim=-1)
        logits.view(len(self.speaks_for), -1, logits.shape[1]).add_(self.speaks_for[:, None])  # (B, G, A)
        shares = logits.log_softmax(-1)
        shares[:, self.ids.shape[-1] :] = NEVER
        return shares

    def forbid(self, scores: Tensor) -> None:
        """Set to -inf, in place, what is never chosen."""
        if self.ids is None:
            scores.index_fill_(1, self.never[0], NEVER)
        else:
            grouped = scores.view(len(self.never), -1, scores.shape[1])
            grouped.scatter_(2, self.never[:, None].expand(-1, grouped.shape[1], -1), NEVER)


Layout = tuple[Output, Tensor, Tensor]
"""(output, ids, own): `own` (B, L) are the columns of words on a sentence's list. The output ends with the sample."""


def _together(model: Narrowable, allowed: Tensor, sample: Tensor) -> Layout:
    """One column for every word on any list."""
    ids = allowed.any(0).nonzero()[:, 0]
    return model.narrowed(torch.cat([ids, sample])), ids, allowed[:, ids]


def _each_its_own(model: Narrowable, allowed: Tensor, sample: Tensor) -> Layout:
    """For each sentence the words on its list, filled up to the longest."""
    lengths = allowed.sum(1)
    rows, words = allowed.nonzero(as_tuple=True)
    places = torch.arange(len(words), device=words.device) - (lengths.cumsum(0) - lengths)[rows]
    ids = words.new_zeros(len(allowed), int(lengths.max()))
    ids[rows, places] = words
    own = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
    return _SideBySide(model.narrowed(ids), model.narrowed(sample)), ids, own


@dataclass(frozen=True)
class _SideBySide:
    """The scores of two outputs, one after the other."""

    one: Output
    other: Output

    def scores(self, hidden: Tensor) -> Tensor:
        return torch.cat([self.one.scores(hidden), self.other.scores(hidden)], dim=1)
