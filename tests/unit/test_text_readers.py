"""Texts as one vector: poolings against their equations, any encoder under a head, word vectors, and what training minimises."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from kente.config import (
    Config,
    ConvConfig,
    HeadConfig,
    IntraAttentionConfig,
    LanguageModelConfig,
    MaskedConfig,
    RecurrentConfig,
    RecurrentLanguageConfig,
    SkipGramConfig,
    TokenizerConfig,
    TransformerConfig,
)
from kente.data.rows import RowBatch
from kente.data.skip_grams import Neighbours
from kente.errors import ConfigError
from kente.models.build import build, build_for
from kente.models.summary import describe, summarise
from kente.models.text_reader import TextReader
from kente.nn.pooling import AttentionPool, MarkPool, MeanPool
from kente.train.gradients import Gradients
from kente.train.objectives import Classes, NegativeSampling, Partners
from kente.train.optimiser import Optimiser

STACK = {"width": 16, "feedforward": 32, "heads": 2}
ENCODERS = {
    "masked": MaskedConfig(layers=2, **STACK),
    "masked-untied": MaskedConfig(layers=1, tie=False, positions="learned", max_length=32, **STACK),
    "translator": TransformerConfig(encoder_layers=2, decoder_layers=1, **STACK),
    "translator-target-tied": TransformerConfig(encoder_layers=1, decoder_layers=1, tie="target", **STACK),
    "translator-experts": TransformerConfig(encoder_layers=1, decoder_layers=1, experts=3, **STACK),
    "gru": RecurrentConfig(width=12, embedding=10),
    "fixed-lstm": RecurrentConfig(cell="lstm", attention="none", width=12, embedding=10, bidirectional="none"),
    "lstmn": IntraAttentionConfig(width=12, embedding=10),
    "conv": ConvConfig(
        embedding=12, encoder_channels=(16,), encoder_kernels=(3,), decoder_channels=(16,), decoder_kernels=(3,)
    ),
    "language": LanguageModelConfig(layers=1, **STACK),
    "lstm-language": RecurrentLanguageConfig(width=12, embedding=10),
    "word-vectors": SkipGramConfig(width=10),
}  # fmt: skip
VOCABULARY = 23


def batch(*lengths: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(4, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return ids * mask, mask


@pytest.fixture(params=ENCODERS)
def encoder(request):
    torch.manual_seed(1)
    return build(ENCODERS[request.param], VOCABULARY, VOCABULARY)


# ---- poolings ---------------------------------------------------------------------------------------------------------------


def test_each_pooling_is_its_equation_and_padding_has_no_part_in_it():
    states, (_, mask) = torch.randn(2, 4, 3), batch(4, 2)
    states[~mask] = 1e6
    assert torch.allclose(MeanPool()(states, mask), torch.stack([states[0].mean(0), states[1, :2].mean(0)]))
    assert torch.equal(MarkPool()(states, mask), states[:, 0])
    assert torch.equal(MarkPool(last=True)(states, mask), torch.stack([states[0, 3], states[1, 1]]))
    pool = AttentionPool(3)
    assert torch.allclose(pool(states, mask), MeanPool()(states, mask))  # as it begins
    with torch.no_grad():
        pool.query.copy_(torch.tensor([1.0, -2.0, 0.5]))
    weights = (states[1, :2] @ pool.query).softmax(0)
    context, seen = pool.attend(states, mask)
    assert torch.allclose(context[1], weights @ states[1, :2], atol=1e-6)
    assert torch.allclose(seen.sum(1), torch.ones(2)) and seen[1, 2:].tolist() == [0, 0]


def test_the_mark_that_stands_for_a_text_is_the_one_that_has_read_all_of_it():
    def pool_of(kind: str, begins: bool) -> MarkPool:
        return TextReader(
            build(ENCODERS[kind], VOCABULARY, VOCABULARY), HeadConfig(kind="vectors", pooling="cls", begins=begins)
        ).pool

    assert not pool_of("masked", True).last
    assert pool_of("translator", False).last and pool_of("language", True).last


# ---- readers ----------------------------------------------------------------------------------------------------------------


def test_a_reader_reads_what_its_encoder_read_and_keeps_nothing_that_reading_does_not_need(encoder):
    encoder.eval()
    ids, mask = batch(5, 3)
    before, parameters = encoder.encode(ids, mask), sum(p.numel() for p in encoder.parameters())
    reader = TextReader(encoder, HeadConfig(kind="vectors")).eval()
    assert torch.equal(reader.encode(ids, mask), before)
    assert torch.allclose(reader(ids, mask)[1], before[1, :3].mean(0), atol=1e-6)
    assert not hasattr(encoder, "decoder") and not hasattr(encoder, "head")
    assert sum(p.numel() for p in reader.parameters()) <= parameters
    names = {name for name, _ in reader.named_parameters()}
    assert not any(part in name for name in names for part in ("decoder", "target_embedding", "readout", "neighbours"))
    again = TextReader(encoder, HeadConfig(kind="vectors")).eval()  # a reader of a reader's encoder is the same
    assert torch.equal(again(ids, mask), reader(ids, mask))


@pytest.mark.parametrize("pooling", ["mean", "cls", "attention"])
def test_a_text_does_not_feel_its_neighbours_in_the_batch(encoder, pooling):
    reader = TextReader(encoder, HeadConfig(kind="classes", classes=3, pooling=pooling)).eval()
    ids, mask = batch(6, 2, 4)
    together = reader.predict(reader(ids, mask))
    alone = torch.cat(
        [
            reader.predict(reader(ids[row : row + 1, :length], mask[row : row + 1, :length]))
            for row, length in enumerate((6, 2, 4))
        ]
    )
    assert together.shape == (3, 3) and torch.allclose(together, alone, atol=1e-5)


@pytest.mark.parametrize("optimiser", ["muon", "adamw"])
def test_every_encoder_can_be_trained_with_a_head(encoder, optimiser):
    reader = TextReader(encoder, HeadConfig(kind="classes", classes=2, pooling="attention")).train()
    rows = RowBatch((batch(6, 2, 4),), torch.tensor([0, 1, 0]), np.arange(3))
    mover = Optimiser(reader, Config().optimiser.__class__(kind=optimiser))
    gradients = Gradients(reader, Classes())
    before = {name: tensor.clone() for name, tensor in reader.named_parameters()}
    losses = []
    for step in range(8):
        mover.zero()
        losses.append(gradients([rows], 1, step))
        mover.step(1e-2, mover.gradient_norm())
    assert losses[-1] < losses[0]
    moved = {name for name, tensor in reader.named_parameters() if not torch.equal(tensor, before[name])}
    assert {"output.weight", "output.bias", "pool.query"} <= moved and any(
        name.startswith("encoder.") for name in moved
    )


def test_the_shares_of_a_batch_add_up_and_rows_that_belong_together_stay_together():
    torch.manual_seed(1)
    reader = TextReader(build(ENCODERS["masked"], VOCABULARY, VOCABULARY), HeadConfig(kind="classes", classes=3)).eval()
    rows = RowBatch((batch(6, 2, 4, 5),), torch.tensor([0, 1, 2, 1]), np.arange(4))
    whole = Classes()(reader, rows)
    parts = [Classes()(reader, share) for share in rows.shares(3)]
    assert sum(part.tokens for part in parts) == whole.tokens == 4
    assert sum(part.total.item() for part in parts) == pytest.approx(whole.total.item(), rel=1e-5)
    assert rows.shares(2)[0].sides[0][0].shape == (2, 6) and rows.tokens == 17
    company = RowBatch(rows.sides, rows.labels, rows.rows, together=True)
    assert company.shares(4) == [company]


def test_classes_are_told_apart_by_cross_entropy():
    torch.manual_seed(1)
    reader = TextReader(build(ENCODERS["gru"], VOCABULARY, VOCABULARY), HeadConfig(kind="classes", classes=3)).eval()
    sides, labels = batch(3, 4), torch.tensor([2, 0])
    found = Classes(0.1)(reader, RowBatch((sides,), labels, np.arange(2)))
    logits = reader.output(reader(*sides))
    assert torch.allclose(found.total, F.cross_entropy(logits, labels, reduction="sum", label_smoothing=0.1))


def test_a_text_finds_its_partner_among_all_and_equals_are_not_held_against_it():
    torch.manual_seed(1)
    reader = TextReader(build(ENCODERS["masked"], VOCABULARY, VOCABULARY), HeadConfig(kind="vectors")).eval()
    one, other = batch(3, 4, 5), tuple(side.flip(0) for side in batch(5, 4, 3))
    labels = torch.tensor([7, 8, 7])
    found = Partners(0.1)(reader, RowBatch((one, other), labels, np.arange(3), together=True))
    a, b = (F.normalize(reader(*side), dim=1) for side in (one, other))
    total = 0.0
    for row in range(3):
        for x, y in ((a, b), (b, a)):
            rivals = [k for k in range(3) if k == row or labels[k] != labels[row]]
            scores = torch.stack([x[row] @ y[k] / 0.1 for k in rivals])
            total += (scores.logsumexp(0) - scores[rivals.index(row)]).item() / 2
    assert found.total.item() == pytest.approx(total, rel=1e-4) and found.tokens == 3


def test_without_partners_dropout_makes_them():
    torch.manual_seed(1)
    config = MaskedConfig(layers=1, dropout=0.2, **STACK)
    reader = TextReader(build(config, VOCABULARY, VOCABULARY), HeadConfig(kind="vectors"))
    rows = RowBatch((batch(5, 5),), torch.tensor([0, 1]), np.arange(2), together=True)
    still = Partners(1.0).cosines(reader.eval(), rows)
    assert torch.allclose(still.diagonal(), torch.ones(2), atol=1e-5)
    moving = Partners(1.0).cosines(reader.train(), rows)
    assert (moving.diagonal() < 0.9999).all()


def test_a_head_is_built_from_settings_and_has_a_layer_table():
    config = Config(model=ENCODERS["masked"], head=HeadConfig(kind="classes", classes=5, pooling="attention"))
    with torch.device("meta"):
        reader = build_for(config, VOCABULARY, VOCABULARY)
    rows = {row.name: row for row in summarise(reader).rows}
    assert rows["output"].weights == "5x16 5" and rows["output"].output == "(B, 5)"
    assert isinstance(
        build_for(Config(model=ENCODERS["masked"]), VOCABULARY, VOCABULARY), type(build(ENCODERS["masked"], 9, 9))
    )
    separate = Config(
        model=ENCODERS["translator-target-tied"], tokenizer=TokenizerConfig(joint=False), head=config.head
    )
    assert build_for(separate, 11, 17).encoder.source_embedding.weight.shape == (11, 16)


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        (HeadConfig, {"temperature": 0.0}, "head.temperature (0.0) must be above 0"),
        (HeadConfig, {"dropout": 1.0}, "head.dropout (1.0)"),
        (HeadConfig, {"classes": -1}, "head.classes (-1)"),
        (SkipGramConfig, {"window": 0}, "model.width, window and negatives must be at least 1"),
        (SkipGramConfig, {"subsample": -1.0}, "model.subsample (-1.0)"),
    ],
)
def test_settings_check_themselves(section, values, message):
    with pytest.raises(ConfigError, match=message.replace("(", r"\(").replace(")", r"\)")):
        section(**values)


# ---- word vectors -----------------------------------------------------------------------------------------------------------


def test_skip_gram_minimises_mikolovs_equation():
    torch.manual_seed(2)
    model = build(SkipGramConfig(width=5), VOCABULARY, VOCABULARY)
    with torch.no_grad():
        model.neighbours.weight.normal_()
    words, others = torch.tensor([4, 9]), torch.tensor([[5, 6, 7], [8, 4, 4]])
    found = NegativeSampling()(model, Neighbours(words, others, np.arange(2)))
    v, u = model.embedding.weight.detach().double(), model.neighbours.weight.detach().double()

    def sigma(x: float) -> float:
        return 1 / (1 + math.exp(-x))

    total = 0.0
    for word, (near, *drawn) in zip(words.tolist(), others.tolist(), strict=True):
        total -= math.log(sigma(float(u[near] @ v[word])))
        total -= sum(math.log(sigma(-float(u[k] @ v[word]))) for k in drawn)
    assert found.total.item() == pytest.approx(total, rel=1e-5) and found.tokens == 2
    assert describe(SkipGramConfig(width=5)) == "skip-gram word vectors of 5"


def test_word_vectors_look_nowhere_and_marks_have_none():
    model = build(SkipGramConfig(width=5), VOCABULARY, VOCABULARY)
    one, other = torch.tensor([[2, 7, 9, 3]]), torch.tensor([[2, 7, 15, 3]])
    mask = torch.ones(1, 4, dtype=torch.bool)
    assert torch.equal(model.encode(one, mask)[0, 1], model.encode(other, mask)[0, 1])
    assert torch.equal(model.encode(one, mask)[0, [0, 3]], torch.zeros(2, 5))
