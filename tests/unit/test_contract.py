"""The contract between models and search, stated once and held by every architecture."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch

from kente.config import (
    ConvConfig,
    DecodeConfig,
    IntraAttentionConfig,
    LanguageModelConfig,
    RecurrentConfig,
    RecurrentLanguageConfig,
    TransformerConfig,
)
from kente.decode.answers import length_penalty
from kente.decode.search import search
from kente.models.build import build
from kente.models.interface import Encodes, Trims, join, regroup, select

TINY = TransformerConfig(encoder_layers=2, decoder_layers=2, width=16, feedforward=32, heads=2, dropout=0.1)
FIXED = RecurrentConfig(attention="none", width=12, embedding=10)
ATTENTIVE = RecurrentConfig(width=12, embedding=10)
LANGUAGE = LanguageModelConfig(layers=2, width=16, feedforward=32, heads=2, dropout=0.1)
FAMILIES = {
    "transformer": TINY,
    "transformer-pre": replace(TINY, norm_place="pre"),
    "transformer-rotary-swiglu-rms": replace(
        TINY, norm_place="pre", positions="rotary", activation="swiglu", norm="rms"
    ),
    "transformer-learned-gelu": replace(TINY, positions="learned", activation="gelu", max_length=64),
    "transformer-relative": replace(TINY, positions="relative", relative_distance=3),
    "transformer-alibi": replace(TINY, positions="alibi"),
    "transformer-none": replace(TINY, positions="none"),
    "transformer-experts": replace(TINY, experts=3, experts_used=2),
    "transformer-xl": replace(TINY, positions="xl"),
    "transformer-window": replace(TINY, span="window", reach=3),
    "transformer-window-relative": replace(TINY, span="window", reach=2, positions="relative", relative_distance=3),
    "transformer-window-rotary": replace(TINY, span="window", reach=2, positions="rotary"),
    "transformer-memory-xl": replace(TINY, span="memory", reach=3, positions="xl"),
    "transformer-memory-alibi": replace(TINY, span="memory", reach=2, remembered=2, positions="alibi"),
    "transformer-linear": replace(TINY, span="linear"),
    "transformer-linear-biases": replace(TINY, span="linear", biases=True, positions="sinusoid-halves", scaled=False),
    "transformer-reversible-biases": replace(
        TINY, activations="reversible", norm_place="pre", span="window", reach=3, biases=True, output_bias=True
    ),
    "transformer-recompute-chunked": replace(TINY, activations="recompute", cross="chunked"),
    "transformer-reversible": replace(TINY, activations="reversible", norm_place="pre"),
    "transformer-reversible-window-xl": replace(
        TINY, activations="reversible", norm_place="pre", span="window", reach=3, positions="xl"
    ),
    "transformer-untied": replace(TINY, tie="none"),
    "transformer-target-tied": replace(TINY, tie="target"),
    "transformer-marian": replace(TINY, positions="sinusoid-halves", activation="silu", biases=True, output_bias=True),
    "transformer-m2m100": replace(
        TINY, norm_place="pre", positions="sinusoid-fairseq", biases=True, output_bias=True, tie="target"
    ),
    "fixed-rnn": replace(FIXED, cell="rnn"),
    "fixed-gru": FIXED,
    "fixed-minimal-repeat": replace(FIXED, cell="minimal", repeat_context=True),
    "fixed-lstm-handed-over": replace(FIXED, cell="lstm", bidirectional="none", encoder_layers=2, decoder_layers=2),
    "fixed-lstm-one-hot": replace(FIXED, cell="lstm", bidirectional="none", embedding=0, tie="none"),
    "gru-additive": ATTENTIVE,
    "rnn-bilinear": replace(ATTENTIVE, cell="rnn", attention="bilinear"),
    "lstm-projected-deep": replace(
        ATTENTIVE, cell="lstm", attention="projected", encoder_layers=3, decoder_layers=3, residual=True, tie="target"
    ),
    "minimal-dot": replace(ATTENTIVE, cell="minimal", attention="dot", bidirectional="none"),
    "gnmt": replace(
        ATTENTIVE, cell="lstm", encoder_layers=4, decoder_layers=4, bidirectional="first", residual=True,
        context_to="all",
    ),
    "lstmn": IntraAttentionConfig(width=12, embedding=10),
    "conv": ConvConfig(
        embedding=12, encoder_channels=(16, 20), encoder_kernels=(3, 5), decoder_channels=(16, 20),
        decoder_kernels=(3, 2), max_length=64,
    ),
    "conv-untied": ConvConfig(
        embedding=12, encoder_channels=(16,), encoder_kernels=(1,), decoder_channels=(16,), decoder_kernels=(1,),
        tie="none", max_length=64,
    ),
    "language": LANGUAGE,
    "language-post-untied": replace(LANGUAGE, norm_place="post", tie=False, activation="relu"),
    "language-rotary": replace(LANGUAGE, positions="rotary", activation="swiglu", norm="rms"),
    "language-learned": replace(LANGUAGE, positions="learned", max_length=64),
    "language-gpt2": replace(
        LANGUAGE, positions="learned", max_length=64, activation="gelu-tanh", biases=True, scaled=False, output_bias=True
    ),
    "language-relative": replace(LANGUAGE, positions="relative", relative_distance=3),
    "language-alibi": replace(LANGUAGE, positions="alibi"),
    "language-window": replace(LANGUAGE, span="window", reach=3),
    "language-memory-xl": replace(LANGUAGE, span="memory", reach=3, positions="xl"),
    "language-linear": replace(LANGUAGE, span="linear"),
    "language-reversible-window": replace(
        LANGUAGE, activations="reversible", span="window", reach=4, positions="rotary"
    ),
    "rnn-language": RecurrentLanguageConfig(cell="rnn", width=12, embedding=10),
    "lstm-language-deep": RecurrentLanguageConfig(cell="lstm", width=12, embedding=10, layers=3, residual=True),
    "gru-language-untied": RecurrentLanguageConfig(cell="gru", width=12, embedding=10, tie=False),
    "minimal-language": RecurrentLanguageConfig(cell="minimal", width=12, embedding=10),
}  # fmt: skip
MAPS = {
    "transformer": {"encoder", "decoder", "cross"},
    "lstmn": {"encoder", "decoder", "cross"},
    "conv": {"cross"},
    "language": {"decoder"},
    "recurrent-language": set(),
}
"""What each architecture has to show; a recurrent one its cross attention, if it attends."""
VOCABULARY = 23


@pytest.fixture(params=FAMILIES, ids=list(FAMILIES))
def config(request):
    return FAMILIES[request.param]


def model_of(config, seed=0, vocabulary=VOCABULARY):
    torch.manual_seed(seed)
    return build(config, vocabulary, vocabulary).eval()


def sentences(lengths, seed=1, width=None):
    """Random sources of these lengths, EOS last, PAD after."""
    generator = torch.Generator().manual_seed(seed)
    source = torch.zeros(len(lengths), width or max(lengths), dtype=torch.long)
    for row, length in enumerate(lengths):
        source[row, :length] = torch.randint(4, VOCABULARY, (length,), generator=generator)
        source[row, length - 1] = 3
    return source, source != 0


def targets(rows, length, seed=2):
    tokens = torch.randint(4, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(seed))
    tokens[:, 0] = 2
    return tokens


@torch.inference_mode()
def test_stepping_equals_reading_in_one_go(config):
    model = model_of(config)
    source, mask = sentences([7, 4, 5])
    target = targets(3, 6)
    read = model.predict(model(source, mask, target))
    state = model.start(source, mask)
    for place in range(6):
        step = model.step(state, target[:, place])
        state = step.state
        torch.testing.assert_close(step.logits, read[:, place], atol=2e-5, rtol=1e-4)


@torch.inference_mode()
def test_attention_shown_while_stepping_is_what_looking_shows(config):
    """Layers averaged; models that keep it to themselves while stepping show None."""
    model = model_of(config)
    source, mask = sentences([7, 4, 5])
    target = targets(3, 4)
    cross = [m.weights for m in model.look(source, mask, target) if m.kind == "cross"]
    state = model.start(source, mask)
    for place in range(4):
        step = model.step(state, target[:, place])
        state = step.state
        if step.attention is not None:
            torch.testing.assert_close(step.attention, torch.stack(cross).mean(0)[:, place], atol=2e-5, rtol=1e-4)


@torch.inference_mode()
def test_a_sentence_does_not_feel_its_neighbours(config):
    model = model_of(config)
    source, mask = sentences([9, 4, 6])
    target = targets(3, 5)
    together = model(source, mask, target)
    for row, length in enumerate([9, 4, 6]):
        alone = model(source[row : row + 1, :length], mask[row : row + 1, :length], target[row : row + 1])
        torch.testing.assert_close(alone[0], together[row], atol=2e-5, rtol=1e-4)


@torch.inference_mode()
def test_a_position_does_not_see_what_comes_after_it(config):
    model = model_of(config)
    source, mask = sentences([6, 6])
    target = targets(2, 8)
    changed = target.clone()
    changed[:, 5:] = (changed[:, 5:] + 1 - 4) % (VOCABULARY - 4) + 4
    before, after = model(source, mask, target), model(source, mask, changed)
    torch.testing.assert_close(before[:, :5], after[:, :5])
    assert not torch.allclose(before[:, 5:], after[:, 5:])


@torch.inference_mode()
def test_selecting_rows_of_a_state_is_selecting_sentences(config):
    model = model_of(config)
    source, mask = sentences([7, 4, 5])
    target = targets(3, 3)
    rows = torch.tensor([2, 0, 0, 1])
    state = model.start(source, mask)
    for place in range(2):
        state = model.step(state, target[:, place]).state
    expected = model.step(state, target[:, 2]).logits[rows]
    torch.testing.assert_close(model.step(select(state, rows), target[rows, 2]).logits, expected, atol=2e-5, rtol=1e-4)


def read_last(model, source, mask, histories):
    """Logits after each history, by reading it in one go."""
    return torch.stack(
        [
            model.predict(model(source[i : i + 1], mask[i : i + 1], torch.tensor([history])))[0, -1]
            for i, history in enumerate(histories)
        ]
    )


@torch.inference_mode()
def test_answers_to_one_sentence_may_go_on_from_each_other(config):
    """Three rows for each of two sentences wander for longer than the first buffers hold; what is shared is never touched."""
    model, generator = model_of(config), torch.Generator().manual_seed(4)
    source, mask = sentences([6, 4])
    owner = torch.tensor([0, 0, 0, 1, 1, 1])
    state = regroup(model.step(model.start(source, mask), torch.tensor([2, 2])).state, owner)
    histories = [[2] for _ in owner]
    for place in range(20):
        tokens = torch.randint(4, VOCABULARY, (6,), generator=generator)
        step = model.step(state, tokens)
        histories = [[*history, token] for history, token in zip(histories, tokens.tolist(), strict=True)]
        if place in (0, 1, 7, 19):
            expected = read_last(model, source[owner], mask[owner], histories)
            torch.testing.assert_close(step.logits, expected, atol=2e-5, rtol=1e-4)
        parents = owner * 3 + torch.randint(0, 3, (6,), generator=generator)
        state, histories = regroup(step.state, parents), [histories[parent] for parent in parents.tolist()]
    one_each, second = torch.tensor([2, 4]), torch.tensor([1])
    for rows, stay in ((one_each, None), (torch.tensor([4]), second)):  # fewer rows, then fewer sentences
        step = model.step(regroup(state, rows, stay), torch.full((len(rows),), 5))
        kept = [0, 1] if stay is None else [1]
        expected = read_last(model, source[kept], mask[kept], [[*histories[row], 5] for row in rows.tolist()])
        torch.testing.assert_close(step.logits, expected, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("group", [1, 2])
@torch.inference_mode()
def test_sentences_of_any_age_and_length_can_be_joined(config, group):
    """Some stand at their first words while the others go on, whether they are shorter or longer; then some of them leave."""
    model = model_of(config)
    if not getattr(model, "joins", False):
        assert config.kind == "lstmn"
        return
    old, young = sentences([6, 3, 5]), sentences([4, 20], seed=9)
    tokens, new_tokens = targets(3 * group, 24, seed=5), targets(2 * group, 24, seed=6)
    state = regroup(model.start(*old), torch.arange(3).repeat_interleave(group))
    for place in range(7):
        state = model.step(state, tokens[:, place]).state
    began = model.step(regroup(model.start(*young), torch.arange(2).repeat_interleave(group)), new_tokens[:, 0]).state
    state = join([state, began])
    rows = [
        (words[i // group], real[i // group], own[i].tolist())
        for (words, real), own in ((old, tokens), (young, new_tokens))
        for i in range(len(own))
    ]
    written = [7] * (3 * group) + [1] * (2 * group)
    stay = torch.tensor([0, 2, 3])  # the longest source leaves
    rows_that_stay = (stay[:, None] * group + torch.arange(group)).flatten()
    for number in range(12):
        if number == 4:
            state = regroup(state, rows_that_stay, stay)
            state = model.trimmed(state, 6) if isinstance(model, Trims) else state
            rows, written = ([some[row] for row in rows_that_stay.tolist()] for some in (rows, written))
        step = model.step(state, torch.tensor([row[2][count] for row, count in zip(rows, written, strict=True)]))
        state, written = step.state, [count + 1 for count in written]
        if number in (0, 3, 11):
            for logits, (words, real, history), count in zip(step.logits, rows, written, strict=True):
                expected = read_last(model, words[None], real[None], [history[:count]])[0]
                torch.testing.assert_close(logits, expected, atol=2e-5, rtol=1e-4)


@torch.inference_mode()
def test_a_few_words_can_be_weighed_alone(config):
    """The same for all sentences, or for each its own, whose rows stand side by side."""
    model = model_of(config)
    source, mask = sentences([7, 4, 5])
    few = torch.tensor([3, 9, 4, 22])
    state = regroup(model.start(source, mask), torch.tensor([0, 0, 1, 1, 2, 2]))
    tokens = torch.tensor([2, 5, 6, 2, 7, 9])
    everything = model.step(state, tokens).logits
    torch.testing.assert_close(model.step(state, tokens, model.narrowed(few)).logits, everything[:, few])
    own = torch.tensor([[3, 9], [4, 22], [5, 5]])
    expected = everything.gather(1, own.repeat_interleave(2, dim=0))
    torch.testing.assert_close(model.step(state, tokens, model.narrowed(own)).logits, expected)


@torch.inference_mode()
def test_attention_sums_to_one_and_is_zero_on_padding(config):
    model = model_of(config)
    source, mask = sentences([7, 4])
    maps = model.look(source, mask, targets(2, 5))
    attends = getattr(config, "attention", "") != "none"
    assert {m.kind for m in maps} == MAPS.get(config.kind, {"cross"} if attends else set())
    if config.kind == "transformer":
        assert len(maps) == 2 * (config.encoder_layers + 2 * config.decoder_layers)
    for attention in maps:
        sums = attention.weights.sum(-1)
        torch.testing.assert_close(sums, torch.ones_like(sums))
        if (
            attention.kind == "encoder"
        ):  # in a window, padding may have nothing to look at but padding; no word looks at it
            assert attention.weights[1, :4, 4:].max() == 0
        elif attention.kind == "cross":
            assert attention.weights[1, :, 4:].max() == 0
        else:
            assert attention.weights.triu(1).max() == 0


@pytest.mark.parametrize("name", [name for name in FAMILIES if name.startswith("transformer")])
@torch.inference_mode()
def test_looking_reads_the_same_weights_that_translate(name):
    """The visible and the fused path are one model: the hidden vectors agree."""
    model = model_of(FAMILIES[name])
    source, mask = sentences([7, 4])
    target = targets(2, 5)
    fused = model(source, mask, target)
    memory = model.decoder.project(model.encode(source, mask, []))
    x = model.target_positions(model.target_embedding(target) * model.scale)
    visible = model.decoder(x, memory, mask[:, None, None], seen=[])
    torch.testing.assert_close(visible, fused, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_wide_beam_finds_what_exhaustive_search_finds(config, seed):
    """Vocabulary of 3 real tokens, at most 3 of them: 40 answers, all of which fit in the beam."""
    vocabulary, longest = 7, 3
    model = model_of(config, seed, vocabulary)
    with torch.no_grad():  # sharper than a fresh model, so that answers differ clearly
        for parameter in model.parameters():
            parameter.mul_(1.5)
    source, mask = torch.tensor([[4, 6, 5, 3]]), torch.ones(1, 4, dtype=torch.bool)
    found = search(model, source, mask, DecodeConfig(beam=40, length_penalty=1.0), max_lengths=longest, n_best=3)[0]
    scored = []
    for length in range(longest + 1):
        for answer in itertools.product([4, 5, 6], repeat=length):
            with torch.inference_mode():
                logits = model.predict(model(source, mask, torch.tensor([[2, *answer]])))[0]
            steps = logits.log_softmax(-1)
            total = sum(float(steps[i, token]) for i, token in enumerate([*answer, 3]))
            scored.append((total / length_penalty(length + 1.0, 1.0), list(answer)))
    scored.sort(reverse=True)
    assert [h.ids for h in found] == [answer for _, answer in scored[:3]]
    assert found[0].score == pytest.approx(scored[0][0], abs=1e-4)


@torch.inference_mode()
def test_every_model_can_be_asked_for_its_reading_of_a_text_alone(config):
    """A vector for each token, untouched by the neighbours in the batch."""
    model = model_of(config)
    source, mask = sentences([7, 4, 5])
    states = model.encode(source, mask)
    assert states.shape[:2] == source.shape and isinstance(model, Encodes)
    for row, length in enumerate([7, 4, 5]):
        alone = model.encode(source[row : row + 1, :length], mask[row : row + 1, :length])
        torch.testing.assert_close(states[row, :length], alone[0], atol=2e-5, rtol=1e-4)


def test_every_weight_learns(config):
    """A gradient reaches each parameter: nothing in the network is for show."""
    model = model_of(config).train()
    source, mask = sentences([7, 4, 5])
    logits = model.predict(model(source, mask, targets(3, 6)))
    logits.log_softmax(-1)[..., 5].sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_the_same_seed_builds_the_same_model(config):
    one, other = model_of(config, seed=3), model_of(config, seed=3)
    for (name, a), (_, b) in zip(one.named_parameters(), other.named_parameters(), strict=True):
        assert torch.equal(a, b), name
