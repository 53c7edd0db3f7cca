"""The tensors of a checkpoint on their way into another program's model: each is taken once, and none may be left over."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kente.errors import RunError

Array = NDArray[np.float32]


class Weights:
    """Tensors by the names they have in a checkpoint."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._left = dict(arrays)

    def take(self, name: str) -> Array:
        """One tensor, which is then spoken for: a copy, for CTranslate2 rounds to whole numbers in place."""
        try:
            return np.array(self._left.pop(name), dtype=np.float32)
        except KeyError:
            raise RunError(f"the weights do not fit the model's settings: {name} is missing") from None

    def require_all_taken(self) -> None:
        """Refuse weights that no part of the model asked for."""
        if self._left:
            raise RunError(
                f"the weights do not fit the model's settings: nothing knows {', '.join(sorted(self._left)[:3])}"
            )

    def tables(self, tie: str) -> tuple[Array, Array, Array]:
        """(source, target, output) tables of words; what is tied is stored once (nn.words.word_tables)."""
        source = self.take("source_embedding.weight")
        target = source if tie == "all" else self.take("target_embedding.weight")
        return source, target, self.take("output.weight") if tie == "none" else target

    def output_bias(self, tie: str) -> Array:
        """The bias of each word that is predicted; it stands beside the table that words are predicted with."""
        table = {"all": "source_embedding", "target": "target_embedding", "none": "output"}[tie]
        return self.take(f"{table}.bias")
