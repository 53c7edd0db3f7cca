"""The experiments behind `kente lecture`: their identities exactly, their sentences both ways, their code paths in small."""

from __future__ import annotations

import importlib
import itertools
import json
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kente import api
from kente.data.batches import collate
from kente.errors import RunError
from kente.lectures import (
    EXPERIMENTS,
    bottleneck,
    costs,
    fibonacci,
    gradients,
    heads,
    mask,
    meanings,
    order,
    pronouns,
    translator,
    unrolled,
    write_page,
)
from kente.lectures.finding import Finding
from kente.lectures.practice import FIRST, next_right, seeded, whole_right
from kente.lectures.recall import LETTERS, AttentiveReader, RecurrentReader, ask
from kente.models.many_to_one import ManyToOne
from kente.nn.attention import SelfAttention, attend, dot_scores
from kente.nn.recurrent import GRUCell, LSTMCell, MinimalGateCell, RNNCell
from kente.reporting import SILENT, Reporter

# ---- the list of experiments ------------------------------------------------------------------------------------------------


def test_the_list_of_experiments_needs_no_torch():
    code = "import sys, kente.lectures; assert len(kente.lectures.EXPERIMENTS) == 9; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_runs_the_module_of_its_name(name, monkeypatch):
    module = importlib.import_module(f"kente.lectures.{name}")
    monkeypatch.setattr(module, "explore", lambda *given: given)
    reporter, run = Reporter(), Path("runs/some")
    assert EXPERIMENTS[name].run(reporter, run) in ((reporter,), (reporter, run))
    assert EXPERIMENTS[name].name == name and EXPERIMENTS[name].seconds <= 120


def test_the_experiments_that_look_into_a_translator_are_given_the_run(monkeypatch):
    for name in ("mask", "heads", "meanings"):
        module = importlib.import_module(f"kente.lectures.{name}")
        monkeypatch.setattr(module, "explore", lambda reporter, run: run)
        assert EXPERIMENTS[name].run(SILENT, Path("runs/some")) == Path("runs/some")


