"""Encoders as a user meets them: classified with, embedded with, matched and clustered with, upon runs of every kind."""

from __future__ import annotations

import importlib
import json
import random
import shutil
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch

from kente import api
from kente.api import matching
from kente.errors import ConfigError, CorpusError, RunError, UsageError
from kente.reporting import Reporter
from kente.runs import Run
from kente.show import clusters as pages

SHAPE = ("model.width=16", "model.feedforward=32", "model.heads=2")
SMALL = ("model.layers=1", *SHAPE)
TRANSLATOR = ("model.encoder_layers=1", "model.decoder_layers=1", *SHAPE)
BLOCKS = ("batches.tokens=256", "batches.max_length=32")
ANIMALS, TOOLS = (["cat", "dog", "fox", "owl", "hen", "cow"], ["saw", "axe", "nail", "screw", "drill", "file"])


def lines(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """(label, text): what stands in a text says which it is."""
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        label, words = (("animal", ANIMALS), ("tool", TOOLS))[number % 2]
        rows.append((label, " ".join(["the", *rng.sample(words, 2), "and", rng.choice(words)])))
    return rows


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    for name, count, seed in (("train", 120, 1), ("test", 40, 2)):
        rows = lines(count, seed)
        (folder / f"{name}.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in rows))
        (folder / f"{name}.txt").write_text("".join(f"{text}\n" for _, text in rows))
    pairs = zip(lines(120, 3), lines(120, 4), strict=True)
    (folder / "pairs.tsv").write_text("".join(f"{one}\t{other}\n" for (_, one), (_, other) in pairs))
    (folder / "target.txt").write_text("".join(f"{text[::-1]}\n" for _, text in lines(120, 1)))
    scored = [(4.0 if a[0] == b[0] else 0.5, a[1], b[1]) for a, b in zip(lines(30, 5), lines(30, 6)[::-1], strict=True)]
    scored += [(4.0 if a[0] == b[0] else 0.5, a[1], b[1]) for a, b in zip(lines(30, 7), lines(30, 8), strict=True)]
    (folder / "similar.tsv").write_text("".join(f"{s}\t{a}\t{b}\n" for s, a, b in scored))
    return folder


@pytest.fixture(scope="module")
def encoders(texts, tmp_path_factory):
    """One small run of each kind that reads text."""
    folder = tmp_path_factory.mktemp("runs")
    how = {"updates": 4, "threads": 1}
    text = [texts / "train.txt"]
    documents = ("text.documents=lines", "text.packed=false")
    api.pretrain(
        text, folder / "masked", kind="masked", tokenizer="words", settings=(*SMALL, *BLOCKS, *documents), **how
    )
    api.pretrain(text, folder / "causal", tokenizer="words", settings=(*SMALL, *BLOCKS), **how)
    settings = (
        "model.width=12",
        "model.subsample=0",
        "batches.tokens=512",
        "text.documents=lines",
        "optimiser.rate=2e-2",
    )
    api.pretrain(text, folder / "words", kind="words", settings=settings, updates=300, threads=1)
    data = api.Data(texts / "train.txt", texts / "target.txt")
    settings = (*TRANSLATOR, "tokenizer.kind=characters", "batches.tokens=512", "train.validate_every=100")
    api.train(data, folder / "translator", settings=settings, **how)
    return folder


KINDS = ("masked", "causal", "words", "translator")


def sha(run: Path) -> str:
    return api.info(run)["weights_sha256"]


def classify(texts: Path, out: Path, *more: str, **options):
    how = {"updates": 40, "threads": 1, "settings": (*more, "train.log_every=5")} | options
    return api.classify_train([texts / "train.tsv"], out, **how)


SCRATCH = (*SMALL, "tokenizer.kind=words", "model.dropout=0.1")


@pytest.fixture(scope="module")
def classifier(texts, tmp_path_factory):
    out = tmp_path_factory.mktemp("classifier") / "run"
    return classify(texts, out, *SCRATCH, "optimiser.rate=1e-2", pooling="attention", updates=80).run.path


# ---- classify ---------------------------------------------------------------------------------------------------------------


def test_a_classifier_from_nothing_learns_says_so_and_is_kept(texts, classifier):
    run = Run.open(classifier)
    assert run.config.head.classes == 2 and run.config.head.pooling == "attention"
    scores = [record["validation"] for record in run.read("metrics") if "validation" in record]
    assert set(scores[-1]) == {"loss", "accuracy", "macro_f1"}
    card = (classifier / "README.md").read_text()
    assert "A text classifier trained by" in card and "animal (" in card and "begun at random" in card
    facts = api.info(classifier)
    assert facts["task"] == "classification" and facts["best"]["score"]["name"] == "accuracy"
    assert api.summary(classifier).parameters == facts["parameters"]
    report = api.classify_report(classifier, [texts / "test.tsv"], threads=1)
    assert report.accuracy.value > 90 and report.classes == ("animal", "tool")


def test_probabilities_sum_to_one_and_belong_to_their_texts(classifier):
    asked = ["the saw", "the cat and the dog and the fox and the owl", "", "the axe and nail"]
    found = api.classify(classifier, asked, threads=1)
    assert [one.text for one in found] == asked
    for text, one in zip(asked, found, strict=True):
        assert sum(one.probabilities.values()) == pytest.approx(1, abs=1e-5)
        assert one.probability == max(one.probabilities.values()) == one.probabilities[one.label]
        (alone,) = api.classify(classifier, [text], threads=1)
        assert alone.probability == pytest.approx(one.probability, abs=1e-5)
    assert found[0].label == "tool" and found[1].label == "animal"
    assert api.load_classifier(classifier).predict([]) == []


def test_a_report_has_a_page(texts, classifier, tmp_path):
    report = api.classify_report(classifier, [texts / "test.tsv"], tmp_path / "page", threads=1)
    assert sum(map(sum, report.confusion)) == 40
    assert "Confusion" in (tmp_path / "page" / "report.html").read_text()
    (tmp_path / "other.tsv").write_text("plant\tthe rose\n")
    with pytest.raises(CorpusError, match=r"other.tsv has a class 'plant'"):
        api.classify_report(classifier, [tmp_path / "other.tsv"], threads=1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_classifier_begins_with_its_encoder_whatever_that_is(texts, encoders, tmp_path, kind):
    """With a rate of nothing the encoder inside it stays what it was, tokenizer and marks included."""
    out = tmp_path / "run"
    still = ("optimiser.rate=1e-12", "optimiser.weight_decay=0", "train.average=none")
    classify(texts, out, *still, encoder=encoders / kind, updates=1)
    ours, theirs = api.load_encoder(out, threads=1), api.load_encoder(encoders / kind, threads=1)
    text = "the cat and saw"
    assert ours.frame(text) == theirs.frame(text)
    one, other = (encoder.encode(*encoder.batch([encoder.frame(text)])) for encoder in (ours, theirs))
    assert torch.allclose(one, other, atol=1e-5)
    assert Run.open(out).config.model.kind == Run.open(encoders / kind).config.model.kind
    assert f"begun from {kind}" in (out / "README.md").read_text()


def test_a_classifier_robbed_of_its_last_checkpoint_ends_where_the_unbroken_one_ends(texts, encoders, tmp_path):
    out = tmp_path / "run"
    settings = ("model.dropout=0.2", "train.keep=5", "train.validate_every=100")
    classify(texts, out, *settings, encoder=encoders / "masked", updates=8, save_every=4)
    whole = sha(out)
    shutil.rmtree(Run.open(out).latest().path)
    assert Run.open(out).latest().step == 4
    assert api.resume(out, threads=1).step == 8 and sha(out) == whole


def test_minutes_and_data_choose_how_long_and_how_fast(texts, encoders, tmp_path):
    settings = ("model.width=16", "model.feedforward=32", "model.heads=2", "tokenizer.kind=words")
    result = classify(texts, tmp_path / "one", *settings, updates=None, minutes=0.12)
    assert result.stopped == "planned updates done"
    result = classify(texts, tmp_path / "two", updates=None, encoder=encoders / "words")
    assert result.step == Run.open(tmp_path / "two").config.train.updates >= 300 or "no better" in result.stopped
    chosen = {c["setting"] for c in json.loads((tmp_path / "two" / "prepared.json").read_text())["choices"]}
    assert {"train.updates", "optimiser.rate", "batches.tokens", "head.classes"} <= chosen


def test_settings_that_do_not_fit_are_refused(texts, encoders, classifier, tmp_path):
    with pytest.raises(ConfigError, match=r"model.width = 32 does not fit the encoder .*masked, whose width is 16"):
        classify(texts, tmp_path / "a", "model.width=32", encoder=encoders / "masked")
    with pytest.raises(ConfigError, match=r"head.classes = 3, but the texts have 2 classes"):
        classify(texts, tmp_path / "b", "head.classes=3", *SCRATCH)
    with pytest.raises(UsageError, match="no pooling called max; there are mean, cls, attention"):
        classify(texts, tmp_path / "c", pooling="max")
    with pytest.raises(UsageError, match="no labelled texts given"):
        api.classify_train([], tmp_path / "d")
    (tmp_path / "one.tsv").write_text("".join(f"x\ttext {n}\n" for n in range(30)))
    with pytest.raises(CorpusError, match="has a single class, 'x'"):
        api.classify_train([tmp_path / "one.tsv"], tmp_path / "e", settings=SCRATCH, threads=1)
    with pytest.raises(RunError, match=r"masked is a masked encoder; kente classify needs a text classifier"):
        api.load_classifier(encoders / "masked")
    with pytest.raises(RunError, match=r"is a text classifier; kente generate needs a language model"):
        api.generate(classifier, "x")


def test_the_encoder_that_a_run_begins_from_is_not_replaced_by_it(texts, encoders, tmp_path):
    old = shutil.copytree(encoders / "masked", tmp_path / "old")
    message = rf"--out {old} is the run to begin from; choose another folder"
    with pytest.raises(UsageError, match=message):
        classify(texts, old, encoder=old, force=True)
    with pytest.raises(UsageError, match=message):
        api.contrast(old, encoder=tmp_path / "." / "old", pairs=[texts / "pairs.tsv"], force=True)
    assert sha(old) == sha(encoders / "masked")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "cuda"}, "--device cuda: this machine or this build of torch has no cuda"),
        ({"threads": 0}, "--threads must be at least 1, not 0"),
        ({"settings": ("model.width=64",)}, "model.width = 64 does not fit the encoder .*masked, whose width is 16"),
        (
            {"settings": ("tokenizer.kind=bpe",)},
            "tokenizer.kind cannot be set: the tokenizer of .*masked is taken as it is",
        ),
        ({"settings": ("tokenizer.vocabulary=99",)}, "tokenizer.vocabulary cannot be set.* or leave out --encoder"),
    ],
)
def test_what_cannot_be_is_said_before_an_old_run_is_replaced(texts, encoders, tmp_path, monkeypatch, options, message):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    old = shutil.copytree(encoders / "causal", tmp_path / "old")
    with pytest.raises((ConfigError, UsageError), match=message):
        classify(texts, old, encoder=encoders / "masked", force=True, **options)
    with pytest.raises((ConfigError, UsageError), match=message):
        api.contrast(old, encoder=encoders / "masked", pairs=[texts / "pairs.tsv"], force=True, **options)
    assert sha(old) == sha(encoders / "causal")


