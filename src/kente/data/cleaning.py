"""Every pair is kept, or dropped with a counted reason and a few examples. Nothing is repaired: what is kept is what was read."""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kente.config import CleaningConfig
from kente.data.corpus import Pair, shorten
from kente.data.keys import Keys, Seen, composed, contains, sentence_keys, text_keys
from kente.data.scripts import UNSPACED, count_scripts, dominant_script, mostly_in
from kente.data.tags import KNOWN, untagged

EMPTY, CONTROL, TOO_LONG, RATIO, IDENTICAL, SCRIPT, DUPLICATE, IN_VALIDATION = REASONS = (
    "empty",
    "control characters",
    "too long",
    "length ratio",
    "identical",
    "wrong script",
    "duplicate",
    "in validation",
)
_EXAMPLES = 3
_SAMPLE = 10_000  # pairs from which script and usual length ratio are learned
_BATCH = 4_096
_BATCH_CHARACTERS = 4_000_000  # bounds memory where lines are huge
_LETTERS_PER_WORD = 20  # more than this many characters per allowed word is too long, spaces or not
_SLACK = 15  # characters added to both sides before their ratio is taken, so that short lines may differ

ZERO_WIDTH = "\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
"""Characters that take no room: joiners, direction marks, soft hyphens."""
_BLANK = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\u2800" + ZERO_WIDTH
_VISIBLE = re.compile(f"[^{_BLANK}]")
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")  # all but the tab


def is_blank(text: str) -> bool:
    """Nothing to see: empty, spaces of any kind, characters of no width."""
    return (
        not "!" <= text[:1] <= "~" and _VISIBLE.search(text) is None
    )  # most lines begin with a visible ASCII character


def has_control(text: str) -> bool:
    """Holds NUL, a lone CR, a line or page separator or another control character (a tab is none)."""
    return not text.isprintable() and _CONTROL.search(text) is not None


@dataclass(frozen=True)
class Profile:
    """What is usual in a corpus: the script of each side (None where mixed) and how many target characters stand for a source character."""

    source_script: str | None = None
    target_script: str | None = None
    ratio: float = 1.0

    @classmethod
    def of(cls, pairs: Iterable[Pair]) -> Profile:
        """Learned from the first thousands of pairs."""
        sample = next(batches(iter(pairs), _SAMPLE), [])
        usable = [pair for pair in sample if not (is_blank(pair.source) or is_blank(pair.target))]
        logs = [math.log(len(pair.target) / len(pair.source)) for pair in usable]
        return cls(
            dominant_script(count_scripts(pair.source for pair in usable)),
            dominant_script(count_scripts(pair.target for pair in usable)),
            math.exp(min(2.0, max(-2.0, statistics.median(logs)))) if logs else 1.0,
        )


