"""Attention does not see order; positions restore it; and what becomes of them beyond the lengths trained on (lectures 000 and 001).

Without positions an encoder answers a shuffled sentence with the same vectors, shuffled: ATT(A, B, C) = ATT(B, C, A). The task that needs
order is to copy a string of distinct letters. Whoever knows only which letters there are must guess among those left, and is right
(1 + 1/2 + ... + 1/n) / n of the time.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import nn

from kente.config import TransformerConfig
from kente.data.batches import Batch, collate
from kente.lectures.finding import Finding, beside
from kente.lectures.practice import FIRST, next_right, practise, seeded, whole_right
from kente.models.transformer import Transformer
from kente.reporting import SILENT, Reporter
from kente.show.charts import Series, bar_chart, line_chart, table

Positions = Literal["none", "sinusoid", "learned", "rotary", "relative", "alibi"]
KINDS: tuple[Positions, ...] = get_args(Positions)
LETTERS = 24
LONGEST = 10
"""Letters in the longest string trained on; tests go to twice as many."""
TRIED = 100
GOOD = 0.9
"""Share of letters right from which order counts as restored."""


def blind_guess(length: int) -> float:
    """(1 + 1/2 + ... + 1/n) / n: right guesses among the last n letters by one who knows which are left, and no more."""
    return sum(1 / left for left in range(1, length + 1)) / length


def strings(name: str, count: int, shortest: int, longest: int) -> list[list[int]]:
    """Strings of distinct letters, the same for the same name."""
    chance = random.Random(name)
    letters = range(FIRST, FIRST + LETTERS)
    return [chance.sample(letters, chance.randint(shortest, longest)) for _ in range(count)]


def copies(name: str, count: int, shortest: int, longest: int) -> Batch:
    sources = strings(name, count, shortest, longest)
    return collate(sources, sources)


def make(positions: Positions, width: int = 64, layers: int = 2, longest: int = 2 * LONGEST) -> Transformer:
    """A small Transformer; learned positions have a vector for every length tested, those never trained included."""
    config = TransformerConfig(
        encoder_layers=layers, decoder_layers=layers, width=width, feedforward=2 * width, heads=4, dropout=0.0,
        norm_place="pre", positions=positions, max_length=longest + 2,
    )  # fmt: skip
    return Transformer(config, FIRST + LETTERS, FIRST + LETTERS)


@torch.inference_mode()
def feels_order(model: nn.Module, length: int = 8) -> float:
    """How far the answer to a shuffled source is from the answer to the source itself: largest difference of log-probabilities."""
    source = torch.tensor([strings("order", 1, length, length)[0]])
    shuffled = source[:, torch.randperm(length, generator=torch.Generator().manual_seed(1))]
    mask, target = torch.ones_like(source, dtype=torch.bool), source[:, : length // 2]
    first, second = (model.predict(model(s, mask, target)).log_softmax(-1) for s in (source, shuffled))  # type: ignore[operator]
    return float((first - second).abs().max())


@dataclass(frozen=True)
class Measured:
    """One kind of positions, trained and tried."""

    felt: float
    """What shuffling changes, before training."""
    by_length: dict[int, float]
    """Letters foreseen, given those before them."""
    beyond: float
    """The same in the longest strings, for the letters that stand further in than any trained on."""
    whole: dict[int, float]
    """Strings copied without a mistake, written freely."""


def measure(
    positions: Positions, lengths: list[int], longest: int, updates: int, reporter: Reporter, seed: int = 1
) -> Measured:
    with seeded(seed):
        model = make(positions, longest=max(lengths)).eval()
        felt = feels_order(model)
        practise(
            model, lambda step: copies(f"train {step}", 48, 2, longest), updates, reporter, f"order: {positions}", rate=3e-3
        )  # fmt: skip
    tests = {length: copies(f"test {length}", TRIED, length, length) for length in lengths}
    answers = {length: strings(f"test {length}", TRIED, length, length) for length in lengths}
    return Measured(
        felt,
        {length: next_right(model, batch) for length, batch in tests.items()},
        next_right(model, tests[max(lengths)], after=longest),
        {length: whole_right(model, batch, answers[length]) for length, batch in tests.items()},
    )


def explore(
    reporter: Reporter = SILENT,
    *,
    kinds: tuple[Positions, ...] = KINDS,
    longest: int = LONGEST,
    updates: int = 400,
) -> Finding:
    """Small Transformers learn to copy up to `longest` letters and are tried on up to twice as many."""
    twice = 2 * longest
    lengths = sorted({*range(longest // 2, twice + 1, max(1, longest // 5)), longest, longest + 1, twice})
    measured = {kind: measure(kind, lengths, longest, updates, reporter) for kind in kinds}
    return _finding(measured, lengths, longest)


def _finding(measured: dict[Positions, Measured], lengths: list[int], longest: int) -> Finding:
    guess = Series("guessing", [(length, blind_guess(length)) for length in lengths], dashed=True)
    across = f"letters in the string ({longest} is the longest trained on)"
    figures = (
        beside(
            _table(measured, longest),
            bar_chart(
                [*((kind, m.beyond) for kind, m in measured.items()), ("guessing", blind_guess(longest))],
                title=f"Letters beyond the {longest}th, in strings of {2 * longest}",
                y="share right",
            ),
        ),
        beside(
            line_chart(
                [*(Series(kind, list(m.by_length.items())) for kind, m in measured.items()), guess],
                title="Letters foreseen, given those before them",
                x=across,
                y="share right",
            ),
            line_chart(
                [Series(kind, list(m.whole.items())) for kind, m in measured.items()],
                title="Strings copied without a mistake",
                x=across,
                y="share right",
            ),
        ),
    )
    return Finding(
        "order",
        "Order, and lengths never seen",
        "lectures 000 and 001",
        "Attention alone is blind to order and a position code restores it; the sinusoid extrapolates beyond the lengths trained on, "
        "learned positions cannot.",
        found(measured, longest),
        figures,
        {kind: vars(m) for kind, m in measured.items()},
    )


def _table(measured: dict[Positions, Measured], longest: int) -> str:
    twice = 2 * longest
    return table(
        ["positions", "shuffling changes", f"right at {longest}", f"right at {twice}", f"right beyond {longest}"],
        [
            [kind, f"{m.felt:.1e}", f"{m.by_length[longest]:.0%}", f"{m.by_length[twice]:.0%}", f"{m.beyond:.0%}"]
            for kind, m in measured.items()
        ],
        caption=f"Copying strings, trained on up to {longest} letters",
        note="Shuffling changes: the largest difference of log-probabilities when the source is shuffled, before training.",
    )


def found(measured: dict[Positions, Measured], longest: int) -> str:
    """What the numbers allow to be said."""
    return f"{_on_blindness(measured, longest)}. {_on_extrapolation(measured, longest)}."


def _on_blindness(measured: dict[Positions, Measured], longest: int) -> str:
    text, none = "", measured.get("none")
    if none is not None:
        right, guess = none.by_length[longest], blind_guess(longest)
        blind = "is blind to order" if none.felt < 1e-4 and right < guess + 0.1 else "is not blind to order"
        text = (
            f"Without positions the encoder {blind}: shuffling the source changes log-probabilities by {none.felt:.0e}, and {right:.0%} "
            f"of the letters of {longest}-letter copies are right where guessing gets {guess:.0%}; "
        )
    shares = {kind: m.by_length[longest] for kind, m in measured.items() if kind != "none"}
    low, high = min(shares.values()), max(shares.values())
    return (
        text
        + ("every code restores it" if low > GOOD else "not every code restores it")
        + f" ({low:.0%} to {high:.0%})"
    )


def _on_extrapolation(measured: dict[Positions, Measured], longest: int) -> str:
    shares = {kind: m.beyond for kind, m in measured.items() if kind != "none"}
    guess = blind_guess(longest)
    able = [kind for kind, share in shares.items() if share > guess + 0.1]
    verdict = f"{_listed(able)} positions extrapolate" if able else "No code extrapolates"
    listed = ", ".join(f"{kind} {share:.0%}" for kind, share in shares.items())
    just = ", ".join(f"{kind} {measured[kind].by_length[longest + 1]:.0%}" for kind in shares)
    text = f"{verdict} to strings twice as long: beyond the {longest}th place {listed} are right (guessing {guess:.0%})"
    if "sinusoid" in shares and "sinusoid" not in able:
        text += "; the sinusoid has a code for those places, but what reads it was never trained there"
    return f"{text}. In strings one letter longer than any trained on, {just} are right"


def _listed(kinds: Sequence[str]) -> str:
    text = " and ".join([", ".join(kinds[:-1]), kinds[-1]] if len(kinds) > 1 else kinds)
    return text.capitalize()
