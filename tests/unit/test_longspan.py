"""Longer spans: each way of looking at less against attention that looks at everything, and what it then costs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from kente.api.writing import looks_back
from kente.config import Config, LanguageModelConfig, TransformerConfig
from kente.models.build import build
from kente.models.interface import regroup
from kente.nn.attention import SelfAttention, multi_head
from kente.nn.dropout import noise
from kente.nn.linear_attention import CHUNK, LinearAttention, summed
from kente.nn.longspan import CHUNK as QUERIES
from kente.nn.longspan import Blockwise, Segments, Window, in_chunks, neighbours
from kente.nn.masks import padding_mask
from kente.nn.past import SPARE, no_past, open_column
from kente.nn.positions import Alibi, Relative, RelativeSinusoid

CLOSE = {"atol": 2e-5, "rtol": 1e-4}
SPANS = {"window": Window(4), "memory": Segments(4), "two remembered": Segments(3, 2)}
MEETINGS = {
    "plain": lambda: multi_head,
    "relative": lambda: Relative(3, 8),
    "alibi": lambda: Alibi(2),
    "xl": lambda: RelativeSinusoid(16, 2),
}
TINY = TransformerConfig(encoder_layers=2, decoder_layers=2, width=16, feedforward=32, heads=2, dropout=0.0)


def looks(span, i, j, causal):
    """Who may look at whom, as the papers say it in words."""
    if causal and j > i:
        return False
    if isinstance(span, Window):
        return abs(i - j) < span.reach
    return 0 <= i // span.length - j // span.length <= span.remembered


def heads_of(length, seed=0, batch=2):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(batch, 2, length, 8, generator=generator).requires_grad_() for _ in range(3)]


# --- by blocks ---


@pytest.mark.parametrize("length", [5, 8, 14])
@pytest.mark.parametrize("causal", [False, True], ids=["both ways", "in order"])
@pytest.mark.parametrize("meeting", MEETINGS)
@pytest.mark.parametrize("name", SPANS)
def test_blocks_give_what_full_attention_gives_under_a_mask_of_the_stretch(name, meeting, causal, length):
    """Contexts and gradients, whatever positions feel; where text is padded, at its words."""
    torch.manual_seed(0)
    span, inside = SPANS[name], MEETINGS[meeting]()
    real = torch.ones(2, length, dtype=torch.bool)
    if not causal:
        real[1, length - 3 :] = False
    given, expected = heads_of(length), heads_of(length)
    context, weights = Blockwise(span, inside)(*given, None if causal else padding_mask(real), causal=causal)
    assert weights is None
    stretch = torch.tensor([[looks(span, i, j, causal) for j in range(length)] for i in range(length)])
    seen = stretch & real[:, None, None] | torch.eye(length, dtype=torch.bool)
    full, _ = inside(*expected, seen)
    words = real[:, None, :, None]
    torch.testing.assert_close(context * words, full * words, **CLOSE)
    (context * words).square().sum().backward()
    (full * words).square().sum().backward()
    for one, other in zip(given, expected, strict=True):
        torch.testing.assert_close(one.grad, other.grad, **CLOSE)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", SPANS)
@torch.inference_mode()
def test_what_fits_into_one_block_is_full_attention(name, causal):
    span = SPANS[name]
    given = heads_of(span.block)
    context, _ = Blockwise(span)(*given, None, causal=causal)
    torch.testing.assert_close(context, multi_head(*given, None, causal=causal)[0])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", SPANS)
@torch.inference_mode()
def test_looking_shows_the_stretch(name, causal):
    """Visible weights: of the words in the stretch and no others, and the context they give is that of the blocks."""
    span, given = SPANS[name], heads_of(11)
    blocks = Blockwise(span)
    context, weights = blocks(*given, None, causal=causal, visible=True)
    torch.testing.assert_close(context, blocks(*given, None, causal=causal)[0], **CLOSE)
    for i in range(11):
        for j in range(11):
            assert bool((weights[:, :, i, j] > 0).all()) == looks(span, i, j, causal)


@torch.inference_mode()
def test_padding_far_from_any_word_is_still_a_number():
    """A window of padding only would be a softmax over nothing."""
    real = torch.zeros(1, 30, dtype=torch.bool)
    real[0, :3] = True
    for meeting in MEETINGS.values():
        context, _ = Blockwise(Window(4), meeting())(*heads_of(30, batch=1), padding_mask(real))
        assert context.isfinite().all()


def test_neighbours_stand_beside_each_block():
    rows = neighbours(torch.arange(1, 8)[None], 3, before=1, after=1)
    assert rows.tolist() == [[[0, 0, 0, 1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6, 7, 0, 0], [4, 5, 6, 7, 0, 0, 0, 0, 0]]]


@pytest.mark.parametrize("name", SPANS)
@pytest.mark.parametrize("meeting", MEETINGS)
@torch.inference_mode()
def test_a_past_of_any_length_needs_the_room_of_the_stretch(name, meeting):
    """Word by word gives what reading gives, and of 150 words no more entries are kept than twice the stretch and what is spare."""
    torch.manual_seed(0)
    span = SPANS[name]
    layer = SelfAttention(16, 2, meet=Blockwise(span, MEETINGS[meeting]())).eval()
    x = torch.randn(2, 150, 16)
    read, _ = layer(x, causal=True)
    past, kin = no_past(1, torch.empty(2, 2, 0, 8)), torch.empty(2, 0, dtype=torch.bool)
    for place in range(150):
        past, kin, column = open_column(past, kin, span.first)
        torch.testing.assert_close(layer.step(x[:, place], past.layers[0], column), read[:, place], **CLOSE)
    stretch = span.block * (1 + span.before)
    assert kin.shape[1] <= 2 * stretch + SPARE


# --- chunks of queries ---


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_asking_in_chunks_changes_neither_contexts_nor_gradients(dropout):
    """Against the chunks asked one by one with everything kept, the same values dropped; without dropout against all at once."""
    length = 2 * QUERIES + 9
    mask = padding_mask(torch.arange(20)[None] < torch.tensor([[20], [13]]))
    given, expected = ([*heads_of(length)[:1], *heads_of(20, seed=1)[1:]] for _ in range(2))
    with noise(7):
        context, _ = in_chunks(*given, mask, dropout=dropout)
    with noise(7):
        chunks = expected[0].split(QUERIES, dim=2) if dropout else [expected[0]]
        full = torch.cat([multi_head(part, *expected[1:], mask, dropout=dropout)[0] for part in chunks], dim=2)
    torch.testing.assert_close(context, full, **CLOSE)
    context.square().sum().backward()
    full.square().sum().backward()
    for one, other in zip(given, expected, strict=True):
        torch.testing.assert_close(one.grad, other.grad, **CLOSE)


# --- linear attention ---


def linear_by_hand(layer, x, real, causal):
    """Head 0's context by the definition: a_ij = phi(q_i).phi(k_j) over their sum, phi(x) = elu(x) + 1."""

    def phi(vector):
        return torch.tensor([v + 1 if v > 0 else math.exp(v) for v in vector.tolist()])

    queries, keys, values = (part[:, :8] for part in layer.query_key_value(x).chunk(3, dim=-1))
    rows = []
    for i in range(len(x)):
        weights = [
            float(phi(queries[i]) @ phi(keys[j])) if real[j] and (j <= i or not causal) else 0.0 for j in range(len(x))
        ]
        rows.append(sum(weight / sum(weights) * value for weight, value in zip(weights, values, strict=True)))
    return torch.stack(rows)


