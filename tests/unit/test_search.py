"""Search against oracles: every sentence there is, a plain beam without stop rule, the distribution itself."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from kente.config import DecodeConfig
from kente.decode.answers import (
    CUT,
    LATE,
    LOOP_REPEATS,
    LOOP_TOKENS,
    LOOPED,
    NOTHING,
    SLACK,
    Hypothesis,
    length_penalty,
)
from kente.decode.beam import best_to_come
from kente.decode.guards import repeats
from kente.decode.likeliest import DEEP, likeliest
from kente.decode.sampling import Sampler
from kente.decode.search import search, search_all
from kente.models.interface import AttentionMap, Generator, Step

PAD, UNK, BOS, EOS = 0, 1, 2, 3


@dataclass
class Memory:
    key: Tensor  # (B,) stands for the source and everything read so far


class Toy:
    """A model whose next word depends on source and history through a table of random logits."""

    def __init__(self, seed: int = 0, vocabulary: int = 8, spread: float = 2.0, rows: int = 9973) -> None:
        self.table = torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(seed)) * spread
        self.batches: list[int] = []

    def start(self, source: Tensor, source_mask: Tensor) -> Memory:
        key = torch.zeros(len(source), dtype=torch.long)
        for column, mask in zip(source.T, source_mask.T, strict=True):
            key = torch.where(mask, self.mix(key, column), key)
        return Memory(key)

    def step(self, state: Memory, tokens: Tensor) -> Step:
        self.batches.append(len(tokens))
        key = self.mix(state.key, tokens)
        return Step(self.logits(key), Memory(key))

    def mix(self, key: Tensor, token: Tensor) -> Tensor:
        return (key * 31 + token + 1) % len(self.table)

    def logits(self, key: Tensor) -> Tensor:
        return self.table[key]

    def look(self, source: Tensor, source_mask: Tensor, target: Tensor) -> list[AttentionMap]:
        return []


class Fixed(Toy):
    """The same logits at every step."""

    def __init__(self, logits: list[float]) -> None:
        super().__init__(rows=1, vocabulary=len(logits))
        self.table = torch.tensor([logits])


def batch(*rows: list[int]) -> tuple[Tensor, Tensor]:
    width = max(map(len, rows))
    source = torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
    return source, source != PAD


SENTENCES = [[5, 6, EOS], [4, EOS], [7, 7, 7, 5, EOS], [6, 4, 5, EOS], [4, 5, EOS]]


@dataclass
class Oracle:
    """Beam search in plain Python, one sentence, no stop rule. A beam wide enough is exhaustive search."""

    model: Toy
    source: list[int]
    cap: int
    power: float
    found: list[tuple[float, float, list[int]]] = field(default_factory=list)

    def continuations(self, ids: list[int], total: float) -> list[tuple[float, list[int], int]]:
        source, mask = batch(self.source)
        state = self.model.start(source, mask)
        for token in [BOS, *ids]:
            step = self.model.step(state, torch.tensor([token]))
            state = step.state
        scores = torch.log_softmax(step.logits[0], -1).tolist()
        allowed = [EOS] if len(ids) == self.cap else range(EOS, len(scores))
        return [(total + scores[token], ids, token) for token in allowed]

    def run(self, beam: int) -> list[tuple[float, float, list[int]]]:
        living: list[tuple[float, list[int]]] = [(0.0, [])]
        while living:
            candidates = [c for total, ids in living for c in self.continuations(ids, total)]
            candidates.sort(key=lambda c: -c[0])
            for total, ids, token in candidates[:beam]:
                if token == EOS:
                    self.found.append((total / ((5 + len(ids) + 1) / 6) ** self.power, total, ids))
            living = [(total, [*ids, token]) for total, ids, token in candidates[: 2 * beam] if token != EOS][:beam]
        return sorted(self.found, key=lambda f: -f[0])


def same(found: list[Hypothesis], wanted: list[tuple[float, float, list[int]]]) -> None:
    assert [h.ids for h in found] == [ids for _, _, ids in wanted]
    assert [h.score for h in found] == pytest.approx([score for score, _, _ in wanted], abs=1e-4)
    assert [h.log_probability for h in found] == pytest.approx([total for _, total, _ in wanted], abs=1e-4)


def test_toys_fit_the_contract() -> None:
    model: Generator = Toy()
    assert model.step(model.start(*batch([4, EOS])), torch.tensor([BOS])).logits.shape == (1, 8)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("power", [0.0, 0.6, 1.0, 2.5, -0.5])
def test_a_beam_that_holds_everything_finds_what_exhaustive_search_finds(seed: int, power: float) -> None:
    model = Toy(seed, vocabulary=7)
    sources = SENTENCES[:2]
    found = search(model, *batch(*sources), DecodeConfig(beam=120, length_penalty=power), n_best=4, max_lengths=4)
    for source, answers in zip(sources, found, strict=True):
        same(answers, Oracle(model, source, 4, power).run(10**6)[:4])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("beam", [2, 3, 5])
def test_the_stop_rule_loses_nothing_of_a_narrow_beam(seed: int, beam: int) -> None:
    model, power = Toy(seed, spread=3.0), (0.0, 1.0, 1.4)[seed % 3]
    found = search(model, *batch(*SENTENCES), DecodeConfig(beam=beam, length_penalty=power), n_best=2, max_lengths=7)
    for source, answers in zip(SENTENCES, found, strict=True):
        same(answers, Oracle(model, source, 7, power).run(beam)[:2])


@pytest.mark.parametrize("seed", range(4))
def test_greedy_takes_the_likeliest_token_each_time(seed: int) -> None:
    model = Toy(seed)
    for source, (best,) in zip(
        SENTENCES, search(model, *batch(*SENTENCES), DecodeConfig(beam=1), max_lengths=7), strict=True
    ):
        oracle, total, token = Oracle(model, source, 7, 1.0), 0.0, UNK
        ids: list[int] = []
        while token != EOS:
            total, before, token = max(oracle.continuations(ids, total))
            ids = [*before, token]
        same([best], [(total / length_penalty(float(len(ids)), 1.0), total, ids[:-1])])


def test_a_row_stops_as_soon_as_nothing_living_can_win() -> None:
    sure = Fixed([0, 0, 0, 20.0, 1, 1])
    (best,) = search(sure, *batch([5] * 30 + [EOS]), DecodeConfig(beam=4))[0]
    assert best.ids == [] and best.finished and len(sure.batches) == 1


def test_the_bound_is_the_best_any_continuation_could_score() -> None:
    totals, caps = torch.tensor([[-2.0, -7.0]]), torch.tensor([9])
    for power in (0.0, 0.7, 1.0, 2.0, -0.5):
        every_length = torch.stack([totals / length_penalty(float(length), power) for length in range(4, 11)])
        assert torch.allclose(best_to_come(totals, 3, caps, power), every_length.amax(0))


SETTINGS = [
    DecodeConfig(beam=1),
    DecodeConfig(beam=4),
    DecodeConfig(sample=True, seed=3, temperature=1.3),
    DecodeConfig(beam=3, no_repeat=2),
]


@pytest.mark.parametrize("config", SETTINGS, ids=["greedy", "beam", "sample", "no_repeat"])
@pytest.mark.parametrize("n_best", [1, 3])
def test_an_answer_does_not_depend_on_its_neighbours(config: DecodeConfig, n_best: int) -> None:
    model = Toy(5)
    alone = [search(model, *batch(source), config, n_best=n_best)[0] for source in SENTENCES]
    together = search(model, *batch(*SENTENCES), config, n_best=n_best)
    backwards = search(model, *batch(*SENTENCES[::-1], [4] * 40 + [EOS]), config, n_best=n_best)
    assert alone == together == backwards[len(SENTENCES) - 1 :: -1]


def test_finished_rows_leave_the_batch() -> None:
    model = Toy(1, spread=3.0)
    answers = search(model, *batch(*SENTENCES), DecodeConfig(beam=1))
    assert len(model.batches) == max(len(best.ids) for (best,) in answers) + 1
    assert model.batches[0] == 5 and model.batches[-1] < 5
    model.batches.clear()
    search(model, *batch(*SENTENCES), DecodeConfig(beam=6))
    assert model.batches[0] == 5 and max(model.batches) <= 30 and model.batches[-1] < 30


# --- a queue, and room for some ---


class Joined(Toy):
    """A toy whose sentences may be put together while they are answered."""

    joins = True


def many(count: int = 60, longest: int = 12) -> list[list[int]]:
    generator = torch.Generator().manual_seed(count)
    lengths = torch.randint(1, longest, (count,), generator=generator).tolist()
    return [[*torch.randint(4, 8, (length,), generator=generator).tolist(), EOS] for length in lengths]


@pytest.mark.parametrize("kind", [Toy, Joined])
@pytest.mark.parametrize("config", SETTINGS, ids=["greedy", "beam", "sample", "no_repeat"])
@pytest.mark.parametrize("n_best", [1, 2])
def test_a_queue_is_answered_as_if_each_had_been_alone(kind: type[Toy], config: DecodeConfig, n_best: int) -> None:
    """Loops, caps and beginnings too, each row being at another word than its neighbours."""
    model, sentences = kind(5), [*many(), [4] * 12 + [EOS], [5, 6] * 6 + [EOS]]
    model.table[:, 7] += 6.0  # a word it likes to say again
    prefix = [[6, 6, 6] if number % 5 == 0 else [] for number in range(len(sentences))]
    caps = [number % 7 if number % 3 == 0 else 10**6 for number in range(len(sentences))]
    queued = search_all(model, sentences, config, room=64, n_best=n_best, prefix=prefix, max_lengths=caps)
    for sentence, begin, cap, answers in zip(sentences, prefix, caps, queued, strict=True):
        how = {"n_best": n_best, "prefix": [begin], "max_lengths": cap}
        assert answers == search(model, *batch(sentence), config, **how)[0]
    assert any(LOOPED in h.warnings for answers in queued for h in answers) or config.no_repeat
    assert any(CUT in h.warnings for answers in queued for h in answers)


def test_what_is_left_of_several_batches_is_finished_together() -> None:
    sentences, config = [[5, 4 + number % 4, 6, EOS] for number in range(200)], DecodeConfig(beam=1)
    joined, one_by_one = Joined(3, spread=3.0), Toy(3, spread=3.0)
    assert search_all(joined, sentences, config, room=160) == search_all(one_by_one, sentences, config, room=160)
    assert max(joined.batches) <= 1.3 * 40 and max(one_by_one.batches) <= 40
    assert len(joined.batches) < len(one_by_one.batches)
    assert sum(joined.batches) / len(joined.batches) > sum(one_by_one.batches) / len(one_by_one.batches)


def test_sentences_are_read_with_others_of_like_length() -> None:
    read: list[tuple[int, int]] = []

    class Watched(Joined):
        def start(self, source: Tensor, source_mask: Tensor) -> Memory:
            read.append((len(source), source.shape[1]))
            return super().start(source, source_mask)

    search_all(
        Watched(2), [[4] * length + [EOS] for length in range(1, 40) for _ in range(3)], DecodeConfig(), room=100
    )
    assert all(rows * width <= 100 for rows, width in read) and len(read) > 10


def test_those_still_waiting_when_time_is_out_say_so() -> None:
    endless = Joined(0, vocabulary=40)
    endless.table[:, EOS] = -30.0
    calls = iter([False, False, True])
    answers = search_all(endless, many(20), DecodeConfig(beam=2), room=30, deadline=lambda: next(calls))
    assert all(h.warnings == (LATE,) and not h.finished for (h,) in answers)
    assert {len(h.ids) for (h,) in answers} == {0, 2}


@pytest.mark.parametrize("size", [1, 7, DEEP, 4 * DEEP, 40 * DEEP, 40 * DEEP + 17, 50 * DEEP - 1])
@pytest.mark.parametrize("count", [1, 4, 10])
def test_the_likeliest_are_those_that_sorting_finds(size: int, count: int) -> None:
    generator = torch.Generator().manual_seed(size)
    scores, count = torch.randn(9, size, generator=generator), min(count, size)
    scores[1] = scores[1].round()  # many ties
    scores[2, : size // 2] = -math.inf
    scores[3] = -math.inf
    scores[4, -1] = 100.0
    best, places = likeliest(scores, count)
    assert torch.equal(best, scores.sort(dim=1, descending=True).values[:, :count])
    assert torch.equal(scores.gather(1, places), best)
    assert all(len(set(row)) == count for row in places.tolist())


def test_n_best_is_sorted_distinct_and_begins_with_the_best() -> None:
    found = search(Toy(2), *batch(*SENTENCES), DecodeConfig(beam=6), n_best=6)
    single = search(Toy(2), *batch(*SENTENCES), DecodeConfig(beam=6))
    for answers, (best,) in zip(found, single, strict=True):
        assert len(answers) == 6 and len({tuple(h.ids) for h in answers}) == 6
        assert [h.score for h in answers] == sorted((h.score for h in answers), reverse=True)
        assert answers[0] == best


def test_asking_for_more_than_the_beam_widens_it() -> None:
    assert search(Toy(2), *batch([4, EOS]), DecodeConfig(beam=1), n_best=4) == search(
        Toy(2), *batch([4, EOS]), DecodeConfig(beam=4), n_best=4
    )


@pytest.mark.parametrize("config", SETTINGS[:3], ids=["greedy", "beam", "sample"])
def test_special_ids_are_never_written(config: DecodeConfig) -> None:
    tempting = Fixed([9.0, 9.0, 9.0, 0.0, 1.0, 0.5])
    for answers in search(tempting, *batch([4, EOS], [5, EOS]), config, n_best=2):
        assert all(token > EOS for h in answers for token in h.ids)


@pytest.mark.parametrize("config", SETTINGS[:3], ids=["greedy", "beam", "sample"])
def test_a_forced_beginning_is_written_and_counts_with_its_probability(config: DecodeConfig) -> None:
    model, prefix = Toy(3), [[7, 7, 4], [], [5], [6, 6], []]
    found = search(model, *batch(*SENTENCES), config, prefix=prefix, n_best=2)
    free = search(model, *batch(*SENTENCES), config, n_best=2)
    for source, begin, answers, unforced in zip(SENTENCES, prefix, found, free, strict=True):
        assert all(h.ids[: len(begin)] == begin for h in answers)
        assert begin or answers == unforced
        for h in answers:
            totals = [0.0]
            for place, token in enumerate([*h.ids, EOS]):
                scores = Oracle(model, source, 10**6, 1.0).continuations(h.ids[:place], totals[-1])
                totals.append(scores[token - EOS][0])
            assert h.log_probability == pytest.approx(totals[-1], abs=1e-3)


def test_a_forced_beginning_may_be_longer_than_the_cap_and_impossible_to_the_model() -> None:
    logits = [0.0, 0.0, 0.0, 1.0, 1.0, -math.inf]
    for beam in (1, 3):
        (best,) = search(Fixed(logits), *batch([4, EOS]), DecodeConfig(beam=beam), prefix=[[5, 1, 5]], max_lengths=2)[0]
        assert best.ids == [5, 1, 5]


@pytest.mark.parametrize("beam", [1, 3])
def test_answers_end_at_the_cap_of_their_own_source(beam: int) -> None:
    endless = Toy(0, vocabulary=60)
    endless.table[:, EOS] = -30.0
    config = DecodeConfig(beam=beam, max_ratio=2.5, no_repeat=3)
    short, long = search(endless, *batch([4, EOS], [4] * 9 + [EOS]), config)
    assert [len(short[0].ids), len(long[0].ids)] == [int(2.5 * 2) + SLACK, int(2.5 * 10) + SLACK]
    for h in (short[0], long[0]):
        assert not h.finished and h.warnings == (CUT,)
    capped = search(endless, *batch([4, EOS], [4] * 9 + [EOS]), config, max_lengths=[3, 5])
    assert [len(answers[0].ids) for answers in capped] == [3, 5]


def test_an_answer_that_ends_at_the_cap_by_itself_is_not_cut() -> None:
    class Exact(Toy):
        def step(self, state: Memory, tokens: Tensor) -> Step:
            done = state.key >= 3
            logits = torch.full((len(tokens), 6), -9.0)
            logits[torch.arange(len(tokens)), torch.where(done, EOS, 4)] = 9.0
            return Step(logits, Memory(state.key + 1))

        def start(self, source: Tensor, source_mask: Tensor) -> Memory:
            return Memory(torch.zeros(len(source), dtype=torch.long))

    for beam in (1, 2):
        (best,) = search(Exact(), *batch([4, EOS]), DecodeConfig(beam=beam), max_lengths=3)[0]
        assert best == Hypothesis([4, 4, 4], best.score, best.log_probability, True, ())


@pytest.mark.parametrize("period", [1, 2, 3, 5])
@pytest.mark.parametrize("beam", [1, 3])
def test_endless_loops_are_broken(period: int, beam: int) -> None:
    class Stuck(Toy):
        """Writes 4, 5, ..., 4, 5, ... and never ends by itself."""

        def start(self, source: Tensor, source_mask: Tensor) -> Memory:
            return Memory(torch.zeros(len(source), dtype=torch.long))

        def step(self, state: Memory, tokens: Tensor) -> Step:
            logits = torch.zeros(len(tokens), 12)
            logits[:, EOS] = 2.0
            logits[torch.arange(len(tokens)), 4 + state.key % period] = 12.0
            return Step(logits, Memory(state.key + 1))

    (best,) = search(Stuck(), *batch([*range(4, 64), EOS]), DecodeConfig(beam=beam))[0]
    repeats = max(LOOP_REPEATS, math.ceil(LOOP_TOKENS / period))
    assert best.warnings == (LOOPED,) and best.finished
    assert best.ids == [4 + place % period for place in range(repeats * period)]


@pytest.mark.parametrize("beam", [1, 3])
def test_a_forced_beginning_that_goes_round_is_nothing_to_be_broken_off(beam: int) -> None:
    class Willing(Toy):
        """Would write 4 twelve times, then 5 and 6, and ends."""

        def start(self, source: Tensor, source_mask: Tensor) -> Memory:
            return Memory(torch.zeros(len(source), dtype=torch.long))

        def step(self, state: Memory, tokens: Tensor) -> Step:
            logits = torch.zeros(len(tokens), 8)
            wanted = torch.tensor([4] * 12 + [5, 6, EOS])[state.key.clamp(max=14)]
            logits[torch.arange(len(tokens)), wanted] = 20.0
            return Step(logits, Memory(state.key + 1))

    source, config = batch([*range(4, 24), EOS]), DecodeConfig(beam=beam)
    (forced,) = search(Willing(), *source, config, prefix=[[4] * 12])[0]
    assert forced.ids == [*[4] * 12, 5, 6] and forced.warnings == ()
    (half,) = search(Willing(), *source, config, prefix=[[4] * 9])[0]
    assert half.ids[:9] == [4] * 9 != half.ids[9:10] and half.warnings == (LOOPED,), "what is not forced is guarded"


def test_a_source_that_repeats_itself_may_be_answered_in_kind() -> None:
    stuck = Fixed([0, 0, 0, 2.0, 12.0, 0, 0])
    long = [*range(4, 60), EOS]  # beside it the others are mostly padding, which is no loop
    loops, short = [[5] * 9 + [EOS], [4, 5, 6] * 4 + [EOS], [6, 4] + [5, 6] * 4 + [4, EOS]], [5] * 7 + [EOS]
    sources = [*loops, short, long]
    for answer, source in zip(search(stuck, *batch(*sources), DecodeConfig(beam=1)), sources, strict=True):
        assert (LOOPED in answer[0].warnings) == (source not in loops)


def test_honest_repetition_is_left_alone() -> None:
    answer = [4, 4, 4, 4, 5, 6, 5, 6, 5, 6, 7, 7, 7, 7, 7, EOS]

    class Honest(Toy):
        def start(self, source: Tensor, source_mask: Tensor) -> Memory:
            return Memory(torch.zeros(len(source), dtype=torch.long))

        def step(self, state: Memory, tokens: Tensor) -> Step:
            logits = torch.zeros(len(tokens), 9)
            logits[torch.arange(len(tokens)), torch.tensor(answer)[state.key.clamp(max=15)]] = 20.0
            return Step(logits, Memory(state.key + 1))

    for beam in (1, 4):
        (best,) = search(Honest(), *batch([*range(4, 24), EOS]), DecodeConfig(beam=beam))[0]
        assert best.ids == answer[:-1] and best.warnings == ()


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_no_run_of_tokens_is_written_twice(length: int) -> None:
    generator = torch.Generator().manual_seed(length)
    tokens = torch.randint(4, 7, (40, 12), generator=generator)
    tokens[:, 0] = BOS
    written = torch.arange(40) % 13  # each row has written another number of them
    found = set(zip(*(column.tolist() for column in repeats(tokens, length, written)), strict=True))
    for number, (row, count) in enumerate(zip(tokens.tolist(), written.tolist(), strict=True)):
        runs = {tuple(row[i : i + length]) for i in range(count - length + 1)}
        begun = tuple(row[count - length + 1 : count]) if count >= length else None
        assert {token for place, token in found if place == number} == {
            token for token in range(8) if begun is not None and (*begun, token) in runs
        }
    assert not len(repeats(tokens, length, torch.full((40,), length - 1))[0])


def test_no_repeat_holds_in_whole_answers() -> None:
    endless = Toy(4, vocabulary=12)
    endless.table[:, EOS] = -20.0
    for beam in (1, 3):
        for (best,) in search(endless, *batch(*SENTENCES), DecodeConfig(beam=beam, no_repeat=2)):
            pairs = list(zip(best.ids, best.ids[1:], strict=False))
            assert len(pairs) > SLACK and len(set(pairs)) == len(pairs)


def frequencies(config: DecodeConfig, logits: list[float], draws: int = 4000) -> Tensor:
    answers = search(Fixed(logits), *batch([4, EOS]), config, n_best=draws, max_lengths=1)[0]
    first = torch.tensor([h.ids[0] if h.ids else EOS for h in answers])
    return torch.bincount(first, minlength=len(logits)).double()


LOGITS = [3.0, 2.0, 1.0, 0.2, 1.5, -0.5, 0.9, 0.0]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
def test_samples_follow_the_distribution(temperature: float) -> None:
    counts = frequencies(DecodeConfig(sample=True, temperature=temperature), LOGITS)
    wanted = torch.softmax(torch.tensor([-math.inf] * 3 + LOGITS[3:]).double() / temperature, -1) * 4000
    chi_square = ((counts - wanted)[3:] ** 2 / wanted[3:]).sum()
    assert counts[:3].sum() == 0
    assert chi_square < 18.5  # 4 degrees of freedom: exceeded by chance once in a thousand; the seed is fixed


def test_top_k_and_top_p_cut_the_tail_and_keep_the_proportions() -> None:
    likeliest = frequencies(DecodeConfig(sample=True, top_k=2), LOGITS)
    assert likeliest.nonzero()[:, 0].tolist() == [4, 6]
    assert likeliest[4] / likeliest[6] == pytest.approx(math.exp(0.6), rel=0.1)
    share = torch.softmax(torch.tensor(LOGITS[3:]), -1)
    just_two = float(share[1] + share[3]) - 1e-3
    assert frequencies(DecodeConfig(sample=True, top_p=just_two), LOGITS).nonzero()[:, 0].tolist() == [4, 6]
    assert frequencies(DecodeConfig(sample=True, top_p=just_two + 2e-3), LOGITS).count_nonzero() == 3
    assert frequencies(DecodeConfig(sample=True, top_p=0.01), LOGITS)[4] == 4000


def test_what_cannot_be_is_not_drawn_even_by_the_edge_of_the_dice() -> None:
    sampler = Sampler(DecodeConfig(sample=True), [[4, EOS]], 1, [2], torch.device("cpu"))
    scores = torch.log_softmax(torch.tensor([[-math.inf, 0.0, -math.inf, 0.0, -math.inf]]), -1)
    for draw, token in ((0.0, 1), (0.5, 3), (1 - 1e-16, 3)):
        sampler.draws.fill_(draw)
        assert sampler.draw(scores, torch.tensor([0]), torch.tensor([0])).tolist() == [token]


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    def draw(seed: int) -> list[list[Hypothesis]]:
        return search(Toy(1), *batch(*SENTENCES), DecodeConfig(sample=True, seed=seed), n_best=3)

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)
    assert len({tuple(h.ids) for h in draw(1)[0]}) > 1


def test_samples_carry_the_probability_of_the_model_and_come_best_first() -> None:
    config = DecodeConfig(sample=True, temperature=3.0, top_k=3)
    for source, answers in zip(SENTENCES, search(Toy(1), *batch(*SENTENCES), config, n_best=4), strict=True):
        assert [h.score for h in answers] == sorted((h.score for h in answers), reverse=True)
        forced = search(Toy(1), *batch(source), DecodeConfig(), prefix=[answers[0].ids], max_lengths=0)[0][0]
        assert forced.log_probability == pytest.approx(answers[0].log_probability, abs=1e-4)


@pytest.mark.parametrize("config", SETTINGS[:3], ids=["greedy", "beam", "sample"])
def test_out_of_time_hands_back_what_there_is(config: DecodeConfig) -> None:
    endless = Toy(0, vocabulary=40)
    endless.table[:, EOS] = -30.0
    calls = iter([False, False, False, True])
    (best,) = search(endless, *batch([4, EOS]), config, deadline=lambda: next(calls))[0]
    assert len(best.ids) == 3 and not best.finished and best.warnings == (LATE,)
    assert best.score == pytest.approx(best.log_probability / length_penalty(3.0, 1.0))


def test_a_deadline_may_raise() -> None:
    def gone() -> bool:
        raise ConnectionAbortedError

    with pytest.raises(ConnectionAbortedError):
        search(Toy(), *batch([4, EOS]), DecodeConfig(), deadline=gone)


@pytest.mark.parametrize("config", SETTINGS[:3], ids=["greedy", "beam", "sample"])
def test_a_broken_model_gives_no_answer_and_leaves_the_others_alone(config: DecodeConfig) -> None:
    model = Toy(6)
    source, mask = batch(*SENTENCES)
    sick = model.mix(model.start(source, mask).key[1:2], torch.tensor([BOS]))
    healthy = search(model, source, mask, config)
    model.table[sick] = math.nan
    answers = search(model, source, mask, config)
    assert answers[1][0].ids == [] and answers[1][0].warnings == (NOTHING,) and not answers[1][0].finished
    assert math.isfinite(answers[1][0].score)
    assert answers[2:] == healthy[2:] and answers[0] == healthy[0]


def test_a_hypothesis_that_breaks_leaves_the_others_of_its_sentence_alone() -> None:
    class Breaks(Toy):
        """After a 4 there are no numbers."""

        def step(self, state: Memory, tokens: Tensor) -> Step:
            step = super().step(state, tokens)
            return Step(step.logits.masked_fill((tokens == 4)[:, None], math.nan), step.state)

    class Avoids(Toy):
        """After a 4 nothing is possible."""

        def step(self, state: Memory, tokens: Tensor) -> Step:
            step = super().step(state, tokens)
            dead = (tokens == 4)[:, None] & (torch.arange(8) != PAD)
            return Step(step.logits.masked_fill(dead, -math.inf), step.state)

    config = DecodeConfig(beam=3)
    broken, avoided = (search(kind(2), *batch(*SENTENCES), config, n_best=2) for kind in (Breaks, Avoids))
    assert [[h.ids for h in answers] for answers in broken] == [[h.ids for h in answers] for answers in avoided]
    assert all(4 not in h.ids and h.finished for answers in broken for h in answers)


def test_no_rows_no_answers() -> None:
    assert search(Toy(), torch.zeros(0, 3, dtype=torch.long), torch.zeros(0, 3, dtype=torch.bool), DecodeConfig()) == []


def test_nothing_of_a_search_asks_for_gradients() -> None:
    class Watched(Toy):
        def logits(self, key: Tensor) -> Tensor:
            assert torch.is_inference_mode_enabled()
            return super().logits(key)

    search(Watched(), *batch([4, EOS]), DecodeConfig())
