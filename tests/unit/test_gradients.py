"""The gradient of an update is the same however many threads share the work, and follows from the seed alone."""

import pytest
import torch

from kente.config import ConvConfig, RecurrentConfig, TransformerConfig
from kente.data.batches import collate
from kente.models.build import build
from kente.nn.dropout import LEVELS, Dropout, drop, noise
from kente.train.gradients import SMALLEST_SHARE, Gradients, replica
from kente.train.objectives import CrossEntropy

SHAPE = {"encoder_layers": 1, "decoder_layers": 2, "width": 16, "feedforward": 32, "heads": 2}
MODELS = {
    "transformer": TransformerConfig(**SHAPE, dropout=0.0),
    "attention dropout": TransformerConfig(**SHAPE, dropout=0.2, attention_dropout=0.3),
    "alibi": TransformerConfig(**SHAPE, dropout=0.2, attention_dropout=0.3, positions="alibi"),
    "experts": TransformerConfig(**SHAPE, dropout=0.2, experts=4, experts_used=2),
    "gru with attention": RecurrentConfig(cell="gru", attention="additive", dropout=0.2),
    "conv": ConvConfig(dropout=0.2),
}


@pytest.fixture
def threads():
    """Sets the number of threads, and puts it back."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def a_batch(pairs=60, seed=0):
    """Pairs of 3 to 12 words out of 40: several shares' worth of tokens."""
    words = torch.Generator().manual_seed(seed)
    draw = lambda: torch.randint(4, 40, (int(torch.randint(3, 13, (), generator=words)),), generator=words).tolist()  # noqa: E731
    return collate([draw() for _ in range(pairs)], [draw() for _ in range(pairs)])


def model_of(config):
    torch.manual_seed(3)
    return build(config, 40, 40, joint=True).train()