def test_a_page_holds_every_finding_and_escapes_what_they_say(tmp_path):
    one = Finding("one", "First", "lecture 000", "a < b", "it is 3 & 4", ("<figure>one</figure>",), {})
    two = Finding("two", "Second", "lecture 001", "c", "d", ("<figure>two</figure>",), {})
    write_page([one, two], tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    for part in (
        "First",
        "Second",
        "a &lt; b",
        "it is 3 &amp; 4",
        "<figure>one</figure>",
        "<figure>two</figure>",
        "lecture 001",
    ):
        assert part in text
    assert "<script src" not in text and '<link rel="stylesheet"' not in text


# ---- every experiment, in small -------------------------------------------------------------------------------------------------


def _check(finding: Finding) -> None:
    """Agrees with the list, has pictures, and its numbers can be written down."""
    experiment = EXPERIMENTS[finding.name]
    assert (finding.title, finding.lecture) == (experiment.title, experiment.lecture)
    assert finding.figures and all("<figure" in figure for figure in finding.figures)
    assert finding.claim.endswith(".") and finding.found.endswith(".")
    json.dumps(finding.data)


def test_gradients_in_small():
    finding = gradients.explore(length=6, updates=2, width=8)
    _check(finding)
    assert f"RNN {finding.data['before']['RNN'][-1]:.0e}" in finding.found
    assert f"attention {finding.data['right']['attention'][5]:.0%}" in finding.found
    assert all(len(norms) == 5 and norms[0] == 1 for norms in finding.data["after"].values())


def test_unrolled_in_small():
    finding = unrolled.explore(length=6, updates=2, width=8)
    _check(finding)
    assert finding.data["error"] < 1e-6 < finding.data["printed_error"]
    assert f"{finding.data['on_mark']['gates']:.2f} by gates" in finding.found


def test_order_in_small():
    finding = order.explore(kinds=("none", "sinusoid", "learned"), longest=4, updates=2)
    _check(finding)
    assert f"sinusoid {finding.data['sinusoid']['beyond']:.0%}" in finding.found
    assert set(finding.data["none"]["by_length"]) >= {4, 5, 8}


def test_costs_in_small():
    finding = costs.explore(width=16, heads=2, longest=64, repeats=1)
    _check(finding)
    assert finding.data["lengths"] == [16, 32, 64]
    assert f"{finding.data['milliseconds']['self-attention'][-1]:.3g} at 64" in finding.found


def test_bottleneck_in_small():
    finding = bottleneck.explore(width=9, longest=4, updates=2, batch=4)
    _check(finding)
    assert f"attention {finding.data['whole']['attention'][4]:.0%}" in finding.found
    assert finding.data["parameters"]["fixed context"] > finding.data["parameters"]["attention"]


def test_fibonacci_in_small():
    finding = fibonacci.explore(count=60, seeds=3, epochs=2)
    _check(finding)
    assert list(finding.data["parameters"].values()) == [11, 33, 33]
    better = sum(
        a < b
        for a, b in zip(
            *(finding.data["logarithms"]["errors"][n] for n in ("attention, slide", "without attention")), strict=True
        )
    )
    assert f"{better} of 3 seeds (the slide's form)" in finding.found


def test_meanings_in_small():
    finding = meanings.explore(updates=3)
    _check(finding)
    one = finding.data["word_vectors"]
    assert one["within"] == pytest.approx(one["between"]) == pytest.approx(1) and 0.4 < one["right"] < 0.6
    assert "word2vec gives bank one vector in all 80 sentences" in finding.found
    assert len(finding.data["neighbours"]) == 8 and "bank" not in [n["word"] for n in finding.data["neighbours"]]


def test_meanings_lie_apart_where_vectors_do():
    vectors = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]).numpy()
    apart = meanings.separation(vectors, ["a", "a", "b", "b"])
    assert apart.right == 1 and apart.within > 0.9 > 0.3 > apart.between
    crossed = meanings.separation(vectors, ["a", "b", "a", "b"])
    assert crossed.right == 0 and "hardly tell" in meanings.found(crossed, crossed, "it", 4)
    assert "two vectors or more" in meanings.found(crossed, apart, "it", 4)


def test_a_sentence_of_the_scenes_is_decided_by_its_end_and_half_are_kept_back():
    learnt, apart = meanings.sentences(1, 5)
    assert len(apart) == 10 and not {s.text for s in apart} & set(meanings.text(1, 5))
    starts = {
        meaning: {s.text.split(" bank ")[0] for s in learnt if s.meaning == meaning} for meaning in ("river", "money")
    }
    assert starts["river"] == starts["money"]


def test_mask_in_small():
    """Lecture 004: nothing right of the diagonal, rows that sum to one, and the four steps in one reading."""
    finding = mask.explore(updates=2)
    _check(finding)
    assert finding.data["pieces"] == ["<sos>", "Je", "vais", "bien"]
    assert len(finding.data["weights"]) == 8
    for weights in finding.data["weights"].values():
        for t, row in enumerate(weights):
            assert row[t + 1 :] == [0.0] * (3 - t)
            assert sum(row) == pytest.approx(1, abs=1e-5)
    assert finding.data["step_by_step_error"] < 1e-5
    assert "8 heads" in finding.found and "exactly 0" in finding.found


def test_heads_in_small():
    finding = heads.explore(updates=2, sentences=3, pronouns=2)
    _check(finding)
    assert len(finding.data["places"]) == len(finding.data["divergence"]) == len(finding.data["clear_cases"]) == 8
    first = sum(finding.data["leaning"][0].values()) / 8
    assert f"by {first:+.2f} where it is the" in finding.found
    assert all(word in finding.found for word in finding.data["unknown"])


# ---- gradients --------------------------------------------------------------------------------------------------------------


