"""Which marks tell a model of many languages what is wanted of it.

M2M100 reads a mark before the source that names the source's language, and begins every translation with one that names the target's.
Marian's models of many targets read a mark before the source that names the target's.
"""

from __future__ import annotations

from kente.data.pieces import Tokenizer
from kente.data.sentencepieces import SentencePieces
from kente.data.tags import bare
from kente.errors import ConfigError

Marks = tuple[int, ...]


def languages_of(side: Tokenizer) -> dict[str, int]:
    """{"en": id of its mark}; empty for a model that knows one pair of languages."""
    return _named(side, "before") | _named(side, "within")


def language_marks(source: Tokenizer, target: Tokenizer, names: tuple[str, str]) -> tuple[Marks, Marks]:
    """(what stands before a source, what a translation begins with) for languages by these names; an empty name asks for none."""
    wanted = bool(_named(source, "within"))
    before = _mark(source, "target_language", names[1]) if wanted else _mark(source, "source_language", names[0])
    return before, () if wanted else _mark(target, "target_language", names[1])


def _named(side: Tokenizer, where: str) -> dict[str, int]:
    own = bare(side)
    return own.languages(where) if isinstance(own, SentencePieces) else {}


def _mark(side: Tokenizer, setting: str, name: str) -> Marks:
    known = languages_of(side)
    if not name:
        return ()
    if name in known:
        return (known[name],)
    listed = (
        f"it has {', '.join(sorted(known))}"
        if known
        else "it knows one pair of languages, and cannot be asked for others"
    )
    raise ConfigError(f"decode.{setting} = {name}: the model has no such language; {listed}")
