"""One vector for a whole sentence is too little; looking back at every word is not (lectures 000, 001 and 002).

fixed context     c = h_S                        all the decoder ever gets
attention         c_i = sum_j a_ij h_j           every word of the source, weighed anew for each word written

The task is to say a string of letters again. Of letters drawn at random nothing can be guessed, so a vector must hold them all.
"""

from __future__ import annotations

import random

from kente.config import RecurrentConfig
from kente.data.batches import Batch, collate
from kente.lectures.finding import Finding, beside
from kente.lectures.practice import FIRST, next_right, practise, seeded, whole_right
from kente.models.recurrent_seq2seq import AttentiveSeq2Seq, FixedContextSeq2Seq
from kente.models.summary import parameter_count
from kente.reporting import SILENT, Reporter
from kente.show.charts import Series, line_chart, table

LETTERS = 16
TRIED = 100
GOOD = 0.9
"""Share of whole strings right from which a length counts as mastered."""

Model = FixedContextSeq2Seq | AttentiveSeq2Seq


def strings(name: str, count: int, shortest: int, longest: int) -> list[list[int]]:
    """Letters drawn at random, the same for the same name."""
    chance = random.Random(name)
    letters = range(FIRST, FIRST + LETTERS)
    return [chance.choices(letters, k=chance.randint(shortest, longest)) for _ in range(count)]


def models(width: int) -> dict[str, Model]:
    """GRUs that read both ways, a fixed context and attention; the fixed one is wider, and so has more weights than the other."""
    wide = width + width // 3
    vocabulary = FIRST + LETTERS
    fixed = RecurrentConfig(cell="gru", attention="none", width=wide, embedding=wide, dropout=0.0)
    attentive = RecurrentConfig(cell="gru", attention="additive", width=width, embedding=width, dropout=0.0)
    with seeded(1):
        return {
            "fixed context": FixedContextSeq2Seq(fixed, vocabulary, vocabulary),
            "attention": AttentiveSeq2Seq(attentive, vocabulary, vocabulary),
        }


def mastered(whole: dict[int, float]) -> int:
    """The greatest length up to which every one tried is mastered; 0 if none is."""
    best = 0
    for length, share in sorted(whole.items()):
        if share < GOOD:
            break
        best = length
    return best


def explore(
    reporter: Reporter = SILENT, *, width: int = 96, longest: int = 12, updates: int = 500, batch: int = 64
) -> Finding:
    """Train both on strings of up to `longest` letters; try them on up to twice as many."""
    lengths = list(range(2, 2 * longest + 1, 2))
    tests = {length: strings(f"test {length}", TRIED, length, length) for length in lengths}
    letters: dict[str, dict[int, float]] = {}
    whole: dict[str, dict[int, float]] = {}
    weights: dict[str, int] = {}
    for name, model in models(width).items():

        def batch_of(step: int) -> Batch:
            drawn = strings(f"train {step}", batch, 1, longest)
            return collate(drawn, drawn)

        practise(model, batch_of, updates, reporter, f"bottleneck: {name}", rate=3e-3)
        letters[name] = {length: next_right(model, collate(drawn, drawn)) for length, drawn in tests.items()}
        whole[name] = {length: whole_right(model, collate(drawn, drawn), drawn) for length, drawn in tests.items()}
        weights[name] = parameter_count(model)
    figures = (
        beside(
            _chart(whole, "Strings said again without a mistake", longest),
            _chart(letters, "Letters foreseen, given those before them", longest),
        ),
        table(
            ["system", "parameters", *(str(length) for length in lengths)],
            [[n, f"{weights[n]:,}", *(f"{share:.0%}" for share in whole[n].values())] for n in whole],
            caption="Whole strings right, by letters in the string",
        ),
    )
    return Finding(
        "bottleneck",
        "One vector is a bottleneck",
        "lectures 000, 001 and 002",
        "A fixed context vector cannot hold a long sentence; attention to every encoder state can.",
        found(whole, longest),
        figures,
        {"longest": longest, "updates": updates, "whole": whole, "letters": letters, "parameters": weights},
    )


def found(whole: dict[str, dict[int, float]], longest: int) -> str:
    """What the numbers allow to be said."""
    fixed, attentive = whole["fixed context"], whole["attention"]
    end, far = max(length for length in fixed if length <= longest), max(fixed)
    shown = attentive[end] > fixed[end] + 0.1
    text = "The vector is a bottleneck" if shown else "The claim does not show at these lengths"
    text += (
        f": of strings of {end} letters, as long as any trained on, the fixed context gets {fixed[end]:.0%} right and attention {attentive[end]:.0%} "
        f"({GOOD:.0%} up to {mastered(fixed)} and up to {mastered(attentive)} letters); of {far} letters {fixed[far]:.0%} and {attentive[far]:.0%}"
    )
    return text + (", so attention does not carry to lengths never seen either." if attentive[far] < 0.1 else ".")


def _chart(shares: dict[str, dict[int, float]], title: str, longest: int) -> str:
    series = [Series(name, list(values.items())) for name, values in shares.items()]
    return line_chart(
        series, title=title, x=f"letters in the string ({longest} is the longest trained on)", y="share right"
    )