def gradient_of(config, batch, step=1, seed=1, precision="float32"):
    model = model_of(config)
    loss = Gradients(model, CrossEntropy(0.1), precision=precision)([batch], seed=seed, step=step)
    return loss, {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def test_shares_hold_every_pair_once_and_no_column_nobody_needs():
    batch = a_batch(pairs=11)
    shares = batch.shares(3)
    assert len(shares) == 3
    assert [row for share in shares for row in share.rows.tolist()] == batch.rows.tolist()
    for share in shares:
        assert share.source_mask.any(0).all() and share.target_mask.any(0).all()
        assert (share.source_tokens, share.target_tokens) == (
            int(share.source_mask.sum()),
            int(share.target_mask.sum()),
        )
    assert sum(share.target_tokens for share in shares) == batch.target_tokens
    together = torch.cat([share.target_output[share.target_mask] for share in shares])
    assert together.equal(batch.target_output[batch.target_mask])


def test_shares_have_about_the_same_work_padding_included():
    long, short = [5] * 30, [5] * 10
    batch = collate([long] * 20 + [short] * 40, [short] * 60)
    one, other = batch.shares(2)
    assert len(one) < len(other)
    work = [len(share) * (share.source.shape[1] + 2 * share.target_output.shape[1]) for share in (one, other)]
    assert max(work) < 1.15 * min(work)
    outlier = collate([long] + [short] * 59, [short] * 60)  # a single wide pair makes its whole share wide
    assert len(outlier.shares(2)[0]) < 25
    assert [len(share) for share in collate([short] * 12, [short] * 12).shares(3)] == [4, 4, 4]


def test_a_batch_of_few_pairs_is_cut_into_no_empty_share():
    assert [len(share) for share in a_batch(pairs=2).shares(5)] == [1, 1]


def test_two_threads_find_the_gradient_that_one_finds(threads):
    batch = a_batch()
    assert batch.target_tokens > 2 * SMALLEST_SHARE
    threads(1)
    alone, whole = gradient_of(MODELS["transformer"], batch)
    threads(2)
    together, summed = gradient_of(MODELS["transformer"], batch)
    assert torch.get_num_threads() == 2, "threads are put back"
    assert together == pytest.approx(alone, rel=1e-6)
    for name, gradient in whole.items():
        torch.testing.assert_close(summed[name], gradient, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", MODELS)
def test_threads_change_nothing_from_one_time_to_the_next(threads, name, precision):
    """Bit for bit: dropout, experts and all, whoever is first."""
    threads(3)
    batch = a_batch(pairs=90)
    loss, once = gradient_of(MODELS[name], batch, precision=precision)
    for _ in range(3):
        again_loss, again = gradient_of(MODELS[name], batch, precision=precision)
        assert again_loss == loss
        assert all(torch.equal(gradient, again[key]) for key, gradient in once.items())


def test_only_rounded_precision_rounds():
    config, batch = MODELS["transformer"], a_batch(pairs=90)
    exact, rounded = (gradient_of(config, batch, precision=precision) for precision in ("float32", "bfloat16"))
    assert exact[0] != rounded[0] and rounded[0] == pytest.approx(exact[0], rel=1e-3)
    assert gradient_of(config, batch)[0] == exact[0]


def test_another_update_drops_other_values():
    config = MODELS["attention dropout"]
    assert gradient_of(config, a_batch(), step=1)[0] != gradient_of(config, a_batch(), step=2)[0]
    assert gradient_of(config, a_batch(), seed=1)[0] != gradient_of(config, a_batch(), seed=2)[0]


def test_an_error_in_a_share_comes_out(threads):
    threads(2)
    model = model_of(MODELS["transformer"])

    def broken(model, share):
        raise RuntimeError(f"{len(share)} pairs are too many")

    with pytest.raises(RuntimeError, match="30 pairs are too many"):
        Gradients(model, broken)([a_batch(pairs=60)], seed=1, step=1)
    assert torch.get_num_threads() == 2


def test_a_replica_shares_the_weights_and_nothing_else():
    model = model_of(MODELS["experts"])
    other = replica(model)
    assert [id(p) for p in other.parameters()] == [id(p) for p in model.parameters()]
    batch = a_batch()
    model(batch.source, batch.source_mask, batch.target_input)
    assert model.side_loss(batch.source_mask, batch.target_mask) is not None
    assert other.side_loss(batch.source_mask, batch.target_mask) is None


# --- noise ---


def test_noise_follows_from_its_seed():
    x = torch.ones(50, 40)
    with noise(5):
        once = [drop(x, 0.25), drop(x, 0.25)]
    with noise(5):
        again = [drop(x, 0.25), drop(x, 0.25)]
    with noise(6):
        other = drop(x, 0.25)
    assert once[0].equal(again[0]) and once[1].equal(again[1])
    assert not once[0].equal(once[1]) and not once[0].equal(other)


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.001])
def test_noise_silences_its_share_and_keeps_the_mean(p):
    share = max(1, round(p * LEVELS)) / LEVELS
    with noise(1):
        dropped = torch.stack([drop(torch.ones(400_000), p) for _ in range(3)])
    assert (dropped == 0).float().mean().item() == pytest.approx(share, abs=0.004)
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.01)
    assert sorted(set(dropped.flatten().tolist())) == pytest.approx([0.0, 1 / (1 - share)])


def test_masks_of_one_reading_are_unrelated():
    """Two windows of the supply agree as often as chance has it."""
    with noise(2):
        masks = [drop(torch.ones(20_000), 0.5) > 0 for _ in range(6)]
    for place, one in enumerate(masks):
        for other in masks[:place]:
            assert (one == other).float().mean().item() == pytest.approx(0.5, abs=0.02)


def test_noise_ends_with_its_block():
    torch.manual_seed(0)
    before = drop(torch.ones(100), 0.5)
    with noise(9):
        drop(torch.ones(100), 0.5)
    torch.manual_seed(0)
    assert drop(torch.ones(100), 0.5).equal(before)


def test_adding_what_dropout_leaves_is_dropout_and_a_sum():
    layer, x, y = Dropout(0.3).train(), torch.randn(7, 5), torch.randn(7, 5)
    with noise(4):
        fused = layer.add(x, y)
    with noise(4):
        torch.testing.assert_close(fused, x + layer(y))
    assert layer.eval().add(x, y).equal(x + y)
