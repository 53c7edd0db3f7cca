"""Heads beside each other see different things, and `it` should look at what it stands for (lectures 001 and 004).

Two heads are compared word by word: the Jensen-Shannon divergence of the places they look at, 0 bits when they are the same and 1 when
they have none in common. A head's habit is the place, relative to the word that looks, on which most of its weight lies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from kente.errors import RunError
from kente.lectures.finding import Finding, beside
from kente.lectures.pronouns import Riddle, clear_cases, lean, pieces_of, pull, riddles, strange_words
from kente.lectures.translator import UPDATES, Head, Subject, subject
from kente.reporting import SILENT, Reporter
from kente.show.charts import bar_chart, heatmap, table

PLACES = ("previous word", "same word", "next word", "first word", "end mark")
STRONG = 0.4
"""Mean weight on a place from which a head is said to have a habit."""
TURNED = 0.05
"""Difference of weight from which the pronoun is said to look elsewhere."""


def entropy(weights: Tensor) -> Tensor:
    """H(p) = -sum_i p_i log2 p_i, along the last dimension."""
    return -torch.special.xlogy(weights, weights).sum(dim=-1) / math.log(2)


def divergence(one: Tensor, other: Tensor) -> Tensor:
    """JS(p, q) = H((p + q) / 2) - (H(p) + H(q)) / 2 in bits, along the last dimension."""
    return entropy((one + other) / 2) - (entropy(one) + entropy(other)) / 2


def places(weights: Tensor) -> list[float]:
    """Mean weight of a map (S, S) on each of PLACES. Its last row and column are the end mark, whose own looking is left out."""
    words = weights[:-1]
    looked = words[1:].diagonal(), words.diagonal(), words.diagonal(1), words[1:, 0], words[:, -1]
    return [float(part.mean()) for part in looked]


@dataclass(frozen=True)
class Measured:
    """What the heads of an encoder do."""

    heads: list[Head]
    apart: list[list[float]]
    """Mean divergence of each two heads."""
    seen: dict[Head, list[float]]
    """Mean weight on each of PLACES."""
    even: float
    """What each word would get if weights were even."""
    leaning: tuple[dict[Head, float], dict[Head, float]]
    """In both riddles: how much more the pronoun looks at what the first one means."""
    clear: dict[Head, float]
    """Mean weight of `it` on its noun where only one is possible; empty when there are no such sentences."""
    clear_even: float


def measure(reader: Subject, pair: tuple[Riddle, Riddle], sentences: int, pronouns: int) -> Measured:
    read = [reader.encoder_maps(source) for source in reader.sentences[:sentences] if len(source) >= 3]
    if not read:
        raise RunError(
            f"no validation sentence of {reader.about} has three tokens or more, so there is nothing to look at"
        )
    heads = list(read[0])
    word, rival = pair[0].referent, pair[0].other
    cases = clear_cases(reader, pronouns)
    pulls = [pull(reader, sentence, "it", noun) for sentence, noun in cases]
    return Measured(
        heads,
        [[_mean([float(divergence(maps[a], maps[b]).mean()) for maps in read]) for b in heads] for a in heads],
        {head: [_mean(list(column)) for column in zip(*(places(maps[head]) for maps in read), strict=True)] for head in heads},
        _mean([1 / len(maps[heads[0]]) for maps in read]),
        (lean(reader, pair[0], word, rival), lean(reader, pair[1], word, rival)),
        {head: _mean([one[head] for one in pulls]) for head in heads} if pulls else {},
        _mean([1 / (len(reader.source(sentence)) + 1) for sentence, _ in cases]) if cases else 0.0,
    )  # fmt: skip


def explore(
    reporter: Reporter = SILENT,
    run: Path | None = None,
    *,
    updates: int = UPDATES,
    sentences: int = 60,
    pronouns: int = 12,
) -> Finding:
    """Heads of an encoder on sentences it was not trained on, and `it` in two sentences that differ in one word."""
    reader, pair = subject(run, reporter, updates), riddles()
    measured = measure(reader, pair, sentences, pronouns)
    unknown = sorted({word for riddle in pair for word in strange_words(reader, riddle)})
    names = {head: name(head) for head in measured.heads}
    return Finding(
        "heads",
        "What heads see",
        "lectures 001 and 004",
        "Several heads see what one alone does not, and in a trained encoder `it` looks at different words in different contexts.",
        f"In {reader.about} {on_heads(measured)}. {on_riddles(measured, pair, unknown)}; {on_clear_cases(measured)}.",
        figures(reader, measured, pair),
        {
            "about": reader.about,
            "places": {names[head]: dict(zip(PLACES, values, strict=True)) for head, values in measured.seen.items()},
            "divergence": measured.apart,
            "leaning": [{names[head]: value for head, value in leans.items()} for leans in measured.leaning],
            "unknown": unknown,
            "clear_cases": {names[head]: value for head, value in measured.clear.items()},
        },
    )


# ---- sentences --------------------------------------------------------------------------------------------------------------


def on_heads(measured: Measured) -> str:
    between = [measured.apart[a][b] for a in range(len(measured.heads)) for b in range(a)]
    different = "heads see different things" if _mean(between) > 0.1 else "heads see much the same"
    by_place = list(zip(*measured.seen.values(), strict=True))
    most = []
    for place, values in zip(PLACES[:3], by_place[:3], strict=True):
        best = max(range(len(values)), key=values.__getitem__)
        most.append(f"{values[best]:.2f} on the {place} (head {name(measured.heads[best])})")
    return (
        f"{different}: two of the {len(measured.heads)} differ by {_mean(between):.2f} bits on average, and one head's mean weight comes "
        f"to {', '.join(most)}, where evenly it would be {measured.even:.2f}"
    )


def on_riddles(measured: Measured, pair: tuple[Riddle, Riddle], unknown: list[str]) -> str:
    first, second = (_mean(list(leans.values())) for leans in measured.leaning)
    right = sum(a > 0 > b for a, b in zip(*(leans.values() for leans in measured.leaning), strict=True))
    if first > 0 > second:
        verdict = "follows the meaning of the sentence"
    elif first - second > TURNED:
        verdict = "turns the right way, but not far enough"
    else:
        verdict = "does not follow the meaning of the sentence"
    word, rival = pair[0].referent, pair[0].other
    text = (
        f"The word “{pair[0].pronoun}” {verdict}: it leans to “{word}” over “{rival}” by {first:+.2f} where it is the {word} and by {second:+.2f} where "
        f"it is the {rival}, and {right} of {len(measured.heads)} heads lean the right way both times"
    )
    return text + (f" (words the model hardly knows: {', '.join(unknown)})" if unknown else "")


def on_clear_cases(measured: Measured) -> str:
    if not measured.clear:
        return "the embedded grammar has no sentence of its words where `it` can stand for one thing only"
    best = max(measured.heads, key=lambda head: measured.clear[head])
    return (
        f"where `it` can stand for one thing only, head {name(best)} gives that word {measured.clear[best]:.2f} and the mean head "
        f"{_mean(list(measured.clear.values())):.2f} (evenly {measured.clear_even:.2f})"
    )


# ---- pictures ---------------------------------------------------------------------------------------------------------------


def figures(reader: Subject, measured: Measured, pair: tuple[Riddle, Riddle]) -> tuple[str, ...]:
    names = [name(head) for head in measured.heads]
    one, two = measured.leaning
    return (
        table(
            ["head", *PLACES, "habit"],
            [
                [name(head), *(f"{value:.2f}" for value in values), habit(values)]
                for head, values in measured.seen.items()
            ],
            caption="Where the encoder's heads look: mean weight on each place",
            note=f"Layer.head. Even weights would be {measured.even:.2f}.",
        ),
        beside(
            heatmap(
                measured.apart,
                names,
                names,
                title="How differently two heads look",
                note="In bits: 0 is the same places, 1 none in common.",
            ),
            bar_chart(
                [(name(head), one[head] - two[head]) for head in measured.heads],
                title=f"What the last word changes: weight towards “{pair[0].referent}”",
                y="difference between the two sentences; above 0 is the right way",
            ),
        ),
        beside(*(_pronoun_map(reader, riddle, measured.heads) for riddle in pair)),
    )


def _pronoun_map(reader: Subject, riddle: Riddle, heads: list[Head]) -> str:
    source = reader.source(riddle.sentence)
    rows = pieces_of(reader, riddle.sentence, riddle.pronoun)
    maps = reader.encoder_maps(source)
    return heatmap(
        [maps[head][rows].mean(dim=0)[:-1].tolist() for head in heads],
        [name(head) for head in heads],
        reader.source_names(source),
        title=f"Where “{riddle.pronoun}” looks, a head to a row: {riddle.sentence}",
    )


def name(head: Head) -> str:
    """Layer and head, counted from 1: "2.4"."""
    return f"{head[0] + 1}.{head[1] + 1}"


def habit(values: list[float]) -> str:
    best = max(range(len(values)), key=values.__getitem__)
    return PLACES[best] if values[best] >= STRONG else "spread"


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
