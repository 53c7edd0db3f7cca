"""What a comparison says, in sentences that follow from its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from kente.measure.comparison import Bucket, System

SIGNIFICANT = 0.05
ENOUGH = 10
"""Sentences of a length below which nothing is said of it; the table shows it all the same."""


def findings(
    systems: Sequence[System], buckets: Sequence[Bucket], trained_length: int, unit: str = "words"
) -> tuple[str, ...]:
    """The winner, the effect of length, the alignments: whatever can be said of these systems."""
    told = [
        _winner(systems),
        _unequal(systems),
        *_length_effect(systems, buckets, trained_length, unit),
        *_alignments(systems),
    ]
    return tuple(sentence for sentence in told if sentence)


def _winner(systems: Sequence[System]) -> str:
    best, *others = sorted(systems, key=lambda system: -system.bleu.value)
    if not others:
        return f"{best.name} reaches BLEU {best.bleu.value:.1f}."
    level = [o.name for o in others if o.significance and o.significance.p >= SIGNIFICANT]
    second = others[0]
    lead = f"{best.name} does best: BLEU {best.bleu.value:.1f}, against {second.bleu.value:.1f} for {second.name}"
    if level:
        return f"{lead}; a test set of this size cannot tell it from {_listed(level)}."
    return f"{lead}; its lead over every other system is significant."


def _unequal(systems: Sequence[System]) -> str:
    """A warning where time and updates both differ: then neither budget was the same."""
    minutes, updates = [s.minutes for s in systems], [s.updates for s in systems]
    if max(minutes) <= 1.25 * min(minutes) or max(updates) == min(updates):
        return ""
    each = ", ".join(f"{system.name} {system.minutes:.1f}" for system in systems)
    return f"They were not trained equally long (minutes: {each}), so part of the difference is time."


def _length_effect(systems: Sequence[System], buckets: Sequence[Bucket], trained_length: int, unit: str) -> list[str]:
    """How much each kind loses from the shortest to the longest sentences of trained length, and what is left beyond."""
    telling = [i for i, bucket in enumerate(buckets) if bucket.sentences >= ENOUGH]
    within = [i for i in telling if not trained_length or buckets[i].low <= trained_length]
    beyond = [i for i in telling if i not in within]
    told = []
    for title, group in _groups(systems).items():
        if len(within) > 1:
            short, long = _mean(group, within[0]), _mean(group, within[-1])
            first, last = buckets[within[0]].label, buckets[within[-1]].label
            verb = "falls" if long < short else "rises"
            told.append(
                f"{title} ({_listed([system.name for system in group])}): BLEU {verb} from {short:.1f} on sentences of {first} {unit} "
                f"to {long:.1f} on those of {last}"
                + (f", and is {_mean(group, beyond[-1]):.1f} on {buckets[beyond[-1]].label} {unit}, longer than any trained on." if beyond else ".")
            )  # fmt: skip
    return told


def _groups(systems: Sequence[System]) -> dict[str, list[System]]:
    groups: dict[str, list[System]] = {}
    for system in systems:
        groups.setdefault("One fixed vector" if system.why_no_attention else "With attention", []).append(system)
    return groups


def _mean(systems: Sequence[System], bucket: int) -> float:
    values = [value for system in systems if (value := system.by_length[bucket]) is not None]
    return sum(values) / max(1, len(values))


def _alignments(systems: Sequence[System]) -> list[str]:
    aligned = sorted(
        ((system.alignment.error_rate, system.name) for system in systems if system.alignment), key=lambda pair: pair[0]
    )
    if not aligned:
        return []
    (rate, name), others = aligned[0], aligned[1:]
    told = f"Attention agrees most with the gold alignments in {name}: {rate:.0%} of the links are wrong or missing"
    return [told + (f", against {others[-1][0]:.0%} in {others[-1][1]}." if others else ".")]


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
