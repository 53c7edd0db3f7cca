"""The benchmark keeps its own promises: the arithmetic it counts, the text everyone reads, the weights everyone decodes with, its tables."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the benchmark is a package beside src, not a part of what is installed

from benchmarks import answers, decoding, fairness, report, run, training, weights  # noqa: E402
from benchmarks import corpus as corpora  # noqa: E402
from benchmarks.bench import Bench, Table, Variant  # noqa: E402
from benchmarks.environments import Environments  # noqa: E402
from benchmarks.flops import weights_touched, work  # noqa: E402
from benchmarks.peers import adapter, kente_peer, plain  # noqa: E402
from benchmarks.peers.ids import counts, padded, read_pairs, token_batches  # noqa: E402
from benchmarks.peers.plain_models import PlainTransformer, beam_search, build, greedy, put_weights  # noqa: E402
from benchmarks.plot import Bar, Line, apart, bars, lines  # noqa: E402
from benchmarks.processes import Outcome  # noqa: E402
from benchmarks.results import Figure, Results  # noqa: E402
from benchmarks.shapes import EOS, SHAPES, Shape  # noqa: E402

from kente.config import RecurrentConfig, TransformerConfig  # noqa: E402
from kente.data.batches import Batches  # noqa: E402
from kente.data.grammar import generate  # noqa: E402
from kente.errors import CorpusError, UsageError  # noqa: E402
from kente.models.build import build as build_kente  # noqa: E402
from kente.runs import Run  # noqa: E402
from kente.train.prepare import Prepared  # noqa: E402

SMALL = Shape("probe", "transformer", width=16, layers=2, feedforward=48, heads=2, embedding=16)
GRU = Shape("probe-gru", "recurrent", width=12, embedding=20)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A little parallel text in files of the names that the benchmark reads."""
    folder = tmp_path_factory.mktemp("text")
    pairs = list(generate(seed=1, count=360, max_words=9))
    for name, part in (("train", pairs[:300]), ("val", pairs[300:330]), ("test_2016_flickr", pairs[330:])):
        (folder / f"{name}.en").write_text("".join(f"{pair.source}\n" for pair in part), encoding="utf-8")
        (folder / f"{name}.de").write_text("".join(f"{pair.target}\n" for pair in part), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def corpus(text: Path, tmp_path_factory: pytest.TempPathFactory) -> corpora.Corpus:
    return corpora.prepare(text, tmp_path_factory.mktemp("bench") / "corpus", vocabulary=500)


@pytest.fixture(scope="module")
def trained(corpus: corpora.Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few updates: its weights are nearly random, which is all that comparing engines needs."""
    folder = tmp_path_factory.mktemp("model")
    kente_peer.fit(job(corpus, run=str(folder / "run"), minutes=0.02, settings=["train.validate_sentences=2"]))
    weights.export(folder / "run", folder / "weights.npz")
    return folder


def job(corpus: corpora.Corpus, shape: Shape = SMALL, **more: object) -> dict:
    common = {
        "shape": shape.as_dict(),
        "vocabulary": corpus.vocabulary,
        "dropout": 0.1,
        "batch_tokens": 512,
        "corpus": str(corpus.folder),
        "prepared": str(corpus.prepared),
        "source": str(corpus.text("validation.source")),
        "target": str(corpus.text("validation.target")),
        "pieces": str(corpus.pieces),
        "text_settings": corpora.settings(500),
        "scratch": str(corpus.folder),
        "threads": 1,
        "seed": 1,
        "warmup": 1,
        "updates": 3,
    }
    return common | more


# --- counting arithmetic ---


@pytest.mark.parametrize("shape", [SMALL, GRU], ids=lambda shape: shape.kind)
def test_the_formula_counts_what_torch_counts_forward_and_backward(shape):
    vocabulary, sources, targets = 50, [7, 7, 7], [5, 5, 5]
    torch.manual_seed(1)
    model = build(shape, vocabulary, dropout=0.0)
    source, target = torch.randint(4, vocabulary, (3, 7)), torch.randint(4, vocabulary, (3, 5))
    counted = FlopCounterMode(display=False)
    with sdpa_kernel(SDPBackend.MATH), counted:  # products that the counter can see
        logits = model(source, target)
    expected = work(shape, vocabulary, sources, targets, triangle=False)
    assert counted.get_total_flops() == expected.forward
    with sdpa_kernel(SDPBackend.MATH), counted:
        model(source, target).sum().backward()
    # the encoder's first states are zeros and need no gradient: one product less in each direction
    spared = 2 * 3 * 2 * 3 * shape.width**2 if shape.kind == "recurrent" else 0
    assert counted.get_total_flops() == expected.training - spared
    assert logits.shape == (3, 5, vocabulary)


def test_the_matrices_counted_are_those_of_kentes_own_models():
    def matrices(model: torch.nn.Module) -> int:
        return sum(p.numel() for p in model.parameters() if p.ndim == 2)

    sides = {"encoder_layers": 2, "decoder_layers": 2, "norm_place": "pre"}
    transformer = build_kente(TransformerConfig(width=16, feedforward=48, heads=2, **sides), 50, 50, joint=True)
    assert sum(weights_touched(SMALL, 50)) == matrices(transformer)
    energy = GRU.width  # the vector that turns tanh(...) into a score is met by pairs of words, not by words
    gru = build_kente(RecurrentConfig(width=GRU.width, embedding=GRU.embedding), 50, 50, joint=True)
    assert sum(weights_touched(GRU, 50)) == matrices(gru) - energy


def test_a_causal_triangle_is_counted_by_its_pairs():
    square, triangle = (work(SMALL, 50, [3], [4], triangle=t).forward for t in (False, True))
    pairs = sum(1 for query in range(4) for key in range(4) if key > query)
    assert square - triangle == pairs * 4 * SMALL.width * SMALL.layers


def test_a_tiny_update_needs_about_what_is_said_of_it():
    update = work(SHAPES["tiny"], 8000, [16] * 256, [16] * 256).training
    assert 57e9 < update < 59e9


# --- the same text for everyone ---


def test_every_reader_of_the_corpus_counts_the_same_tokens(corpus):
    prepared = Prepared.open(Run.open(corpus.prepared))
    batches = Batches(prepared.train, Run.open(corpus.prepared).config.batches, seed=1)
    kente = [batches.batch(step) for step in range(len(batches))]
    pairs = read_pairs(corpus.folder)
    epoch, ours = 0, []
    for batch in token_batches(pairs, 512, seed=1):
        ours.append(counts(batch))
        epoch += len(batch)
        if epoch == len(pairs):
            break
    pieces = [
        sum(len(line.split(" ")) + 1 for line in adapter.read_lines(corpus.text(f"train.pieces.{side}")))
        for side in ("source", "target")
    ]
    read = {
        "facts": (corpus.facts["source_tokens"], corpus.facts["target_tokens"]),
        "kente": (sum(b.source_tokens for b in kente), sum(b.target_tokens for b in kente)),
        "ids": (sum(seen[0] for seen in ours), sum(seen[1] for seen in ours)),
        "pieces": (pieces[0], pieces[1]),
    }
    assert fairness.same_text(read) == []
    assert fairness.same_text(read | {"short": (1, 2)})[0].startswith("short reads 1 source and 2 target tokens, not")


def test_batches_hold_every_pair_once_and_never_more_than_their_tokens(corpus):
    pairs, seen = read_pairs(corpus.folder), []
    for batch in token_batches(pairs, 200, seed=3):
        longest = max(max(len(s), len(t)) for s, t in batch) + 1
        assert longest * len(batch) <= 200
        seen += batch
        if len(seen) >= len(pairs):
            break
    assert sorted(seen) == sorted(pairs)


def test_an_unchanged_corpus_is_not_prepared_again(text, corpus):
    before = (corpus.folder / "train.npz").stat().st_mtime_ns
    again = corpora.prepare(text, corpus.folder, vocabulary=500)
    assert again.facts == corpus.facts and (corpus.folder / "train.npz").stat().st_mtime_ns == before


def test_missing_text_is_named(tmp_path):
    with pytest.raises(CorpusError, match=r"train\.en.*--text"):
        corpora.prepare(tmp_path, tmp_path / "corpus", 500)
    with pytest.raises(CorpusError, match=r"multi30k/tok, which is not there"):
        corpora.multi30k(tmp_path)


# --- the same weights for everyone ---


def test_nn_transformer_with_kentes_weights_says_what_kente_says(corpus, trained):
    model = PlainTransformer(SMALL, corpus.vocabulary, dropout=0.0).eval()
    put_weights(model, np.load(trained / "weights.npz"))
    kente = Run.open(trained / "run").model()
    source = padded([[*ids, EOS] for ids, _ in read_pairs(corpus.folder)[:8]])
    target = torch.randint(4, corpus.vocabulary, (8, 6))
    with torch.inference_mode():
        theirs = kente.predict(kente(source, source != 0, target))
        torch.testing.assert_close(model(source, target), theirs, atol=2e-4, rtol=1e-4)
        for ids, _ in read_pairs(corpus.folder)[:3]:
            alone = torch.tensor([[*ids, EOS]])
            assert beam_search(model, alone, 1) == greedy(model, alone)


def test_a_beam_never_scores_below_greedy(corpus, trained):
    model = PlainTransformer(SMALL, corpus.vocabulary, dropout=0.0).eval()
    put_weights(model, np.load(trained / "weights.npz"))
    source = padded([[*ids, EOS] for ids, _ in read_pairs(corpus.folder)[:4]])

    def score(row: int, answer: list[int]) -> float:
        target = torch.tensor([[2, *answer]])
        logs = model(source[row : row + 1], target).log_softmax(-1)[0]
        return float(logs.gather(1, torch.tensor([*answer, EOS])[:, None]).sum()) / ((6 + len(answer)) / 6)

    with torch.inference_mode():
        pairs = zip(beam_search(model, source, 6), greedy(model, source), strict=True)
        ended = [(row, wide, narrow) for row, (wide, narrow) in enumerate(pairs) if len(narrow) < 2 * source.shape[1]]
        assert all(score(row, wide) >= score(row, narrow) - 1e-4 for row, wide, narrow in ended)


# --- adapters, each in this process ---


@pytest.mark.parametrize("shape", [SMALL, GRU], ids=lambda shape: shape.kind)
def test_kente_and_plain_torch_train_on_batches_of_one_size(corpus, shape):
    theirs = plain.train(job(corpus, shape))
    ours = kente_peer.train(job(corpus, shape, settings=["batches.max_length=64"]))
    for result in (ours, theirs):
        assert result["updates"] == 3 and result["seconds"] > 0 and 0 <= result["padding"] < 0.5
        assert result["tokens"] == result["source_tokens"] + result["target_tokens"] > 0
        cells = result["tokens"] / (1 - result["padding"]) / 3
        assert cells <= 2 * 512
    samples = {"Kente": [training.finish(ours)], "plain": [training.finish(theirs)]}
    assert all(sample["tokens_per_second"] > 0 for (sample,) in samples.values())


def test_translations_keep_their_order_and_latencies_their_number(corpus, trained):
    about = job(
        corpus,
        run=str(trained / "run"),
        weights=str(trained / "weights.npz"),
        source=str(corpus.text("test.source")),
        beam=1,
        sentences=6,
    )
    ours, theirs = kente_peer.translate(about), plain.translate(about)
    assert len(ours["texts"]) == len(theirs["texts"]) == 6
    scorer = decoding.Scorer(corpus.pieces, corpus.text("test.target"))
    scored = decoding.finish(scorer)(theirs)
    assert scored["output_tokens"] >= 6 and scored["sentences_per_second"] > 0 and "texts" not in scored
    waited = plain.latency(about)
    assert len(waited["milliseconds"]) == 6 and waited["p50"] <= waited["p95"] <= max(waited["milliseconds"])
    assert waited["texts"] == theirs["texts"]


def test_answers_of_every_engine_are_scored_beside_kentes_and_averaged(corpus, trained, capsys):
    files = ["--source", str(corpus.text("test.source")), "--reference", str(corpus.text("test.target"))]
    assert answers.main([str(trained / "run"), *files, "--limit", "12"]) == 0
    printed = capsys.readouterr().out
    assert all(search in printed for search in answers.SEARCHES)
    *_, row, mean = printed.strip().splitlines()
    assert row.startswith("| run |") and mean.startswith("| mean |")
    assert all(line.count(" | ") == len(answers.TYPES) + 1 for line in (row, mean)), "a cell for Kente and each type"
    first = row.split(" | ")[1]
    assert mean.split(" | ")[1] == first, "the mean of one run is that run"


def test_the_mean_of_several_runs_is_told_with_its_distance_to_kente():
    runs = {
        name: [answers.Answers("Kente", 100, ours), answers.Answers("int8", 104, theirs, theirs - ours, 0.4)]
        for name, ours, theirs in (("a", 36.0, 36.2), ("b", 38.0, 37.7))
    }
    shown = answers.table(runs).splitlines()
    assert shown[-1] == "| mean | 37.00 (100) | 36.95 (104), -0.05 |"
    assert shown[-2] == "| b | 38.00 (100) | 37.70 (104), -0.30, p = 0.40 |"


def test_one_length_rule_goes_to_every_engine_that_can_be_given_one():
    jobs = {
        "kente": {"beam": 5},
        "plain": {"beam": 5},
        "huggingface": {"forced_tokens": 15},
        "ctranslate2": {"beam": 5},
    }
    rows = tuple(Variant(peer, peer, job) for peer, job in jobs.items())
    alike = decoding.one_rule_rows(rows)
    assert [row.peer for row in alike] == ["kente", "ctranslate2"]
    assert all(adapter.length_rule(row.job) == {"length_penalty": 0.0} for row in alike)
    assert not any(adapter.length_rule(row.job) for row in rows)


def test_quality_is_looked_at_when_its_minutes_are_over(corpus):
    points = plain.quality(job(corpus, minutes=[0.001, 0.004]))["points"]
    assert [point["minutes"] for point in points] == pytest.approx([0.001, 0.004])
    assert points[0]["updates"] <= points[1]["updates"]
    assert all(len(point["texts"]) == 30 for point in points)


def test_the_meter_leaves_the_warm_up_out():
    meter = adapter.Meter(warmup=2, updates=2)
    ended = [meter.updated(10, 20, 40) for _ in range(4)]
    assert ended == [False, False, False, True]
    result = meter.result(version="1")
    assert (result["tokens"], result["updates"], result["padding"]) == (60, 2, 0.25)


def test_sentences_sorted_for_speed_come_back_in_their_order():
    sentences = [[3, 3, 3], [1], [2, 2], [4, 4, 4, 4]]
    batches: list[list[list[int]]] = []

    def work_on(batch: list[list[int]]) -> list[list[int]]:
        batches.append(batch)
        return [[row[0] * 10] for row in batch]

    assert adapter.in_length_order(sentences, 2, work_on) == [[30], [10], [20], [40]]
    assert [len(row) for batch in batches for row in batch] == [1, 2, 3, 4]


# --- samples, medians, tables ---


def sample(variant: str, turn: int, **more: object) -> dict:
    return {"table": "t", "variant": variant, "peer": "plain", "round": turn, "code": "a", "error": None, **more}


def test_a_figure_is_the_median_with_its_range():
    figure = Figure.of([3.0, 1.0, 2.0, 10.0])
    assert figure == Figure(2.5, 1.0, 10.0, 4) and figure.text(1) == "2.5 (1.0 to 10.0)"
    assert Figure.of([1234.0]).text() == "1,234" and Figure.of([]) is None


def test_samples_survive_and_a_round_has_one(tmp_path):
    results = Results(tmp_path / "r.json")
    results.add(sample("A", 0, error="out of memory"))
    assert results.find("t", "A", 0) is None
    results.add(sample("A", 0, speed=5))
    again = Results(tmp_path / "r.json")
    assert len(again.samples) == 1 and again.find("t", "A", 0)["speed"] == 5
    assert again.stale("t", {"A": "a"}) == [] and again.stale("t", {"A": "b"}) == ["A"]
    assert Results(tmp_path / "r.json", fresh=True).samples == []


def bench(folder: Path, results: Results, said: list[str], **more: object) -> Bench:
    environments = Environments(folder / "environments", install=False)
    return Bench(folder, results, environments, rounds=2, threads=1, say=said.append, **more)  # type: ignore[arg-type]


def test_variants_take_turns_and_finished_samples_are_not_measured_again(tmp_path, monkeypatch):
    order: list[str] = []
    broken = {"B"}
    results = Results(tmp_path / "r.json")
    made = bench(tmp_path, results, said := [])

    def pretend(variant: Variant, name: str, *, lock: Path | None) -> Outcome:
        order.append(variant.name)
        failed = variant.name in broken
        return Outcome(None if failed else {"speed": 1.0}, "broken" if failed else None, 2.0, 10.0)

    monkeypatch.setattr(made, "run", pretend)
    table = Table("t", (Variant("A", "plain"), Variant("B", "plain"), Variant("C", "plain")), rounds=2)
    made.measure(table)
    assert order == ["A", "B", "C", "A", "C"], "what fails is not tried again in the same run"
    assert any("B: failed: broken" in line for line in said) and "more in this table, about" in said[0]
    order.clear()
    broken.clear()
    made.measure(table)
    assert order == ["B", "B"], "only what is missing"
    monkeypatch.setattr(made, "code_of", lambda variant: "other" if variant.name == "C" else "a")
    order.clear()
    made.measure(table)
    assert order == ["A", "B", "C"] * 2, "where one has changed, all are measured beside each other again"


def test_a_peer_that_is_not_there_says_so_in_its_row(tmp_path):
    results = Results(tmp_path / "r.json")
    made = bench(tmp_path, results, [])
    table = Table(training.table_name("tiny"), (Variant("JoeyNMT", "joeynmt", {"action": "train"}),), rounds=1)
    made.measure(table)
    assert "| JoeyNMT | not installed here" in report.training_table(results, "tiny", None, 4096)


def test_the_training_table_compares_and_counts(tmp_path):
    results = Results(tmp_path / "r.json")
    results.about = {"threads": 2}
    name = training.table_name("tiny")
    common = {"table": name, "peak_megabytes": 1700, "updates": 4}
    for turn, speed in enumerate((100.0, 300.0, 200.0)):
        results.add(sample("nn.Transformer", turn, **common, tokens_per_second=speed, padding=0.06, tokens=30_000))
        results.add(sample("Kente", turn, **common, tokens_per_second=4 * speed, padding=0.0, tokens=16_000))
        results.add(sample(training.GEMM, turn, table=name, gigaflops={"square": 10.0 + turn}))
    table = report.training_table(results, "tiny", flop_per_token=3e6, batch_tokens=4096)
    assert "| nn.Transformer | 200 (100 to 300) | 1.00 | 6 % | 1.7 GB | 5 % |" in table
    assert "| Kente | 800 (400 to 1,200) | 4.00 | 0 % | 1.7 GB | 20 % |" in table
    assert "GEMM peak in the same rounds: 12 GFLOP/s" in table
    assert "Kente had 2,000 places a side in a batch, not 4,096" in table and "nn.Transformer had" not in table


def test_answers_of_other_lengths_or_scores_are_pointed_at():
    rows = {
        "Kente": [{"output_tokens": 1500, "sentences": 100, "bleu": 30.0}],
        "same": [{"output_tokens": 1510, "sentences": 100, "bleu": 30.05}],
        "short": [{"output_tokens": 1200, "sentences": 100, "bleu": 28.0}],
        "broken": [{"error": "no"}],
    }
    complaints = fairness.uneven_answers(rows, "Kente")
    assert complaints == [
        "short wrote 12.0 tokens a sentence where Kente wrote 15.0",
        "short scored 28.00 BLEU where Kente scored 30.00",
    ]


def test_other_busy_programs_are_told_of():
    rows = {"A": [{"others_busy": 0.5}, {"others_busy": 0.0}, {"others_busy": 0.3}], "B": [{"others_busy": 0.01}]}
    assert fairness.disturbed(rows) == ["while A ran, other programs used 30% of the cores"]


def test_a_disturbed_sample_is_measured_again_and_the_calmest_counts(tmp_path, monkeypatch):
    made = bench(tmp_path, Results(tmp_path / "r.json"), [], calm=0.1)
    shares = iter([0.5, 0.3, 0.05])
    monkeypatch.setattr(made, "_wait_for_calm", lambda: None)
    monkeypatch.setattr(made, "run", lambda *a, **k: Outcome({"x": 1}, None, 1.0, 1.0, others_busy=next(shares)))
    assert made.run_in_peace(Variant("A", "plain"), "A").others_busy == 0.05
    shares = iter([0.5, 0.3, 0.4, 0.6])
    assert made.run_in_peace(Variant("A", "plain"), "A").others_busy == 0.3


def test_a_page_keeps_what_is_outside_its_markers():
    page = "above\n<!-- begin training -->\nold\n<!-- end training -->\nbelow\n"
    changed = report.between(page, "training", "new\n")
    assert changed == "above\n<!-- begin training -->\nnew\n<!-- end training -->\nbelow\n"
    assert report.between(changed, "training", "new\n") == changed
    with pytest.raises(ValueError, match="begin growth"):
        report.between(page, "growth", "x")


def test_charts_show_every_row_and_are_whole(tmp_path):
    from xml.etree import ElementTree

    drawn = bars("Speed", "tokens/s", [Bar("Kente <fast>", 10, 9, 11, ours=True), Bar("peer", 5, 5, 5)])
    words = "".join(ElementTree.fromstring(drawn).itertext())
    assert "Kente <fast>" in words and "peer" in words
    rects = list(ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}rect"))[1:]
    assert float(rects[0].get("width")) == pytest.approx(2 * float(rects[1].get("width")), rel=0.01)
    curve = lines("Cost", "length", "us", [Line("a", [(16, 1.0), (1024, 4.0)]), Line("b", [(16, 2.0)])], log=True)
    assert len(list(ElementTree.fromstring(curve).iter("{http://www.w3.org/2000/svg}circle"))) == 3


def test_on_two_logarithmic_scales_growth_in_proportion_is_a_straight_line():
    from xml.etree import ElementTree

    points = [(10.0, 0.03), (100.0, 0.3), (1000.0, 3.0)]
    drawn = lines("Cost", "edges", "s", [Line("a", points)], log=True, log_up=True)
    heights = [float(c.get("cy")) for c in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}circle")]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2], abs=0.2)
    assert heights[0] > heights[1] > heights[2]


def test_the_page_in_docs_has_every_marker():
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for name in report.sections(Results(Path("nowhere.json")), None):
        assert f"<!-- begin {name} -->" in page and f"<!-- end {name} -->" in page


def test_unknown_parts_and_peers_are_named(capsys, tmp_path):
    assert run.main(["--only", "trianing", "--folder", str(tmp_path)]) == 2
    assert "no part called trianing; there are training" in capsys.readouterr().err
    with pytest.raises(UsageError, match="no peer called x; there are kente, plain"):
        run.chosen("kente,x", ["kente", "plain"], "peer")


def test_the_command_shown_has_no_folders_of_this_machine():
    given = ["--only", "training", "--lock", "/x/y", "--folder=/z", "--rounds", "3"]
    assert run.command_line(given) == "python -m benchmarks.run --only training --rounds 3"


def test_requirements_of_peers_are_pinned_and_have_one_torch():
    files = sorted((ROOT / "benchmarks" / "peers").glob("*.txt"))
    assert len(files) == 8
    for file in files:
        pinned = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
        assert all("==" in line for line in pinned), file
        assert {line for line in pinned if line.startswith("torch==")} <= {"torch==2.13.0"}


@pytest.mark.slow
def test_a_quick_run_fills_its_tables_and_writes_its_page(text, tmp_path, capsys):
    page = tmp_path / "page.md"
    markers = report.sections(Results(tmp_path / "none.json"), None)
    page.write_text("".join(f"<!-- begin {name} -->\n<!-- end {name} -->\n" for name in markers), encoding="utf-8")
    command = ["--quick", "--only", "training", "--peers", "kente,plain", "--threads", "1", "--vocabulary", "500"]
    command += ["--batch-tokens", "256"]
    command += ["--folder", str(tmp_path / "bench"), "--text", str(text), "--page", str(page)]
    assert run.main(command) == 0
    shown = capsys.readouterr()
    results = json.loads((tmp_path / "bench" / "quick.json").read_text())
    assert {s["variant"]: s["error"] for s in results["samples"]} == dict.fromkeys(
        (v.name for v in _rows(results) if v.peer in ("kente", "plain")), None
    )
    assert (
        "| Kente |" in shown.out and "| Kente |" in page.read_text() and "bench-training-tiny.svg" in page.read_text()
    )
    assert str(tmp_path) not in json.dumps(results), "no folders of this machine in the results"
    assert run.main(command) == 0 and "round 1" not in capsys.readouterr().err, "nothing is measured twice"


def _rows(results: dict) -> list[Variant]:
    seen = itertools.groupby(results["samples"], key=lambda s: (s["variant"], s["peer"]))
    return [Variant(name, peer) for (name, peer), _ in seen]


@given(st.lists(st.floats(0, 300), max_size=12))
def test_names_beside_lines_stand_in_their_order_and_not_on_each_other(wanted: list[float]) -> None:
    found = apart(wanted, 0.0, 300.0)
    ranked = sorted(zip(wanted, found, strict=True))
    assert all(
        later - earlier >= 17 - 1e-6
        for (_, earlier), (_, later) in itertools.pairwise(sorted(ranked, key=lambda x: x[1]))
    )
    assert [a for a, _ in sorted(ranked, key=lambda x: x[1])] == sorted(wanted)
    assert all(height <= 300 for height in found)