@pytest.mark.parametrize("length", [3, CHUNK + 7])
@pytest.mark.parametrize("causal", [False, True])
@torch.inference_mode()
def test_linear_attention_is_its_definition(causal, length):
    """Within one chunk and across two."""
    torch.manual_seed(1)
    layer, x = LinearAttention(16, 2), torch.randn(1, length, 16)
    layer.output.weight.copy_(torch.eye(16))
    real = torch.arange(length) < (length if causal else length - 1)
    context, _ = layer(x, None if causal else padding_mask(real[None]), causal=causal)
    torch.testing.assert_close(context[0, :, :8], linear_by_hand(layer, x[0], real, causal), atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("causal", [False, True])
@torch.inference_mode()
def test_linear_attention_can_show_the_weights_it_never_makes(causal):
    torch.manual_seed(1)
    layer, x = LinearAttention(16, 2), torch.randn(2, 2 * CHUNK, 16)
    context, none = layer(x, causal=causal)
    visible, weights = layer(x, causal=causal, visible=True)
    torch.testing.assert_close(visible, context, atol=1e-4, rtol=1e-3)
    assert none is None and weights.min() >= 0 and (not causal or weights.triu(1).max() == 0)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 2 * CHUNK))


@torch.inference_mode()
def test_linear_attention_goes_on_as_a_recurrence():
    """From nothing, and from the sums of a beginning that was read in one go with padding at its end."""
    torch.manual_seed(1)
    layer, x = LinearAttention(16, 2), torch.randn(2, 90, 16)
    read, _ = layer(x, causal=True)
    nothing = torch.empty(2, 2, 0, 8)
    past, kin = no_past(0, nothing), torch.empty(2, 0, dtype=torch.bool)
    sums = torch.zeros(2, 2, 8, 9)
    begun: list[tuple[torch.Tensor, torch.Tensor]] = []
    layer(torch.cat([x[:, :70], torch.randn(2, 5, 16)], dim=1), causal=True, read=begun)
    known = summed(*begun[0], torch.arange(75)[None].expand(2, -1) < 70)
    for place in range(90):
        past, kin, column = open_column(past, kin)
        torch.testing.assert_close(layer.step(x[:, place], (sums,), column), read[:, place], atol=1e-4, rtol=1e-3)
        if place == 69:
            torch.testing.assert_close(sums, known, atol=1e-4, rtol=1e-3)


# --- language models ---

LANGUAGE = LanguageModelConfig(layers=2, width=16, feedforward=32, heads=2, dropout=0.0, reach=3)