def test_the_gradient_of_a_plain_recurrence_is_the_product_of_jacobians():
    """Lecture 000: dJ/dh_t = prod U' diag(tanh'(a)) dJ/dh_T, against autograd, in double precision."""
    with seeded(1):
        model = RecurrentReader(RNNCell(5, 5), 5).double()
    question = ask(1, 12, torch.Generator().manual_seed(1))
    x, (h,), states = model.words(question.ids), model.cell.initial(1), []
    for t in range(12):
        (h,) = model.cell(x[:, t], (h,))
        states.append(h)
    cost = gradients.cost_of(model.output(h), question)
    by_autograd = torch.stack(torch.autograd.grad(cost, states))[:, 0]
    products = gradients.product_of_jacobians(model.cell.recurrent.weight, torch.cat(states))
    by_hand = products.transpose(1, 2) @ model.output.weight[question.answer[0]]
    assert (by_hand - by_autograd).abs().max() < 1e-6
    norms = gradients.recurrent_gradients(model, question)
    assert (by_hand.norm(dim=-1) - norms).abs().max() < 1e-6
    assert norms[0] < norms[-1]


def test_the_state_of_an_lstm_is_counted_once():
    """Nudging h_t and c_t one by one, each held apart from the other, gives the norm that is reported."""
    with seeded(1):
        model = RecurrentReader(LSTMCell(3, 3), 3).double()
    question = ask(1, 4, torch.Generator().manual_seed(1))
    x = model.words(question.ids)

    def cost(h: torch.Tensor, c: torch.Tensor, start: int) -> torch.Tensor:
        state = (h, c)
        for t in range(start, 4):
            state = model.cell(x[:, t], state)
        return gradients.cost_of(model.output(state[0]), question)

    state, norms = model.cell.initial(1), []
    for t in range(4):
        state = tuple(part.detach() for part in model.cell(x[:, t], state))
        slopes = torch.autograd.functional.jacobian(lambda h, c, t=t: cost(h, c, t + 1), state)
        norms.append(torch.cat([slope.flatten() for slope in slopes]).norm())
    assert (torch.stack(norms) - gradients.recurrent_gradients(model, question)).abs().max() < 1e-9


@pytest.mark.parametrize("cell", [RNNCell, LSTMCell, GRUCell, MinimalGateCell])
def test_readers_answer_with_a_letter(cell):
    question = ask(3, 5, torch.Generator().manual_seed(1))
    assert RecurrentReader(cell(4, 6), 4)(question.ids).shape == (3, LETTERS)


def test_a_question_marks_the_letter_it_asks_for():
    question = ask(50, 9, torch.Generator().manual_seed(1))
    marked = question.ids >= LETTERS
    assert marked.sum(dim=1).eq(1).all()
    assert (question.ids[marked] - LETTERS).equal(question.answer)
    assert marked.long().argmax(dim=1).equal(question.place)
    assert ask(5, 9, torch.Generator().manual_seed(1), place=2).place.eq(2).all()


@pytest.mark.parametrize(
    ("recalled", "said"), [(0.4, "forgets what gates and attention keep"), (1.0, "does no worse than the others")]
)
def test_what_is_said_of_gradients_follows_the_numbers(recalled, said):
    norms = {name: [1.0, 0.5] for name in ("RNN", "LSTM", "GRU", "attention")}
    right = {"RNN": recalled, "LSTM": 1.0, "GRU": 1.0, "attention": 1.0}
    text = gradients.found(norms, norms, right, 2)
    assert said in text and "no short-cut" not in text
    opened = norms | {"GRU": [1.0, 1e-6]}
    assert "no short-cut until it has learned" in gradients.found(opened, norms, right, 2)


# ---- unrolled ---------------------------------------------------------------------------------------------------------------

GATES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(GATES, st.randoms(use_true_random=False))
def test_a_gated_recurrence_unrolled_is_a_weighted_sum(values, chance):
    """Lecture 000, with the bounds put right: w_ti = (prod_{j=i+1..t} u_j) (1 - u_i), and (prod_{j<=t} u_j) is left of h_0."""
    gates = torch.tensor(values, dtype=torch.float64)[:, None]
    candidates = torch.tensor([[chance.uniform(-1, 1)] for _ in values], dtype=torch.float64)
    first = torch.tensor([chance.uniform(-1, 1)], dtype=torch.float64)
    weights = unrolled.unrolled_weights(gates)
    summed = unrolled.weighted_sum(weights, candidates, first)
    assert (summed - unrolled.gated_run(gates, candidates, first)).abs().max() < 1e-6
    left = torch.tensor([math.prod(values[: t + 1]) for t in range(len(values))], dtype=torch.float64)
    assert (weights[:, 1:].sum(dim=1)[:, 0] - (1 - left)).abs().max() < 1e-6
    assert (weights >= 0).all() and weights[:, 1:, 0].triu(diagonal=1).eq(0).all()


