"""An exploration nobody made: sharp and blurred heads, words in pieces, a beam that drops; and hostile or right-to-left text on request."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np

from kente.measure.explored import (
    Beginning,
    Candidate,
    Explored,
    Maps,
    Occlusion,
    Reading,
    Side,
    Step,
    Word,
)
from kente.measure.habits import habits
from kente.measure.rollout import from_source, within

HOSTILE: tuple[str, ...] = runpy.run_path(str(Path(__file__).parent / "made_up.py"))["HOSTILE"]
REASON = "The encoder hands over one vector for the whole sentence: there is nothing to look at, and nowhere to look."
SOURCE = (("▁The", "▁old", "▁cap", "tain", "▁wrote", "▁a", "▁let", "ter", "."), (1, 1, 2, 1, 1, 2, 1))
TARGET = (("▁Le", "▁vieux", "▁capit", "aine", "▁écri", "vit", "▁une", "▁lettre", "."), (1, 1, 2, 2, 1, 1, 1))
HEBREW = (("▁הקפ", "טן", "▁הזקן", "▁כתב", "▁מכתב", "."), (2, 1, 1, 1, 1))
FATES = ("lives", "lives", "beaten", "hopeless", "weak")


def side(pieces: tuple[str, ...], lengths: tuple[int, ...], *, mark: str, first: bool = False) -> Side:
    """Words of so many pieces each, and a mark at the end, or at the beginning."""
    words, place = [], 1 if first else 0
    for length in lengths:
        words.append(Word("".join(pieces[place - first : place - first + length]).strip("▁"), place, place + length))
        place += length
    if first:
        return Side((mark, *pieces), (Word(mark, 0, 1), *words))
    return Side((*pieces, mark), (*words, Word(mark, place, place + 1)))


def explored(
    models: tuple[str, ...] = ("transformer", "conv", "gru"),
    *,
    hostile: bool = False,
    hebrew: bool = False,
    linked: bool = True,
    given: bool = False,
    layers: int = 2,
    heads: int = 4,
) -> Explored:
    source, target = (HEBREW if hebrew else SOURCE), TARGET
    if hostile:
        source = target = (HOSTILE, (1,) * len(HOSTILE))
    sides = {
        "source": side(*source, mark="</s>"),
        "written": side(*target, mark="</s>"),
        "read": side(*target, mark="<s>", first=True),
    }
    text = " ".join(word.text for word in sides["written"].words[:-1])
    readings = tuple(
        _reading(name, number, sides, text, layers, heads, hostile, linked, given) for number, name in enumerate(models)
    )
    sentence = " ".join(word.text for word in sides["source"].words[:-1])
    return Explored(sentence, text if given else None, readings, "2026-11-16T10:00:00+00:00", "0.1.0")


def _reading(
    name: str,
    number: int,
    sides: dict[str, Side],
    text: str,
    layers: int,
    heads: int,
    hostile: bool,
    linked: bool,
    given: bool,
) -> Reading:
    random = np.random.default_rng(number)
    kinds: dict[str, tuple[int, int]] = {
        "transformer": {"cross": (layers, heads), "encoder": (layers, heads), "decoder": (layers, heads)},
        "conv": {"cross": (3, 1)},
    }.get(name, {})  # type: ignore[assignment]
    written, source = len(sides["written"].pieces), len(sides["source"].pieces)
    shapes = {"cross": (written, source), "encoder": (source, source), "decoder": (written, written)}
    weights = {kind: _weights(random, *size, *shapes[kind], kind == "decoder") for kind, size in kinds.items()}
    rollouts: dict[str, Any] = {}
    if name == "transformer":
        rollouts = {kind: within(weights[kind]) for kind in ("encoder", "decoder")}
        rollouts["cross"] = from_source(weights["decoder"], weights["cross"], weights["encoder"])
    axes = {"cross": ("written", "source"), "encoder": ("source", "source"), "decoder": ("written", "read")}
    words = tuple(word.text for word in sides["source"].words[:-1])
    extra = HOSTILE[number % len(HOSTILE)] if hostile else ""
    answer = f"another answer {extra}" if given else text
    return Reading(
        name=f"{name}{extra}",
        description="a network nobody trained",
        run=f"runs/{name}",
        answer=answer,
        text=text,
        given=given,
        sides=sides,
        maps=tuple(Maps(kind, *axes[kind], weights[kind], rollouts.get(kind), habits(weights[kind])) for kind in kinds),
        absent={kind: REASON for kind in axes if kind not in kinds},
        steps=tuple(
            _step(random, place, piece, text, extra, given) for place, piece in enumerate(sides["written"].pieces)
        ),
        beam=3,
        went_on=2,
        vector=() if kinds else tuple(random.normal(size=96).tolist()),
        occlusion=Occlusion(
            words, random.random((len(words), written)).astype(np.float32), tuple(f"{text} {extra}" for _ in words)
        ),
        links=tuple((n, n) for n in range(min(written, source) - 1)) if linked and "cross" in kinds else (),
        warnings=(extra,) if hostile else (),
    )


def _weights(random: np.random.Generator, layers: int, heads: int, rows: int, columns: int, causal: bool) -> Any:
    sharpness = random.uniform(0.5, 5, size=(layers, heads, 1, 1))
    scores = random.normal(size=(layers, heads, rows, columns)) * sharpness
    if causal:
        scores = np.where(np.tri(rows, columns) > 0, scores, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return (shares / shares.sum(-1, keepdims=True)).astype(np.float32)


def _step(random: np.random.Generator, place: int, piece: str, text: str, extra: str, given: bool) -> Step:
    shares = np.sort(random.dirichlet(np.ones(8)))[::-1]
    rank = 1 + place % 3
    pieces = [f"▁other{n}{extra}" for n in range(8)]
    pieces[rank - 1] = piece
    candidates = tuple(Candidate(p, float(share)) for p, share in zip(pieces, shares, strict=True))
    beginnings = tuple(
        Beginning(
            text[: 4 * place + 4] if n == 0 else f"{text[: 4 * place]} other{n}{extra}", -1.5 * n - place, fate, n == 0
        )
        for n, fate in enumerate(FATES)
    )
    return Step(piece, float(shares[rank - 1]), rank, candidates, () if given else beginnings)