@dataclass
class CleaningReport:
    """How many pairs were kept, how many dropped and why, with the first examples of each reason."""

    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[Pair]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return self.kept + sum(self.dropped.values())

    def drop(self, pair: Pair, reason: str) -> None:
        """Count one more, and keep its beginning if it is among the first."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1
        examples = self.examples.setdefault(reason, [])
        if len(examples) < _EXAMPLES:
            examples.append(Pair(shorten(pair.source), shorten(pair.target), pair.line))

    def lines(self) -> list[str]:
        """For people: one line for the sum, one for each reason, the most frequent first."""
        total = self.total
        if not total:
            return ["no pairs"]
        text = [f"kept {self.kept:,} of {total:,} pairs"]
        for reason, number in sorted(self.dropped.items(), key=lambda item: -item[1]):
            first = self.examples[reason][0]
            text.append(
                f"dropped {number:,} ({share(number, total)}) {reason}; line {first.line:,}: {first.source!r} | {first.target!r}"
            )
        return text

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        examples = {
            reason: [{"line": pair.line, "source": pair.source, "target": pair.target} for pair in pairs]
            for reason, pairs in self.examples.items()
        }
        return {"kept": self.kept, "dropped": dict(self.dropped), "examples": examples}


class Cleaner:
    """Judges pairs in one pass. What it has learned and seen stays with it: take a new one for another reading.

    `exclude` holds the `held_out_keys` of sources that must not be trained on, whichever of the `tags` they begin with; `profile` is learned
    from the first pairs when not given.
    """

    def __init__(
        self,
        config: CleaningConfig,
        profile: Profile | None = None,
        exclude: Keys | None = None,
        tags: Collection[str] = KNOWN,
    ) -> None:
        self.config, self.tags = config, tags
        self.profile = profile
        self.report = CleaningReport()
        self._exclude = exclude
        self._seen = Seen()

    def clean(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """The pairs worth keeping, in order; `report` is complete when the last one is out."""
        stream = iter(pairs)
        if self.profile is None:
            sample = next(batches(stream, _SAMPLE), [])
            self.profile = Profile.of(sample)
            stream = itertools.chain(sample, stream)
        for batch in batches(stream):
            yield from self.count(batch)

    def count(self, batch: Sequence[Pair]) -> list[Pair]:
        """The pairs of a batch worth keeping; the others are written to the report."""
        reasons = self.judge(batch)
        for pair, reason in zip(batch, reasons, strict=True):
            if reason is not None:
                self.report.drop(pair, reason)
        kept = [pair for pair, reason in zip(batch, reasons, strict=True) if reason is None]
        self.report.kept += len(kept)
        return kept

    def judge(self, batch: Sequence[Pair]) -> list[str | None]:
        """For each pair the reason to drop it, or None; what is kept counts as seen."""
        reasons = [self.fault(pair) for pair in batch]
        left = [place for place, reason in enumerate(reasons) if reason is None]
        if self.config.duplicates == "drop" and left:
            keys = text_keys(f"{composed(batch[place].source)}\n{composed(batch[place].target)}" for place in left)
            for place, new in zip(left, self._seen.add(keys), strict=True):
                if not new:
                    reasons[place] = DUPLICATE
        if self._exclude is not None and left:
            known = contains(self._exclude, sentence_keys(untagged(batch[place].source, self.tags) for place in left))
            for place, held_out in zip(left, known, strict=True):
                if held_out:
                    reasons[place] = IN_VALIDATION
        return reasons

    def fault(self, pair: Pair) -> str | None:
        """What is wrong with the pair in itself."""
        source, target = pair.source, pair.target
        profile = self.profile or Profile()
        if is_blank(source) or is_blank(target):
            return EMPTY
        if has_control(source) or has_control(target):
            return CONTROL
        if self._too_long(source, profile.source_script) or self._too_long(target, profile.target_script):
            return TOO_LONG
        if self.config.max_ratio and self._unlike(len(source) * profile.ratio, len(target)):
            return RATIO
        if self.config.identical == "drop" and source.strip() == target.strip():
            return IDENTICAL
        if self.config.wrong_script == "drop" and not (
            (profile.source_script is None or mostly_in(source, profile.source_script))
            and (profile.target_script is None or mostly_in(target, profile.target_script))
        ):
            return SCRIPT
        return None

    def _too_long(self, text: str, script: str | None) -> bool:
        limit = self.config.max_words
        if len(text) <= limit * 2:  # the shortest words are a letter and a space
            return False
        if len(text) > limit * (4 if script in UNSPACED else _LETTERS_PER_WORD):
            return True
        return len(text.split()) > limit

    def _unlike(self, source: float, target: float) -> bool:
        return max(source, target) + _SLACK > self.config.max_ratio * (min(source, target) + _SLACK)


def batches(pairs: Iterator[Pair], size: int = _BATCH) -> Iterator[list[Pair]]:
    """Lists of at most `size` pairs, fewer where their texts are huge."""
    batch: list[Pair] = []
    characters = 0
    for pair in pairs:
        batch.append(pair)
        characters += len(pair.source) + len(pair.target)
        if len(batch) == size or characters > _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def share(part: float, whole: float) -> str:
    """A percentage that does not round a few to none."""
    percent = 100 * part / whole if whole else 0.0
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.1f} %" if percent >= 0.1 or not part else "below 0.1 %"