@pytest.mark.parametrize("prompt", [0, 9])
@pytest.mark.parametrize(
    "settings",
    [
        {"span": "window"},
        {"span": "window", "positions": "rotary", "activations": "reversible"},
        {"span": "memory", "positions": "xl", "remembered": 2},
        {"span": "memory", "positions": "relative"},
        {"span": "linear"},
    ],
    ids=str,
)
@torch.inference_mode()
def test_a_language_model_goes_on_from_a_prompt_as_it_reads(settings, prompt):
    """Prompts of several lengths in one batch, then word by word, in two rows for each; against reading each text in one go."""
    torch.manual_seed(0)
    model = build(replace(LANGUAGE, **settings), 23, 23).eval()
    lengths = [prompt, max(prompt - 4, 0), max(prompt - 7, 0)]
    mask = torch.arange(prompt)[None] < torch.tensor(lengths)[:, None]
    source = torch.where(mask, torch.randint(4, 23, mask.shape), 0)
    owner = torch.tensor([0, 0, 1, 1, 2, 2])
    target = torch.randint(4, 23, (6, 12))
    state = regroup(model.start(source, mask), owner)
    for place in range(12):
        step = model.step(state, target[:, place])
        state = step.state
        if place in (0, 3, 11):
            for row, text in enumerate(owner.tolist()):
                ids = torch.cat([source[text, : lengths[text]], target[row, : place + 1]])[None]
                expected = model.predict(model.read(ids))[0, -1]
                torch.testing.assert_close(step.logits[row], expected, **CLOSE)


# --- whole models: what they cost ---


def kept(config, length):
    """Numbers that one reading keeps for its gradient, weights aside."""
    torch.manual_seed(0)
    model = build(config, 23, 23).train()
    source = torch.randint(4, 23, (1, 6))
    target = torch.randint(4, 23, (1, length))
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    sizes: dict[int, int] = {}
    alive = []

    def note(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            alive.append(tensor)  # else another could be given the same address
            sizes[storage.data_ptr()] = storage.nbytes() // 4
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        model(source, torch.ones_like(source, dtype=torch.bool), target)
    return sum(sizes.values())


LONG = replace(TINY, encoder_layers=1, reach=32, norm_place="pre")


@pytest.mark.parametrize(
    "settings",
    [
        {"span": "window"},
        {"span": "window", "attention_dropout": 0.1},
        {"span": "memory", "positions": "xl"},
        {"span": "linear"},
    ],
    ids=str,
)
def test_what_training_keeps_grows_with_the_length_and_not_with_its_square(settings):
    config = replace(LONG, **settings)
    assert kept(config, 1024) < 2.2 * kept(config, 512)


def test_full_attention_with_visible_weights_grows_with_the_square():
    """The contrast, where the fused kernel cannot help."""
    config = replace(LONG, attention_dropout=0.1)
    assert kept(config, 1024) > 3 * kept(config, 512)


def test_chunked_cross_attention_keeps_no_weights_of_the_source():
    config = replace(LONG, attention_dropout=0.1, span="window")
    assert kept(replace(config, cross="chunked"), 512) < kept(config, 512) - 2 * 2 * 512 * 6


def test_recomputed_layers_keep_their_inputs_and_reversible_ones_nothing():
    """What one more layer adds: much, its input (512 x 16), nothing."""

    def of_a_layer(activations):
        deep, shallow = (replace(LONG, activations=activations, decoder_layers=layers) for layers in (5, 4))
        return kept(deep, 512) - kept(shallow, 512)

    everything, inputs, nothing = (of_a_layer(name) for name in ("keep", "recompute", "reversible"))
    size = 512 * 16
    assert everything > 8 * size
    assert size <= inputs < 1.5 * size
    assert nothing < 0.1 * size


@pytest.mark.parametrize("settings", [{"span": "window"}, {"span": "memory", "positions": "xl"}], ids=str)
@torch.inference_mode()
def test_a_short_sentence_is_read_as_by_full_attention(settings):
    """Shorter than the reach, the same weights give the same answer, source and target."""
    torch.manual_seed(0)
    narrow = build(replace(TINY, reach=8, **settings), 23, 23).eval()
    full = build(replace(TINY, **{**settings, "span": "full"}), 23, 23).eval()
    names = {name: name.replace("attention.meet.meet", "attention.meet") for name in narrow.state_dict()}
    full.load_state_dict({names[name]: value for name, value in narrow.state_dict().items()})
    source, target = torch.randint(4, 23, (2, 8)), torch.randint(4, 23, (2, 8))
    mask = torch.tensor([[True] * 8, [True] * 5 + [False] * 3])
    torch.testing.assert_close(narrow(source, mask, target), full(source, mask, target), **CLOSE)
    longer = torch.randint(4, 23, (2, 20))
    assert not torch.allclose(narrow(source, mask, longer), full(source, mask, longer), atol=1e-3)


def test_a_narrow_span_that_knows_distances_only_writes_without_end():
    """Others read their text anew when it grows beyond the 256 tokens of a training block."""

    def of(**settings):
        return looks_back(Config(model=replace(LANGUAGE, **settings)))

    assert of(span="window", positions="rotary") is of(span="memory", positions="xl") is None
    assert of() == of(span="window") == of(positions="rotary") == of(span="linear") == 256