def test_settings_that_nobody_reads_are_refused(texts, tmp_path):
    sampling = (
        "tokenizer.sampling = 0.1 is for translators; a text classifier reads text that is cut the same way each time"
    )
    with pytest.raises(ConfigError, match=sampling):
        classify(texts, tmp_path / "run", *SCRATCH, "tokenizer.sampling=0.1")
    with pytest.raises(
        ConfigError, match=r"train.label_smoothing = 0.2 is nothing that a sentence encoder learns with"
    ):
        api.contrast(tmp_path / "run", pairs=[texts / "pairs.tsv"], settings=["train.label_smoothing=0.2"])


# ---- embed ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "pooling"),
    [(kind, pooling) for kind in KINDS for pooling in (None, "cls") if (kind, pooling) != ("words", "cls")],
)
def test_vectors_are_pooled_states_of_the_runs_encoder(encoders, kind, pooling):
    asked = ["the cat", "the saw and the axe and nail"]
    vectors = api.embed(encoders / kind, asked, pooling=pooling, threads=1)
    encoder = api.load_encoder(encoders / kind, threads=1)
    for text, vector in zip(asked, vectors, strict=True):
        states = encoder.encode(*encoder.batch([encoder.frame(text)]))[0].detach()
        last = kind in ("causal", "translator")
        wanted = states.mean(0) if pooling is None else states[-1 if last else 0]
        assert np.allclose(vector, wanted.numpy(), atol=1e-5)