def test_the_bounds_on_the_slide_give_something_else():
    """Lecture 000 prints prod_{j=i..t-i+1} u_j prod_{k<i} (1 - u_k); at t = 1 that is u_1 where the recurrence has 1 - u_1."""
    gates = torch.tensor([[0.9], [0.8]])
    assert unrolled.as_printed(gates)[0, 1].item() == pytest.approx(0.9)
    assert unrolled.unrolled_weights(gates)[0, 1].item() == pytest.approx(0.1)
    assert unrolled.as_printed(gates)[1, 2].item() == pytest.approx(1 - 0.9)  # i = 2 > t - i + 1: an empty product


def test_gates_read_off_a_cell_rebuild_its_states():
    with seeded(1):
        model = RecurrentReader(MinimalGateCell(4, 6), 4).double()
    ids = ask(1, 7, torch.Generator().manual_seed(1)).ids[0]
    gates, candidates = unrolled.gates_and_candidates(model, ids)
    states, (h,) = unrolled.gated_run(gates, candidates, torch.zeros(6, dtype=torch.float64)), model.cell.initial(1)
    for t, x in enumerate(model.words(ids)):
        (h,) = model.cell(x[None], (h,))
        assert (h[0] - states[t]).abs().max() < 1e-12


def test_what_is_said_of_gates_follows_the_numbers():
    assert "is the weighted sum" in unrolled.found(1e-7, 1e-7, 1.0, {"gates": 0.2, "attention": 0.8}, 16)
    denied = unrolled.found(0.5, 1e-7, 1.0, {"gates": 0.01, "attention": 0.8}, 16)
    assert "is not the weighted sum" in denied and "not both put weight" in denied


# ---- order ------------------------------------------------------------------------------------------------------------------


def test_attention_shuffled_is_attention_of_the_shuffled():
    """Lecture 000: ATT(A, B, C) = ATT(B, C, A), so that the mean over words does not change at all."""
    with seeded(1):
        layer, x, places = SelfAttention(8, 2).double(), torch.randn(1, 6, 8, dtype=torch.float64), torch.randperm(6)
    straight, shuffled = layer(x)[0], layer(x[:, places])[0]
    assert (straight[:, places] - shuffled).abs().max() < 1e-12
    assert (straight.mean(dim=1) - shuffled.mean(dim=1)).abs().max() < 1e-12


@pytest.mark.parametrize("kind", order.KINDS)
def test_a_transformer_feels_the_order_of_its_source_with_positions_only(kind):
    """Lecture 000: the formulation is position-invariant until positions are included."""
    with seeded(1):
        model = order.make(kind, width=16).eval()
    felt = order.feels_order(model)
    assert felt < 1e-5 if kind == "none" else felt > 1e-3


@pytest.mark.parametrize("length", [1, 2, 5])
def test_the_blind_guess_is_what_guessing_gets(length):
    """Counted over every order in which the letters could have stood: right at place t is one of those left."""
    orders = list(itertools.permutations(range(length)))
    guesses = [
        next(letter for letter in range(length) if letter not in o[:t]) == o[t] for o in orders for t in range(length)
    ]
    assert order.blind_guess(length) == pytest.approx(sum(guesses) / len(guesses))


def test_strings_to_copy_have_distinct_letters():
    drawn = order.strings("some", 50, 2, 20)
    assert drawn == order.strings("some", 50, 2, 20) != order.strings("other", 50, 2, 20)
    assert all(len(set(string)) == len(string) and 2 <= len(string) <= 20 and min(string) >= FIRST for string in drawn)


def _measured(beyond: float, inside: float = 0.99, felt: float = 0.3) -> order.Measured:
    return order.Measured(felt, {10: inside, 11: 0.7, 20: 0.4}, beyond, {10: 0.9, 11: 0.0, 20: 0.0})


