"""Kinds of work, and the engine that is best at one: what races are about and what is remembered of them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from kente.config import DecodeConfig
from kente.decode.conversion import Numbers
from kente.decode.ctranslate2_engine import Layout

Name = Literal["ctranslate2", "native", "torch"]
NAMES: dict[Name, str] = {"ctranslate2": "CTranslate2", "native": "native", "torch": "torch"}
"""Engines, and what they are called where people read it."""
Way = tuple[Numbers, bool]
"""How an engine goes about it: its numbers, and whether it weighs a shortlist's words."""


@dataclass(frozen=True)
class Work:
    """What an engine is to be fastest at: few sentences at once or many, how wide a beam; whether torch or the compiled search may be it, or a
    shortlist help; how large batches may be."""

    many: bool
    beam: int
    torch: bool = False
    shortlist: bool = False
    native: bool = False
    batch_tokens: int = DecodeConfig.batch_tokens

    def __str__(self) -> str:
        joining = {"native": self.native, "torch": self.torch, "shortlist": self.shortlist}
        more = "".join(f", {name} too" for name, joins in joining.items() if joins)
        usual = self.batch_tokens == DecodeConfig.batch_tokens
        size = "" if usual else f", batches of {self.batch_tokens:,} tokens"
        return f"{'many' if self.many else 'few'} sentences, beam {self.beam}{size}{more}"


@dataclass(frozen=True)
class Choice:
    """The winner: an engine, CTranslate2 with its layout, the others with their `numbers` and a `shortlist` or without; sentences a second of it,
    and of those that it beat, by their names. 0 is unmeasured."""

    engine: Name
    layout: Layout | None = None
    pace: float = 0.0
    beaten: dict[str, float] = field(default_factory=dict)
    shortlist: bool = False
    numbers: Numbers = "float32"

    def __str__(self) -> str:
        own = ", int8" * (self.numbers == "int8") + ", shortlist" * self.shortlist
        how = f", {self.layout}" if self.layout else own
        if not self.pace:
            return f"{NAMES[self.engine]}{how} (not measured: the run has no validation set)"
        beaten = ", ".join(f"{name}: {pace:,.0f}" for name, pace in self.beaten.items())
        return f"{NAMES[self.engine]}{how}: {self.pace:,.0f} sentences/s when measured here" + f" ({beaten})" * bool(
            beaten
        )

    @property
    def way(self) -> Way:
        """The numbers it won with, and whether with a shortlist."""
        return (self.layout or self).numbers, (self.layout or self).shortlist

    def among_all_words(self) -> Choice:
        """The same without a shortlist."""
        layout = self.layout and dataclasses.replace(self.layout, shortlist=False)
        return dataclasses.replace(self, layout=layout, shortlist=False)

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, record: Any) -> Choice | None:
        """What was remembered; None if it cannot be used."""
        try:
            layout = None if record["layout"] is None else Layout(**record["layout"])
            usable = layout is None or (layout.numbers in get_args(Numbers) and layout.workers * layout.threads > 0)
            usable &= record["engine"] in get_args(Name) and (layout is not None) == (record["engine"] == "ctranslate2")
            beaten = {str(name): float(pace) for name, pace in record["beaten"].items()}
            pace, shortlist, numbers = float(record["pace"]), bool(record["shortlist"]), record["numbers"]
            usable &= numbers in get_args(Numbers)
            found = cls(record["engine"], layout, pace, beaten, shortlist, numbers)
            return found if usable else None
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