def test_word_vectors_have_no_mark_that_could_stand_for_a_text(texts, encoders, tmp_path):
    message = "--pooling cls takes the vector of a mark, and word vectors have none for marks"
    with pytest.raises(UsageError, match=message):
        api.embed(encoders / "words", ["the cat"], pooling="cls")
    for more, pooling in ((("head.pooling=cls",), None), ((), "cls")):
        with pytest.raises(UsageError, match=message):
            classify(texts, tmp_path / "run", *more, encoder=encoders / "words", pooling=pooling)
    assert not (tmp_path / "run").exists()


def test_a_run_with_a_head_pools_as_it_was_trained(classifier):
    vectors = api.embed(classifier, ["the cat and the saw"], threads=1)
    model = Run.open(classifier).model()
    encoder = api.load_encoder(classifier, threads=1)
    with torch.inference_mode():
        wanted = model(*encoder.batch([encoder.frame("the cat and the saw")]))[0]
    assert np.allclose(vectors[0], wanted.numpy(), atol=1e-5)
    mean = api.embed(classifier, ["the cat and the saw"], pooling="mean", threads=1)
    assert not np.allclose(mean, vectors)


def test_vectors_go_to_a_file_that_numpy_or_anyone_reads(encoders, tmp_path):
    asked = ["the cat", "", "thé saw"]
    vectors = api.embed(encoders / "masked", asked, tmp_path / "v.npy", unit_length=True, threads=1)
    assert np.array_equal(np.load(tmp_path / "v.npy"), vectors) and vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    plain = api.embed(encoders / "masked", asked, tmp_path / "v.jsonl", threads=1)
    rows = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == asked
    assert np.allclose([row["vector"] for row in rows], plain, atol=1e-5)
    with pytest.raises(UsageError, match=r"should end in .npy \(an array\) or .jsonl"):
        api.embed(encoders / "masked", asked, tmp_path / "v.txt")
    with pytest.raises(UsageError, match="has not learned attention pooling"):
        api.embed(encoders / "masked", asked, pooling="attention")
    with pytest.raises(UsageError, match="no text to make vectors of"):
        api.embed(encoders / "masked", [])