def test_what_is_said_of_order_follows_the_numbers():
    blind = _measured(0.2, order.blind_guess(10), 1e-6)
    claimed = order.found({"none": blind, "sinusoid": _measured(0.9), "learned": _measured(0.05)}, 10)
    assert (
        "is blind to order" in claimed
        and "every code restores it" in claimed
        and "Sinusoid positions extrapolate" in claimed
    )
    denied = order.found({"none": _measured(0.9), "sinusoid": _measured(0.1, 0.5), "learned": _measured(0.05)}, 10)
    assert (
        "is not blind to order" in denied
        and "not every code restores it" in denied
        and "No code extrapolates" in denied
    )


def test_answers_are_judged_symbol_by_symbol_and_whole():
    """A model that always says the first symbol: right once in every string of distinct letters, never from the second place on."""

    class Stubborn(torch.nn.Module):
        def forward(self, source, mask, target):
            return torch.nn.functional.one_hot(source[:, :1].expand(target.shape), 40).double()

        def predict(self, hidden):
            return hidden

    batch = collate([[4, 5, 6], [7, 8, 9]], [[4, 5, 6], [7, 8, 9]])
    assert next_right(Stubborn(), batch) == pytest.approx(1 / 3)
    assert next_right(Stubborn(), batch, after=1) == 0


def test_a_whole_answer_is_right_or_wrong(monkeypatch):
    answers = [[SimpleNamespace(ids=[4, 5])], [SimpleNamespace(ids=[4])]]
    monkeypatch.setattr("kente.lectures.practice.search", lambda *_: answers)
    assert whole_right(None, collate([[4], [4]]), [[4, 5], [4, 5]]) == 0.5


# ---- costs ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "reach"), [(8, 4), (24, 4), (6, 1), (5, 5)])
def test_attention_in_a_band_is_attention_with_a_mask(length, reach):
    with seeded(1):
        queries, keys, values = (torch.randn(2, length, 3, dtype=torch.float64) for _ in range(3))
    places = torch.arange(length)
    near = (places[:, None] - places).abs() <= reach
    expected, _ = attend(dot_scores(queries, keys), values, near)
    assert (costs.band_attention(queries, keys, values, reach) - expected).abs().max() < 1e-12


def test_a_convolution_is_one_product_over_windows():
    with seeded(1):
        x, weight = torch.randn(2, 7, 4, dtype=torch.float64), torch.randn(4, 12, dtype=torch.float64)
    kernel = weight.unflatten(1, (3, 4)).transpose(1, 2)  # (out, in, k)
    expected = torch.nn.functional.conv1d(x.transpose(1, 2), kernel, padding=1).transpose(1, 2)
    assert (costs.window_convolution(x, weight) - expected).abs().max() < 1e-12


@pytest.mark.parametrize("length", [2, 3, 4, 9, 10, 27, 100])
def test_the_longest_path_is_the_number_of_layers_that_joins_all_words(length):
    """Against a search: how many layers until the last word has heard of the first. Kernels reach k times as far in each layer."""
    attention, recurrent, convolution, within = costs.KINDS
    heard, layers = 1, 0
    while heard < length:
        heard, layers = heard * costs.KERNEL, layers + 1
    assert convolution.path(length) == layers
    place, hops = 0, 0
    while place < length - 1:
        place, hops = place + costs.REACH, hops + 1
    assert within.path(length) == hops
    assert (attention.path(length), recurrent.path(length)) == (1, length)
    assert [kind.sequential(length) for kind in costs.KINDS] == [1, length, 1, 1]


def test_operations_meet_where_the_words_are_as_many_as_the_width():
    """ "Attention is all you need", section 4: self-attention has fewer operations than a recurrence while n < D."""
    attention, recurrent, *_ = costs.KINDS
    assert attention.operations(128, 128) == recurrent.operations(128, 128) == 128**3
    assert attention.operations(127, 128) < recurrent.operations(127, 128)


