"""Look into models: one sentence, read by each with everything visible."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

import kente
from kente.data.tokenizer import BOS, EOS, UNK
from kente.decode.answers import no_answer
from kente.decode.engine import Question
from kente.decode.torch_engine import TorchEngine, at_rest
from kente.decode.tracing import Trace, trace
from kente.decode.translator import UNKNOWN, Translator
from kente.measure.alignment import GoldPair, words_of_pieces
from kente.measure.explored import KINDS, Beginning, Explored, Maps, Occlusion, Reading, Side, Step, Weights
from kente.measure.habits import habits
from kente.measure.joining import side_of
from kente.measure.rollout import from_source, within
from kente.measure.stepping import answers_without, left_out, probabilities, steps_of
from kente.models.conv_seq2seq import ConvSeq2Seq
from kente.models.interface import AttentionMap, Generator
from kente.models.recurrent_seq2seq import WHY_NO_ATTENTION, FixedContextSeq2Seq
from kente.models.summary import describe
from kente.models.transformer import Transformer
from kente.reporting import SILENT, Reporter
from kente.text.sentences import split_sentences

ANOTHER = "the known alignment is of other words than these, so it is not drawn"
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
        steps = steps_of(engine, tokenizers.target, question.source, ids)
        vector = _vector(engine, question.source)
        left = _occlusion(reader.translator, question, ids, sides["source"]) if occlusion else None
    same = ids == traced.answer.ids and traced.answer != no_answer()
    links = _links(known, sides) if known else ()
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
        occlusion=left,
        links=links,
        warnings=(*_warnings(sentence, question, traced, translator), *((ANOTHER,) if known and not links else ())),
    )


def _warnings(sentence: str, question: Question, traced: Trace, translator: Translator) -> tuple[str, ...]:
    several = translator.split_sentences and len(split_sentences(sentence)) > 1
    return (SEVERAL,) * several + (UNKNOWN,) * (UNK in question.source) + traced.answer.warnings


def _occlusion(translator: Translator, question: Question, ids: Sequence[int], source: Side) -> Occlusion:
    engine, words = translator.engine.in_torch(), source.words[:-1]  # the end mark stays
    variants = left_out(question.source, words)
    return Occlusion(
        tuple(word.text for word in words),
        probabilities(engine, variants, ids),
        answers_without(engine, translator.tokenizers.target, question, variants, translator.config),
    )


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
    return tuple(Maps(kind, *KINDS[kind], weights[kind], rollouts.get(kind), habits(weights[kind])) for kind in kinds)


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