# ---- contrast ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sentences(texts, encoders, tmp_path_factory):
    out = tmp_path_factory.mktemp("sentences") / "run"
    settings = ("optimiser.rate=1e-2", "train.validate_every=20")
    how = {"similar": texts / "similar.tsv", "settings": settings, "updates": 60, "threads": 1}
    api.contrast(out, encoder=encoders / "masked", pairs=[texts / "pairs.tsv"], **how)
    return out


def test_pairs_teach_which_texts_mean_the_same(texts, encoders, sentences):
    before, after = (api.similarity(run, texts / "similar.tsv", threads=1) for run in (encoders / "masked", sentences))
    assert after.value > before.value and after.value > 0.5
    scores = [record["validation"] for record in Run.open(sentences).read("metrics") if "validation" in record]
    assert set(scores[0]) == {"loss", "accuracy", "spearman"}
    assert max(score["spearman"] for score in scores) == pytest.approx(after.value, abs=1e-4)
    assert api.info(sentences)["best"]["score"]["name"] == "spearman"
    assert "A sentence encoder trained by" in (sentences / "README.md").read_text()


def test_how_well_the_encoder_did_before_is_said(texts, encoders, tmp_path):
    class Listener(Reporter):
        said: ClassVar[list[str]] = []

        def say(self, text: str) -> None:
            self.said.append(text)

    how = {"similar": texts / "similar.tsv", "updates": 2, "threads": 1, "reporter": Listener()}
    api.contrast(tmp_path / "run", encoder=encoders / "masked", pairs=[texts / "pairs.tsv"], **how)
    before = api.similarity(encoders / "masked", texts / "similar.tsv", threads=1)
    assert f"the encoder by itself: {before} | {before.signature}" in Listener.said


def test_a_sentence_encoder_is_an_encoder_too(texts, sentences, tmp_path):
    result = classify(texts, tmp_path / "run", encoder=sentences, updates=2)
    assert result.run.config.head.kind == "classes"
    assert "begun from run" in (tmp_path / "run" / "README.md").read_text()