def test_a_crossing_is_read_between_measurements():
    lengths = [16, 64, 256]
    assert costs.crossing(lengths, [1, 1, 4], [2, 2, 2]) == pytest.approx(128)
    assert costs.crossing(lengths, [1, 1, 1], [2, 2, 2]) is None
    assert costs.crossing(lengths, [4, 4, 4], [2, 2, 2]) == 16
    assert costs.crossing(lengths, [4, 1, 4], [2, 2, 2]) == pytest.approx(
        128
    )  # where it stays behind, not where it stumbled


def test_what_is_said_of_costs_follows_the_numbers():
    names = [kind.name for kind in costs.KINDS]
    quick = dict(zip(names, ([0.1, 4.0], [0.2, 2.0], [0.1, 0.1], [0.3, 1.0]), strict=True))
    assert "2.0 times as fast" in costs.found([64, 128], quick, {"recurrent": 90.0, "restricted": 100.0}, 128)
    slow = costs.found([64, 128], quick | {names[0]: [0.4, 0.4]}, {"recurrent": None, "restricted": None}, 128)
    assert "2.0 times as slow" in slow and "has not up to 128" in slow and "at none of these lengths" in slow


# ---- bottleneck ---------------------------------------------------------------------------------------------------------------


def test_lengths_are_mastered_up_to_the_first_that_is_not():
    assert bottleneck.mastered({2: 1.0, 4: 0.95, 6: 0.5, 8: 1.0}) == 4
    assert bottleneck.mastered({2: 0.1}) == 0


def test_what_is_said_of_the_bottleneck_follows_the_numbers():
    whole = {"fixed context": {4: 0.1, 8: 0.0}, "attention": {4: 1.0, 8: 0.0}}
    assert "is a bottleneck" in bottleneck.found(
        whole, 4
    ) and "does not carry to lengths never seen" in bottleneck.found(whole, 4)
    equal = {"fixed context": {4: 1.0, 8: 0.0}, "attention": {4: 1.0, 8: 1.0}}
    assert "does not show" in bottleneck.found(equal, 4) and "never seen" not in bottleneck.found(equal, 4)


# ---- mask and heads -----------------------------------------------------------------------------------------------------------


def test_what_is_said_of_the_mask_follows_the_numbers():
    assert "up to 2e-01, not 0" in mask.found(4, 0.2, 1e-7, 1e-7, "x")
    assert "rows miss one by up to 5e-01" in mask.found(4, 0.0, 0.5, 1e-7, "x")
    assert "does not give the same rows" in mask.found(4, 0.0, 1e-7, 0.5, "x")
    leaking = torch.tensor([[0.9, 0.1], [0.5, 0.4]])
    assert mask.ahead(leaking) == pytest.approx(0.1) and mask.row_error(leaking) == pytest.approx(0.1)


def test_heads_that_look_apart_differ_by_a_bit_and_the_same_head_by_none():
    one, other = torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 0.5, 0.5])
    assert heads.divergence(one, other).item() == pytest.approx(1)
    assert heads.divergence(other, other).item() == pytest.approx(0)
    halfway = torch.tensor([0.5, 0.5, 0.0])
    expected = -(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25)) - 0.5
    assert heads.divergence(one, halfway).item() == pytest.approx(expected)


@pytest.mark.parametrize(("offset", "place"), [(-1, "previous word"), (0, "same word"), (1, "next word")])
def test_a_head_that_looks_at_one_place_has_that_habit(offset, place):
    weights = torch.zeros(6, 6)
    for row in range(6):
        weights[row, min(max(row + offset, 0), 5)] = 1.0
    values = heads.places(weights)
    assert values[heads.PLACES.index(place)] == 1 and heads.habit(values) == place
    assert heads.habit(heads.places(torch.full((6, 6), 1 / 6))) == "spread"


def test_the_end_mark_and_the_first_word_are_places_too():
    weights = torch.zeros(5, 5)
    weights[:, -1] = 1.0
    assert heads.habit(heads.places(weights)) == "end mark"
    assert heads.habit(heads.places(weights.flip(1))) == "first word"


