"""Whether a comparison is one: the same amount of text, batches of one size, answers of one length. What is not is written under its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Samples = Mapping[str, Sequence[Mapping[str, Any]]]
"""The samples of each variant of a table."""

LENGTHS_APART = 0.02
"""Share by which the lengths of answers may differ before sentences a second are no longer comparable."""
BLEU_APART = 0.1
DISTURBED = 0.1
"""Share of the cores that other programs may use while something is measured."""
BATCHES_APART = 0.25
"""Share by which a batch, padding included, may differ from the size everyone was given."""


def uneven_answers(samples: Samples, reference: str) -> list[str]:
    """Engines with the same weights should write as much, and score as high, as `reference` does."""
    complaints = []
    first = _first(samples.get(reference, ()))
    if first is None or not first.get("output_tokens"):
        return [f"{reference} has no sample to compare lengths with"]
    wanted = first["output_tokens"] / first.get("sentences", 1)
    for variant, theirs in samples.items():
        sample = _first(theirs)
        if sample is None or not sample.get("output_tokens"):
            continue
        tokens = sample["output_tokens"] / sample.get("sentences", 1)
        if abs(tokens - wanted) > LENGTHS_APART * wanted:
            complaints.append(f"{variant} wrote {tokens:.1f} tokens a sentence where {reference} wrote {wanted:.1f}")
        apart = abs(sample.get("bleu", first.get("bleu", 0)) - first.get("bleu", 0))
        if apart > BLEU_APART:
            complaints.append(
                f"{variant} scored {sample['bleu']:.2f} BLEU where {reference} scored {first['bleu']:.2f}"
            )
    return complaints


def uneven_batches(samples: Samples, batch_tokens: int) -> list[str]:
    """Every update should have read about `batch_tokens` on each side, padding included."""
    complaints = []
    for variant, theirs in samples.items():
        for sample in theirs:
            if not sample.get("updates") or sample.get("padding") is None:
                continue
            cells = sample["tokens"] / (1 - sample["padding"]) / sample["updates"] / 2
            if abs(cells - batch_tokens) > BATCHES_APART * batch_tokens:
                complaints.append(f"{variant} had {cells:,.0f} places a side in a batch, not {batch_tokens:,}")
                break
    return complaints


def disturbed(samples: Samples) -> list[str]:
    """Variants in most of whose samples other programs were at work."""
    complaints = []
    for variant, theirs in samples.items():
        shares = sorted(sample.get("others_busy", 0.0) for sample in theirs if sample.get("error") is None)
        if shares and shares[len(shares) // 2] > DISTURBED:
            complaints.append(f"while {variant} ran, other programs used {shares[len(shares) // 2]:.0%} of the cores")
    return complaints


def same_text(counts: Mapping[str, tuple[int, int]]) -> list[str]:
    """(source tokens, target tokens) of the whole corpus as each reader counts them: they must be the same."""
    wanted = next(iter(counts.values()), (0, 0))
    return [
        f"{reader} reads {source:,} source and {target:,} target tokens, not {wanted[0]:,} and {wanted[1]:,}"
        for reader, (source, target) in counts.items()
        if (source, target) != wanted
    ]


def _first(samples: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    return next((sample for sample in samples if sample.get("error") is None), None)