def test_plain_text_is_enough_and_a_stopped_run_goes_on(texts, encoders, tmp_path):
    out = tmp_path / "run"
    settings = ("train.keep=5", "train.validate_every=100")
    how = {"settings": settings, "save_every": 3, "updates": 6, "threads": 1}
    result = api.contrast(out, encoder=encoders / "masked", text=[texts / "train.txt"], **how)
    assert result.best is not None and result.best.name == "loss"
    whole = sha(out)
    shutil.rmtree(Run.open(out).latest().path)
    assert api.resume(out, threads=1).step == 6 and sha(out) == whole
    with pytest.raises(UsageError, match="give pairs of texts that mean the same"):
        api.contrast(tmp_path / "none", encoder=encoders / "masked")
    with pytest.raises(UsageError, match="one of the two"):
        api.contrast(tmp_path / "both", text=[texts / "train.txt"], pairs=[texts / "pairs.tsv"])


def test_plain_text_is_refused_where_nothing_makes_two_readings_differ(texts, encoders, tmp_path):
    how = {"text": [texts / "train.txt"], "updates": 1, "threads": 1}
    with pytest.raises(UsageError, match=r"word vectors have no dropout, .* give pairs \(--pairs F\)"):
        api.contrast(tmp_path / "a", encoder=encoders / "words", **how)
    with pytest.raises(UsageError, match=r"model.dropout = 0 makes a text that is read twice the same twice"):
        api.contrast(tmp_path / "b", encoder=encoders / "masked", settings=["model.dropout=0"], **how)
    assert not (tmp_path / "a").exists() and not (tmp_path / "b").exists()
    both = ["model.dropout=0", "model.attention_dropout=0.1"]
    assert api.contrast(tmp_path / "c", encoder=encoders / "masked", settings=both, **how).step == 1


# ---- match and cluster ------------------------------------------------------------------------------------------------------


def test_the_nearest_text_to_a_text_is_itself(texts, sentences, tmp_path):
    corpus = (texts / "test.txt").read_text().splitlines()
    (found,) = api.match(sentences, [corpus[7]], corpus, nearest=3, threads=1)
    assert found.query == corpus[7] and found.neighbours[0].text == corpus[7]
    assert found.neighbours[0].cosine == pytest.approx(1, abs=1e-4)
    cosines = [near.cosine for near in found.neighbours]
    assert cosines == sorted(cosines, reverse=True) and corpus[found.neighbours[2].line - 1] == found.neighbours[2].text
    api.embed(sentences, corpus, tmp_path / "v.npy", threads=1)
    again = api.match(sentences, [corpus[7]], corpus, nearest=3, vectors=tmp_path / "v.npy", threads=1)
    assert [near.line for near in again[0].neighbours] == [near.line for near in found.neighbours]
    with pytest.raises(UsageError, match=r"holds 40 vectors .* but the corpus has 39 lines"):
        api.match(sentences, ["x"], corpus[1:], vectors=tmp_path / "v.npy", threads=1)
    np.save(tmp_path / "flat.npy", np.zeros(3))
    with pytest.raises(UsageError, match="vectors are"):
        api.match(sentences, ["x"], corpus, vectors=tmp_path / "flat.npy", threads=1)


def test_what_is_no_file_of_vectors_is_said_to_be_none(sentences, tmp_path):
    (tmp_path / "empty.npy").write_bytes(b"")
    np.savez(tmp_path / "several.npz", one=np.eye(2), two=np.eye(3))
    np.save(tmp_path / "cut.npy", np.eye(2))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "cut.npy").read_bytes()[:8])
    begins = r"it does not begin as one \(an archive of several, .npz, is none either\)"
    for name, message in (("empty.npy", begins), ("several.npz", begins), ("cut.npy", ".*")):
        with pytest.raises(UsageError, match=rf"{name} is not a .npy file of vectors: {message}"):
            api.match(sentences, ["x"], ["the cat"], vectors=tmp_path / name, threads=1)


def test_neighbours_that_an_index_did_not_find_are_left_out(sentences, monkeypatch):
    def found(queries, k):
        return np.array([[1, -1, -1]]), np.array([[0.5, -3.4e38, -3.4e38]], np.float32)

    monkeypatch.setattr(matching, "search_in", lambda corpus, kind: found)
    (answer,) = api.match(sentences, ["the cat"], ["the dog", "the fox"], index="faiss", nearest=3, threads=1)
    assert answer.neighbours == (api.matching.Neighbour(2, 0.5, "the fox"),)


