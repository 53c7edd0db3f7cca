"""An answer piece by piece: where each piece stands in its text, how likely it was, and where the model looked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kente.data.tokenizer import Tokenizers
from kente.decode.engine import ReadBack

Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Detail:
    """A stretch of a line that went through the model on its own: texts as the model read and wrote them, and their pieces."""

    source: str
    source_spans: Spans
    target: str
    target_spans: Spans
    log_probabilities: tuple[float, ...]
    """Of each target piece; the last is the end mark's."""
    weights: tuple[tuple[float, ...], ...]
    """(target pieces, source pieces), as in `ReadBack`; empty where the model does not attend."""

    @classmethod
    def of(cls, source: Sequence[int], target: Sequence[int], read: ReadBack, tokenizers: Tokenizers) -> Detail:
        return cls(
            tokenizers.source.decode(source),
            tuple(tokenizers.source.spans(source)),
            tokenizers.target.decode(target),
            tuple(tokenizers.target.spans(target)),
            tuple(read.log_probabilities),
            tuple(map(tuple, read.weights)),
        )