def test_the_classic_pair_is_read_where_there_is_one_and_made_where_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("KENTE_DATA", str(tmp_path))
    assert pronouns.riddles() == pronouns.OWN
    (tmp_path / "coref").mkdir()
    lines = ["sentence\tpronoun\treferent", "A saw B because it was red.\tit\tA", "A saw B because it was blue.\tit\tB"]
    (tmp_path / "coref" / "classic_pairs.tsv").write_text("\n".join(lines) + "\n")
    one, two = pronouns.riddles()
    assert (one.referent, one.other, two.referent, two.other) == ("A", "B", "B", "A")


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (0.3, -0.2, "follows the meaning"),
        (0.3, 0.1, "not far enough"),
        (0.1, 0.1, "does not follow"),
        (-0.2, 0.2, "does not follow"),
    ],
)
def test_what_is_said_of_it_follows_the_numbers(first, second, said):
    head = (0, 0)
    measured = heads.Measured([head], [[0.0]], {head: [0.2] * 5}, 0.1, ({head: first}, {head: second}), {}, 0.0)
    text = heads.on_riddles(measured, pronouns.OWN, ["gate"])
    assert said in text and f"{first:+.2f}" in text and "gate" in text
    assert "no sentence of its words" in heads.on_clear_cases(measured)


def test_pieces_of_a_word_are_found_among_the_sentences():
    reader = translator.subject(None, SILENT, 2)
    sentence = "The baker cleans the car because it is dirty."
    names = reader.source_names(reader.source(sentence))
    assert [names[place] for place in pronouns.pieces_of(reader, sentence, "it")] == ["it"]
    assert [names[place] for place in pronouns.pieces_of(reader, sentence, "car")] == ["car"]
    row = reader.encoder_maps(reader.source(sentence))[0, 0][names.index("it")]
    pulled = sum(pronouns.pull(reader, sentence, "it", word)[0, 0] for word in sentence.rstrip(".").split(" "))
    assert pulled + row[-2:].sum().item() == pytest.approx(1)  # the full stop and the end mark have the rest


def test_a_trained_run_can_be_looked_into(tmp_path):
    source, target = tmp_path / "a.en", tmp_path / "a.fr"
    pairs = [
        ("I am good", "Je vais bien"),
        ("I am here", "Je suis ici"),
        ("you are good", "tu vas bien"),
        ("it is good", "il est bien"),
    ]
    source.write_text("".join(f"{a} {n}\n" for n in "abcdefgh" for a, _ in pairs))
    target.write_text("".join(f"{b} {n}\n" for n in "abcdefgh" for _, b in pairs))
    small = (
        "tokenizer.kind=words",
        "model.encoder_layers=1",
        "model.decoder_layers=1",
        "model.width=16",
        "model.heads=2",
        "model.feedforward=16",
    )
    api.train(api.Data(source, target), tmp_path / "run", updates=2, threads=1, settings=small)
    finding = mask.explore(run=tmp_path / "run")
    assert str(tmp_path / "run") in finding.found and finding.data["pieces"] == ["<sos>", "Je", "vais", "bien"]
    reader = translator.subject(tmp_path / "run", SILENT)
    assert reader.sentences and set(reader.encoder_maps(reader.sentences[0])) == {(0, 0), (0, 1)}


def test_a_run_without_sentences_to_look_at_says_so():
    reader = SimpleNamespace(sentences=[[5], [6, 7]], about="the run x")
    with pytest.raises(RunError, match="no validation sentence of the run x has three tokens"):
        heads.measure(reader, pronouns.OWN, 10, 1)


def test_a_run_without_heads_is_refused_by_its_kind(monkeypatch):
    run = SimpleNamespace(
        model=lambda: torch.nn.Linear(1, 1), config=SimpleNamespace(model=SimpleNamespace(kind="recurrent"))
    )
    monkeypatch.setattr(translator, "Run", SimpleNamespace(open=lambda path: run))
    with pytest.raises(RunError, match=r"runs/gru holds a recurrent model.*name the run of a transformer"):
        translator.subject(Path("runs/gru"), SILENT)


# ---- fibonacci ----------------------------------------------------------------------------------------------------------------