@pytest.mark.parametrize(
    ("library", "use", "message"),
    [
        ("hnswlib", lambda run: api.match(run, ["a"], ["b"], index="hnsw"), "--index hnsw needs hnswlib"),
        ("faiss", lambda run: api.match(run, ["a"], ["b"], index="faiss"), "--index faiss needs faiss-cpu"),
        ("sklearn", lambda run: api.cluster(run, ["a", "b", "c"]), "kente cluster needs scikit-learn"),
    ],
)
def test_a_missing_library_is_said_before_anything_is_read(tmp_path, monkeypatch, library, use, message):
    there = importlib.import_module

    def without(name: str, package: str | None = None):
        if name.partition(".")[0] == library:
            raise ImportError(name)
        return there(name, package)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(UsageError, match=message):
        use(tmp_path / "nowhere")


def test_word_vectors_need_no_corpus_and_know_which_words_keep_company(encoders):
    found = {match.query: match for match in api.match(encoders / "words", ["cat", "saw"], nearest=5, threads=1)}
    assert found["cat"].neighbours[0].text == "cat"
    assert {near.text for near in found["cat"].neighbours} <= set(ANIMALS)
    assert {near.text for near in found["saw"].neighbours} <= set(TOOLS)
    with pytest.raises(UsageError, match="no corpus given"):
        api.match(encoders / "masked", ["cat"])


def test_a_word_that_word_vectors_do_not_know_has_no_neighbours(encoders):
    class Ears(Reporter):
        warned: ClassVar[list[str]] = []

        def warn(self, text: str) -> None:
            self.warned.append(text)

    cat, unknown = api.match(encoders / "words", ["cat", "Cat?"], nearest=2, threads=1, reporter=Ears())
    assert len(cat.neighbours) == 2 and unknown.neighbours == ()
    assert [said for said in Ears.warned if "'Cat?' has no word that this run knows" in said]


def test_clusters_are_found_judged_and_shown(texts, sentences, tmp_path):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    rows = [line.split("\t") for line in (texts / "test.tsv").read_text().splitlines()]
    labels, some = [row[0] for row in rows], [row[1] for row in rows]
    found = api.cluster(sentences, some, tmp_path / "out", labels=labels, threads=1)
    assert found.purity is not None and found.nmi is not None and found.purity > 0.9
    assert len(found.groups) == 2 and set(found.groups[0].words) <= {*ANIMALS, *TOOLS}
    assert found.page.read_text().startswith("<!doctype html>")
    assert [line.split("\t")[1] for line in found.table.read_text().splitlines()] == some
    told = "\n".join(found.lines())
    assert "purity" in told and str(found.page) in told and isinstance(found.groups[0], pages.Group)
    dense = api.cluster(sentences, some, tmp_path / "dense", method="hdbscan", smallest=5, threads=1)
    assert dense.nmi is None and set(dense.clusters) <= set(range(-1, 40))
    chosen = api.cluster(sentences, some, tmp_path / "chosen", threads=1)
    assert len(chosen.groups) >= 2


def test_what_cannot_be_clustered_is_said_before_anything_is_loaded(tmp_path):
    for options, message in (
        ({"method": "magic"}, "no method called magic"),
        ({"method": "hdbscan", "clusters": 3}, "HDBSCAN finds out how many"),
        ({"smallest": 3}, "--smallest 3 is for HDBSCAN: add --method hdbscan"),
        ({"seed": 2**32}, "--seed 4294967296 is too large for scikit-learn, which takes numbers below 4294967296"),
        ({}, "2 texts are too few"),
    ):
        with pytest.raises(UsageError, match=message):
            api.cluster(tmp_path / "nowhere", ["a", "b"], tmp_path / "out", **options)


def test_word_vectors_are_a_run_like_any_other(texts, tmp_path):
    out = tmp_path / "run"
    settings = ("model.width=8", "train.keep=5", "train.validate_every=100", "batches.tokens=256")
    how = {"settings": settings, "updates": 6, "save_every": 3, "threads": 1}
    api.pretrain([texts / "train.txt"], out, kind="words", **how)
    whole, facts = sha(out), api.info(out)
    assert facts["what"] == "a table of word vectors" and "Word vectors trained by" in (out / "README.md").read_text()
    shutil.rmtree(Run.open(out).latest().path)
    assert api.resume(out, threads=1).step == 6 and sha(out) == whole
