"""The runs that are served: which languages each translates, and the engines behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kente.decode.engine import Deadline, rows_for
from kente.decode.translator import Translation, Translator
from kente.errors import UsageError
from kente.serve.queue import Kind

WARMING = "1"
"""Something every model can read, to have it loaded and measured before people come."""
FEW, MANY = 1, 16
"""Sentences at once for which engines may be set up otherwise."""


@dataclass(frozen=True)
class Pair:
    """A run and the languages it translates from and to, as BCP 47 codes."""

    source: str
    target: str
    run: Path
    lowercase: bool = False
    """The model knows small letters only."""

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"


class Translators:
    """Translators by their languages. `load` turns a run folder into one."""

    def __init__(self, pairs: Sequence[Pair], load: Callable[[Path], Translator]) -> None:
        self.pairs: dict[tuple[str, str], Pair] = {}
        self._load, self._loaded = load, dict[tuple[str, str], Translator]()
        for pair in pairs:
            other = self.pairs.setdefault((pair.source, pair.target), pair)
            if other is not pair:
                raise UsageError(f"{other.run} and {pair.run} both translate {pair}; serve one of them")

    @property
    def ready(self) -> bool:
        return len(self._loaded) == len(self.pairs)

    def load(self) -> None:
        """Load every run, and let each engine find its best set-up for one sentence and for many."""
        for languages, pair in self.pairs.items():
            translator = self._load(pair.run)
            for count in (FEW, MANY):
                translator.translate([WARMING] * count)
            self._loaded[languages] = translator

    def translate(self, kind: Kind, texts: Sequence[str], late: Deadline) -> list[Translation]:
        """Translations of sentences, each taken whole: whoever read the text has cut it."""
        translator = self._loaded[kind.source, kind.target]
        return translator.translate(texts, n_best=kind.answers, split=False, details=kind.words, deadline=late)

    def of(self, pair: Pair) -> Translator:
        return self._loaded[pair.source, pair.target]

    def width(self, kind: Kind) -> int:
        """Source tokens of a full batch."""
        config = self._loaded[kind.source, kind.target].config
        return max(1, config.batch_tokens // rows_for(config, kind.answers))

    def tokens(self, kind: Kind, text: str) -> int:
        """Tokens of a sentence, its end mark counted."""
        return len(self._loaded[kind.source, kind.target].tokenizers.source.encode(text)) + 1

    def habits(self, pair: Pair) -> tuple[bool, bool]:
        """(whether the model wants a text sentence by sentence, whether it knows small letters only)."""
        return self.of(pair).split_sentences, pair.lowercase

    def engine(self, pair: Pair) -> str:
        return self.of(pair).engine.name

    # ------------------------------------------------------------ languages

    @property
    def sources(self) -> list[str]:
        return list(dict.fromkeys(source for source, _ in self.pairs))

    @property
    def targets(self) -> list[str]:
        return list(dict.fromkeys(target for _, target in self.pairs))

    def targets_of(self, source: str) -> list[str]:
        return [target for other, target in self.pairs if other == source]

    def sources_of(self, target: str) -> list[str]:
        return [source for source, other in self.pairs if other == target]
