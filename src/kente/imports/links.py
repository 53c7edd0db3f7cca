"""How tensors of another layout become ours and, read the other way, ours theirs.

A layout is a list of links. Each says of one tensor of ours which of theirs it is made of, stacked; and whether its rows are words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

from kente.errors import UsageError
from kente.imports.theirs import Tensors

IMPOSSIBLE = -1e4
"""Bias of a mark of ours that the model has no word for: it is never predicted, in half precision either."""
Side = Literal["source", "target"]


@dataclass(frozen=True)
class Vocabulary:
    """Their rows of words in our order: PAD, UNK, BOS and EOS first, then all others as they come.

    Where one word of theirs is several marks of ours (GPT-2 has one mark for everything), all but one of ours are `copies`.
    """

    marks: tuple[int, ...]
    """Their ids of our four."""
    copies: tuple[int, ...]
    """Those of our four ids that are copies."""
    size: int
    """Rows that they have."""

    @cached_property
    def order(self) -> list[int]:
        """Their id for each of ours."""
        return [*self.marks, *(number for number in range(self.size) if number not in self.marks)]

    def ours(self, theirs: Tensor) -> Tensor:
        if len(theirs) != self.size:
            raise UsageError(f"the tokenizer has {self.size:,} words, but the model has {len(theirs):,}")
        return theirs[torch.tensor(self.order)]

    def theirs(self, ours: Tensor) -> Tensor:
        owned = torch.tensor([number for number in range(len(self.order)) if number not in self.copies])
        rows = ours.new_zeros(self.size, *ours.shape[1:])
        rows[torch.tensor(self.order)[owned]] = ours[owned]
        return rows

    def as_dict(self) -> dict[str, Any]:
        return {"marks": list(self.marks), "copies": list(self.copies), "size": self.size}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Vocabulary:
        return cls(tuple(values["marks"]), tuple(values["copies"]), values["size"])


Vocabularies = Mapping[Side, Vocabulary]


@dataclass(frozen=True)
class Link:
    """One tensor of ours. `transposed`: they keep the matrix as (in, out). `words`: its rows are words of that side.

    Without any tensor of theirs it is the bias of words: nothing for theirs, impossible for copies.
    """

    ours: str
    theirs: tuple[str, ...]
    transposed: bool = False
    words: Side | None = None

    def read(self, tensors: Tensors, vocabularies: Vocabularies) -> Tensor:
        """Our tensor, from theirs."""
        parts = [tensors.take(name) for name in self.theirs]
        if self.words is None:
            return torch.cat([part.T if self.transposed else part for part in parts]).contiguous()
        vocabulary = vocabularies[self.words]
        bias = self.ours.endswith(".bias")
        rows = parts[0] if parts else torch.zeros(vocabulary.size)
        found = vocabulary.ours(rows.flatten() if bias else rows)
        if bias:
            found[list(vocabulary.copies)] = IMPOSSIBLE
        return found

    def write(self, tensor: Tensor, vocabularies: Vocabularies) -> Iterator[tuple[str, Tensor]]:
        """(name, tensor) of theirs, from ours."""
        if self.words is not None:
            tensor = vocabularies[self.words].theirs(tensor)
            if self.theirs == ("final_logits_bias",):
                tensor = tensor[None]
        for name, part in zip(self.theirs, tensor.chunk(max(1, len(self.theirs))), strict=False):
            yield name, (part.T if self.transposed else part).contiguous().clone()


def linear(ours: str, *theirs: str, transposed: bool = False) -> list[Link]:
    """Matrix and bias."""
    return [
        Link(f"{ours}.weight", tuple(f"{name}.weight" for name in theirs), transposed),
        Link(f"{ours}.bias", tuple(f"{name}.bias" for name in theirs)),
    ]


def norm(ours: str, theirs: str) -> list[Link]:
    return linear(f"{ours}.norm" if ours else "norm", theirs)