def test_the_scaled_series_is_the_one_on_the_slide():
    """Lecture 002 lists the first numbers, the 19th and the 20th after scaling 1,200 of them to [0, 1]."""
    series = fibonacci.scaled(1200).tolist()
    assert [f"{series[t]:.4E}" for t in range(5)] == [
        "0.0000E+00",
        "2.2664E-251",
        "4.5327E-251",
        "9.0654E-251",
        "1.5865E-250",
    ]
    assert [f"{series[t]:.4E}" for t in (18, 19)] == ["1.5330E-247", "2.4805E-247"]
    assert series[-1] == 1


def test_windows_are_followed_by_their_next_number():
    inputs, following = fibonacci.windows(torch.arange(25.0))
    assert (
        inputs.shape == (5, 20, 1) and inputs[2, :, 0].tolist() == list(range(2, 22)) and following[2].tolist() == [22]
    )


def test_a_split_leaves_nothing_out_and_nothing_twice():
    train, test = fibonacci.splits(100, 3)
    assert train.shape == (3, 70) and test.shape == (3, 30)
    assert all(sorted([*a, *b]) == list(range(100)) for a, b in zip(train.tolist(), test.tolist(), strict=True))
    assert train[0].tolist() != train[1].tolist()


def test_stacked_models_train_as_if_each_were_alone():
    """Against a plain loop: one model, torch's Adam, the same batches in the same order."""
    x, y = fibonacci.windows(fibonacci.scaled_logarithms(50))
    rows, _ = fibonacci.splits(len(x), 2)
    stack = fibonacci.Stack(ManyToOne, 2)
    fibonacci.train(stack, x, y, rows, epochs=2, batch=8, report=lambda epoch: None)
    generator = torch.Generator().manual_seed(0)
    orders = [rows.gather(1, torch.rand(rows.shape, generator=generator).argsort(dim=1)) for _ in range(2)]
    for seed in range(2):
        with seeded(seed):
            alone = ManyToOne().double()
        optimiser = torch.optim.Adam(alone.parameters(), lr=1e-3, eps=fibonacci.EPSILON)
        for order_ in orders:
            for chosen in order_[seed].split(8):
                optimiser.zero_grad()
                (alone(x[chosen]) - y[chosen]).square().mean().backward()
                optimiser.step()
        for name, weight in alone.named_parameters():
            assert (stack.weights[name][seed] - weight).abs().max() < 1e-9


@pytest.mark.parametrize(
    ("tutorial", "slide", "said"),
    [
        ((3, 3), (3, 3), "holds more often than not for the tutorial's form and the slide's form:"),
        ((0, 3), (3, 3), "for the slide's form, not for the tutorial's form"),
        ((0, 0), (3, 1), "does not hold reliably"),
    ],
)
def test_what_is_said_of_fibonacci_follows_the_numbers(tutorial, slide, said):
    def measured(counts: list[int]) -> fibonacci.Measured:
        names = fibonacci.ATTENTIVE
        errors = {
            name: [0.1 if seed < count else 0.9 for seed in range(3)] for name, count in zip(names, counts, strict=True)
        }
        return fibonacci.Measured({fibonacci.PLAIN: [0.5] * 3, **errors}, [1.0] * 3, 0.9)

    both = {scale: measured([tutorial[i], slide[i]]) for i, scale in enumerate(fibonacci.SCALES)}
    text = fibonacci.found(both, 3, 15, 1200)
    assert said in text and f"{slide[0]} of 3 seeds (the slide's form)" in text


def test_experiments_leave_the_callers_random_numbers_alone():
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    gradients.explore(length=3, updates=1, width=4)
    unrolled.explore(length=3, updates=1, width=4)
    assert torch.random.get_rng_state().equal(before)
    first, second = (unrolled.explore(length=4, updates=2, width=4).data for _ in range(2))
    assert first == second


def test_an_attentive_reader_shows_weights_that_sum_to_one():
    ids = ask(4, 6, torch.Generator().manual_seed(1)).ids
    weights = AttentiveReader(8).weights(ids)
    assert weights.shape == (4, 6) and (weights.sum(dim=-1) - 1).abs().max() < 1e-6
