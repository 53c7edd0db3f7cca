"""Look into models: one sentence, read by each with everything visible."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

import kente
from kente.config import DecodeConfig
from kente.data.tokenizer import BOS, EOS, UNK
from kente.decode.answers import no_answer
from kente.decode.engine import Question
from kente.decode.sentences import split_sentences
from kente.decode.torch_engine import TorchEngine, at_rest
from kente.decode.tracing import Trace, trace
from kente.decode.translator import UNKNOWN, Translator
from kente.measure.alignment import GoldPair, words_of_pieces
from kente.measure.explored import (
    KINDS,
    Beginning,
    Candidate,
    Explored,
    Maps,
    Occlusion,
    Reading,
    Side,
    Step,
    Weights,
)
from kente.measure.habits import habits
from kente.measure.joining import side_of
from kente.measure.rollout import from_source, within
from kente.models.conv_seq2seq import ConvSeq2Seq
from kente.models.interface import AttentionMap, Generator
from kente.models.recurrent_seq2seq import WHY_NO_ATTENTION, FixedContextSeq2Seq
from kente.models.summary import describe
from kente.models.transformer import Transformer
from kente.reporting import SILENT, Reporter

SHOWN = 8
"""Candidates of each step."""
TOGETHER = 64
"""Sources read at once while words are left out."""
SEVERAL = "several sentences, read as one; `kente translate` would take them one by one"


@dataclass(frozen=True)
class Reader:
    """A model by its name."""

    name: str
    translator: Translator
    run: str = ""


def explore(
    readers: Sequence[Reader],
    sentence: str,
    *,
    target: str | None = None,
    known: GoldPair | None = None,
    beam: int | None = None,
    occlusion: bool = True,
    reporter: Reporter = SILENT,
) -> Explored:
    """Every reader on the same sentence. With a target they read that; otherwise each its own answer.

    `known` says which words translate each other; it is drawn where the words of source and target are its own.
    """
    readings = []
    for place, reader in enumerate(readers):
        reporter.progress("looking", place, len(readers), reader.name)
        readings.append(_read(reader, sentence, target, known, beam, occlusion))
    reporter.finish()
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return Explored(sentence, target, tuple(readings), now, kente.__version__)


def _read(
    reader: Reader, sentence: str, target: str | None, known: GoldPair | None, beam: int | None, occlusion: bool
) -> Reading:
    translator, engine = reader.translator, reader.translator.engine.in_torch()
    model: Any = engine.model
    tokenizers = translator.tokenizers
    question, config = translator.question(sentence, beam=beam)
    traced = trace(engine, question, config)
    ids = traced.answer.ids if target is None else translator.answer(target)
    sides = {
        "source": side_of(tokenizers.source, [*question.source, EOS]),
        "written": side_of(tokenizers.target, [*ids, EOS]),
        "read": side_of(tokenizers.target, [BOS, *ids]),
    }
    with at_rest(model):
        maps = _maps(model, look(engine, question.source, ids))
        steps, left_out = _steps(engine, question, ids, sides["source"], translator, occlusion)
        instead = _instead(engine, question, sides["source"], translator, config) if occlusion else ()
        vector = _vector(engine, question.source)
    same = ids == traced.answer.ids and traced.answer != no_answer()
    words = tuple(word.text for word in sides["source"].words[:-1])
    return Reading(
        name=reader.name,
        description=describe(model.config),
        run=reader.run,
        answer=tokenizers.target.decode(traced.answer.ids),
        text=tokenizers.target.decode(ids),
        given=target is not None,
        sides=sides,
        maps=maps,
        absent=_absent(model, {m.kind for m in maps}),
        steps=_with_beginnings(steps, traced, translator) if same else steps,
        beam=config.beam,
        went_on=max(0, len(traced.steps) - len(ids) - 1) if same else 0,
        vector=vector,
        occlusion=Occlusion(words, left_out, instead) if occlusion else None,
        links=_links(known, sides) if known else (),
        warnings=_warnings(sentence, question, traced, translator),
    )


def _warnings(sentence: str, question: Question, traced: Trace, translator: Translator) -> tuple[str, ...]:
    several = translator.split_sentences and len(split_sentences(sentence)) > 1
    return (SEVERAL,) * several + (UNKNOWN,) * (UNK in question.source) + traced.answer.warnings


# --- attention ---


@torch.inference_mode()
def look(engine: TorchEngine, source: Sequence[int], target: Sequence[int]) -> list[AttentionMap]:
    """Every weight while the target is written after the source; both without end marks."""
    ids = torch.tensor([[*source, EOS]], device=engine.device)
    written = torch.tensor([[BOS, *target]], device=engine.device)
    return engine.model.look(ids, torch.ones_like(ids, dtype=torch.bool), written)


def _maps(model: Generator, seen: list[AttentionMap]) -> tuple[Maps, ...]:
    kinds = [kind for kind in KINDS if any(m.kind == kind for m in seen)]
    weights = {kind: _stacked([m for m in seen if m.kind == kind]) for kind in kinds}
    rollouts: dict[str, Weights] = {}
    if isinstance(model, Transformer):  # elsewhere convolutions or recurrences pass words on, and they have no weights
        rollouts = {kind: within(weights[kind]) for kind in ("encoder", "decoder")}
        rollouts["cross"] = from_source(weights["decoder"], weights["cross"], weights["encoder"])
    return tuple(
        Maps(kind, *KINDS[kind], weights[kind], rollouts.get(kind), habits(weights[kind])) for kind in kinds
    )


def _stacked(maps: list[AttentionMap]) -> Weights:
    """(layers, heads, rows, columns) of the only sentence in the batch."""
    layers, heads = 1 + max(m.layer for m in maps), 1 + max(m.head for m in maps)
    found = {(m.layer, m.head): m.weights[0].float().cpu().numpy() for m in maps}
    return np.stack([np.stack([found[layer, head] for head in range(heads)]) for layer in range(layers)])


def _absent(model: Generator, kinds: set[str]) -> dict[str, str]:
    if isinstance(model, FixedContextSeq2Seq):
        return dict.fromkeys(KINDS, WHY_NO_ATTENTION)
    meet = "convolutions" if isinstance(model, ConvSeq2Seq) else "a recurrence"
    return {
        kind: f"Words of one side meet in {meet} here, and only the decoder attends, to the source: there is no such map."
        for kind in KINDS
        if kind not in kinds
    }


@torch.inference_mode()
def _vector(engine: TorchEngine, source: Sequence[int]) -> tuple[float, ...]:
    """The one vector in which a fixed-context model carries the sentence over; none for the others."""
    if not isinstance(engine.model, FixedContextSeq2Seq):
        return ()
    ids = torch.tensor([[*source, EOS]], device=engine.device)
    return tuple(engine.model.start(ids, torch.ones_like(ids, dtype=torch.bool)).context[0].tolist())


def _links(known: GoldPair, sides: dict[str, Side]) -> tuple[tuple[int, int], ...]:
    """(piece written, piece of the source) for each pair of words known to translate each other; none where the words are others."""
    source = words_of_pieces(sides["source"].pieces[:-1], known.source_words)
    written = words_of_pieces(sides["written"].pieces[:-1], known.target_words)
    if source is None or written is None:
        return ()
    return tuple(
        (row, column)
        for row, targets in enumerate(written)
        for column, sources in enumerate(source)
        if any((s, t) in known.links for s in sources for t in targets)
    )


# --- steps, and words left out ---


@torch.inference_mode()
def _distributions(engine: TorchEngine, sources: Sequence[Sequence[int]], target: Sequence[int]) -> Iterator[Tensor]:
    """log p(piece | source, what was written before it) for each source (B, V), step by step, while the target is written."""
    rows = [[*source, EOS] for source in sources]
    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], device=engine.device)
    mask = torch.arange(width, device=engine.device) < torch.tensor([[len(row)] for row in rows], device=engine.device)
    state = engine.model.start(ids, mask)
    for token in (BOS, *target):
        step = engine.model.step(state, torch.full((len(rows),), token, device=engine.device))
        state = step.state
        yield step.logits.float().log_softmax(-1)


def _steps(
    engine: TorchEngine,
    question: Question,
    target: Sequence[int],
    source: Side,
    translator: Translator,
    occlusion: bool,
) -> tuple[tuple[Step, ...], Weights]:
    """The steps without the beam; and, (words, pieces), how likely each piece is with each word of the source left out."""
    steps, wanted = [], [*target, EOS]
    pieces = translator.tokenizers.target.pieces
    for token, (likely,) in zip(wanted, _distributions(engine, [question.source], target), strict=True):
        best = likely.topk(min(SHOWN, len(likely)))
        candidates = zip(pieces(best.indices.tolist()), best.values.exp().tolist(), strict=True)
        rank = 1 + int((likely > likely[token]).sum())
        steps.append(Step(pieces([token])[0], float(likely[token].exp()), rank, tuple(Candidate(*c) for c in candidates)))
    found: list[Weights] = [np.zeros((0, len(wanted)), dtype=np.float32)]
    variants = left_out(question.source, source) if occlusion else []
    for begin in range(0, len(variants), TOGETHER):
        columns = _distributions(engine, variants[begin : begin + TOGETHER], target)
        likely = torch.stack([scores[:, token] for token, scores in zip(wanted, columns, strict=True)], dim=1)
        found.append(likely.exp().cpu().numpy())
    return tuple(steps), np.concatenate(found)


def left_out(ids: Sequence[int], source: Side) -> list[list[int]]:
    """The source without each of its words; the end mark stays."""
    return [[*ids[: word.begin], *ids[word.end :]] for word in source.words[:-1]]


def _instead(
    engine: TorchEngine, question: Question, source: Side, translator: Translator, config: DecodeConfig
) -> tuple[str, ...]:
    """What the model writes, word by likeliest word, with each word of the source left out."""
    questions = [replace(question, source=ids) for ids in left_out(question.source, source)]
    answers = engine.search(questions, replace(config, beam=1, sample=False))
    return tuple(translator.tokenizers.target.decode(found[0].ids) for found in answers)


def _with_beginnings(steps: Sequence[Step], traced: Trace, translator: Translator) -> tuple[Step, ...]:
    """Each step with what the beam held and dropped."""
    decode, answer = translator.tokenizers.target.decode, (*traced.answer.ids, EOS)
    filled = []
    for step, branches in zip(steps, traced.steps, strict=False):
        beginnings = tuple(
            Beginning(decode(b.ids), b.log_probability, b.fate, b.ids == answer[: len(b.ids)]) for b in branches
        )
        filled.append(replace(step, beginnings=beginnings))
    return (*filled, *steps[len(filled) :])
