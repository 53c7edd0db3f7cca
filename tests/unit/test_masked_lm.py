"""The masked encoder and its objective: what it sees, what it is asked, what that costs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from kente.config import MaskedConfig
from kente.data.batches import Batch
from kente.models.build import build
from kente.models.language_model import follow
from kente.train.objectives import Masked, mean_loss

CONFIG = MaskedConfig(layers=2, width=16, feedforward=32, heads=2, dropout=0.1)


def model_of(config=CONFIG, vocabulary=23):
    torch.manual_seed(0)
    return build(config, vocabulary, vocabulary).eval()


def batch_of(lengths=(6, 4)) -> Batch:
    generator = torch.Generator().manual_seed(1)
    output = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    for row, length in enumerate(lengths):
        output[row, :length] = torch.randint(4, 23, (length,), generator=generator)
    asked = torch.zeros_like(output, dtype=torch.bool)
    asked[0, 2] = asked[0, 5] = asked[1, 1] = True
    source, mask = torch.where(asked, 1, output), output > 0
    nothing = torch.zeros(len(lengths), 0, dtype=torch.long)
    return Batch(source, mask, nothing, output, asked, np.arange(len(lengths)), int(mask.sum()), 3)


@pytest.mark.parametrize("tie", [True, False])
def test_the_loss_is_the_cross_entropy_of_the_hidden_words_alone(tie):
    model, batch = model_of(MaskedConfig(layers=2, width=16, feedforward=32, heads=2, tie=tie)), batch_of()
    logits = model.predict(model(batch.source, batch.source_mask))
    expected = F.cross_entropy(logits[batch.target_mask], batch.target_output[batch.target_mask], reduction="sum")
    loss = Masked()(model, batch)
    torch.testing.assert_close(loss.total, expected)
    assert loss.tokens == 3 and mean_loss(model, [batch], "cpu", Masked()) == pytest.approx(expected.item() / 3)


def test_shares_have_the_loss_of_the_whole_even_without_a_gap_of_their_own():
    model, batch = model_of(), batch_of((6, 4, 5))
    whole = Masked()(model, batch).total
    parts = [Masked()(model, part).total for part in batch.shares(3)]
    torch.testing.assert_close(sum(parts), whole)
    assert parts[2].item() == 0


@torch.inference_mode()
def test_every_word_sees_both_ways_and_never_the_padding():
    model, batch = model_of(), batch_of()
    states = model.encode(batch.source, batch.source_mask)
    alone = model.encode(batch.source[1:, :4], batch.source_mask[1:, :4])
    torch.testing.assert_close(states[1, :4], alone[0], atol=2e-5, rtol=1e-4)
    changed = batch.source.clone()
    changed[0, 5] = 7
    assert not torch.allclose(model.encode(changed, batch.source_mask)[0, 0], states[0, 0])
    for attention in model.look(batch.source, batch.source_mask):
        assert attention.kind == "encoder" and attention.weights[1, :, 4:].max() == 0


def test_every_weight_learns():
    model = model_of().train()
    Masked()(model, batch_of()).total.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_a_target_stands_right_behind_its_source():
    source = torch.tensor([[5, 6, 7], [8, 0, 0]])
    ids, places = follow(source, source > 0, torch.tensor([[1, 2], [3, 4]]))
    assert ids[0].tolist() == [5, 6, 7, 1, 2] and ids[1, :3].tolist() == [8, 3, 4]
    assert places.tolist() == [[3, 4], [1, 2]]
