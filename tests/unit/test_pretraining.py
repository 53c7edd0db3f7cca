"""Language models and masked encoders as a user meets them: trained, resumed, scored, used, and kept apart from translators."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kente import api
from kente.api import language, pretraining
from kente.config import TokenizerConfig
from kente.data.byte_level import byte_letters
from kente.data.given import given_tokenizers
from kente.data.tokenizer import Symbols, Tokenizers
from kente.errors import ConfigError, CorpusError, RunError, UsageError
from kente.reporting import Reporter
from kente.runs import Run
from kente.train.language_budget import automatic_language
from kente.train.prepare_text import prepare_text

BLOCKS = ("batches.tokens=256", "batches.max_length=32", "train.log_every=2")
TINY = ("model.layers=1", "model.width=16", "model.feedforward=32", "model.heads=2", *BLOCKS)
RECURRENT = ("model.kind=recurrent-language", "model.width=16", "model.embedding=12", *BLOCKS)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    words = ["the king", "a queen", "my lord", "good night", "and so", "to bed"]
    lines = [f"{words[n % 6]} {words[n * 5 % 6]}" if n % 7 else "" for n in range(400)]
    path = tmp_path / "play.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def pretrain(text: Path, out: Path, *more: str, kind="causal", tokenizer="characters", **options):
    tiny = () if any(setting.startswith("model.kind") for setting in more) else TINY
    how = {"updates": 8, "threads": 1} | options
    return api.pretrain([text], out, kind=kind, tokenizer=tokenizer, settings=(*tiny, *more), **how)


def sha(run) -> str:
    return api.info(run)["weights_sha256"]


KINDS = {
    "causal": ("causal", ()),
    "apart": ("causal", ("text.packed=false", "text.documents=paragraphs")),
    "recurrent": ("causal", RECURRENT),
    "masked": ("masked", ()),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_run_robbed_of_its_last_checkpoint_ends_where_the_unbroken_one_ends(text, tmp_path, name):
    kind, more = KINDS[name]
    out = tmp_path / "run"
    pretrain(text, out, *more, "model.dropout=0.2", "train.keep=5", "train.validate_every=100", kind=kind, save_every=4)
    whole = sha(out)
    shutil.rmtree(Run.open(out).latest().path)
    assert Run.open(out).latest().step == 4 and sha(out) != whole
    assert api.resume(out, threads=1).step == 8 and sha(out) == whole


def test_the_run_folder_holds_what_was_promised(text, tmp_path):
    result = pretrain(text, tmp_path / "run", "train.validate_every=4")
    run = result.run
    card = (run.path / "README.md").read_text()
    assert "A language model trained by" in card and "kente generate run" in card and "characters vocabulary" in card
    scores = [record["validation"] for record in run.read("metrics") if "validation" in record]
    assert [set(score) for score in scores] == [{"loss", "perplexity", "bits_per_character"}] * 2
    assert scores[-1]["perplexity"] == pytest.approx(math.exp(scores[-1]["loss"]))
    assert {"step", "prompt", "text"} == set(run.read("samples")[0])
    facts = api.info(run.path)
    assert facts["task"] == "causal" and facts["what"] == "a language model" and facts["vocabulary"] < 30
    assert result.best.name == "loss" and any(c.startswith("kente generate") for c in result.next_commands())
    assert api.summary(run.path).parameters == facts["parameters"]


def test_bits_per_character_are_what_the_whole_text_costs_in_bits_over_its_characters(text, tmp_path):
    out = tmp_path / "run"
    pretrain(text, out)
    test = tmp_path / "test.txt"
    test.write_text("the king\n\nto bed my lord\n")
    found = api.evaluate_text(out, [test], threads=1)
    model, tokenizer = Run.open(out).model(), Run.open(out).tokenizers().target
    lines = [tokenizer.encode(line) for line in test.read_text().split("\n")[:-1]]
    ids = [2, *(i for line in lines for i in (*line, 3)), 2]
    nothing = torch.zeros(1, 0, dtype=torch.long)
    with torch.inference_mode():
        logits = model.predict(model(nothing, nothing.bool(), torch.tensor([ids[:-1]])))[0].log_softmax(-1)
    bits = -sum(float(logits[place, answer]) for place, answer in enumerate(ids[1:])) / math.log(2)
    assert len(ids) - 1 <= 32 and found.characters == len(test.read_text())
    assert found.as_dict()["bits_per_character"] == pytest.approx(bits / found.characters, rel=1e-4)
    assert f"{found.characters} characters, {len(ids)} tokens" in found.lines()[0]


def test_the_whole_text_is_scored_or_the_lines_asked_for(text, tmp_path, monkeypatch):
    out = tmp_path / "run"
    pretrain(text, out)
    test = tmp_path / "test.txt"
    test.write_text("the king\n" * 30 + "q" * 200 + "\n")
    monkeypatch.setattr(language, "VALIDATED", 50)  # what a validation in training reads at most
    counted = []

    def counting(model, batches, device, objective):
        counted.append(sum(batch.target_tokens for batch in batches))
        return 1.0

    monkeypatch.setattr(pretraining, "mean_loss", counting)
    whole = api.evaluate_text(out, [test], threads=1)
    some = api.evaluate_text(out, [test, test], limit=3, threads=1)
    assert counted == [whole.tokens - 1, some.tokens - 1] and whole.tokens == 30 * 9 + 201 + 2
    assert some.characters == 3 * 9 and "the first 3 lines of test.txt" in some.lines()[0]


def test_bits_of_a_text_with_unknown_words_come_with_a_note(text, tmp_path):
    out = tmp_path / "run"
    run = pretrain(text, out, tokenizer="words").run
    test = tmp_path / "test.txt"
    test.write_text("the king sees incomprehensibilities\n")
    found = api.evaluate_text(out, [test], threads=1)
    assert found.unknown == 2 / 7 and found.as_dict()["unknown"] == 2 / 7
    assert "7 tokens, 28.57 % unknown" in found.lines()[0]
    note = "28.57 % of the tokens are unknown to the tokenizer, and what they stand for is not counted: bits per character are too low"
    assert found.lines()[1].startswith(f"note: {note}") and found.as_dict()["note"].startswith(note)
    other = pretrain(text, tmp_path / "other", tokenizer="words", validation=[test]).run
    assert f"Of the validation text {note}" in (other.path / "README.md").read_text()
    known = api.evaluate_text(out, [text], threads=1)
    assert known.unknown == 0 and len(known.lines()) == 1 and "unknown" not in known.lines()[0]
    assert (
        "note" not in known.as_dict()
        and json.loads((run.path / "prepared.json").read_text())["text"]["train"]["unknown"] == 0
    )


def test_a_masked_encoder_says_how_often_it_guesses_right(text, tmp_path):
    run = pretrain(text, tmp_path / "run", "train.validate_every=8", kind="masked").run
    scores = next(record["validation"] for record in run.read("metrics") if "validation" in record)
    assert set(scores) == {"loss", "perplexity", "accuracy"} and 0 <= scores["accuracy"] <= 1
    again = api.evaluate_text(run.path, [text], threads=1).as_dict()
    assert "bits_per_character" not in again and again["perplexity"] == pytest.approx(math.exp(again["loss"]))


def test_minutes_choose_and_say_so(text, tmp_path):
    said = []

    class Listener(Reporter):
        def say(self, text: str) -> None:
            said.append(text)

    result = api.pretrain([text], tmp_path / "run", tokenizer="characters", minutes=0.2, threads=1, reporter=Listener())
    assert result.stopped == "planned updates done"
    settings = {choice["setting"] for choice in json.loads((tmp_path / "run" / "prepared.json").read_text())["choices"]}
    assert {"model.width", "model.dropout", "optimiser.rate", "tokenizer.vocabulary"} <= settings
    assert any("held out" in line for line in said) and any(line.startswith("chosen: model size") for line in said)


def test_without_an_end_training_stops_when_validation_no_longer_improves(text, tmp_path):
    more = (
        "train.patience=1",
        "train.validate_every=2",
        "optimiser.rate=1e-9",
        "train.average=none",
        "train.max_updates=30",
    )
    result = pretrain(text, tmp_path / "run", *more, updates=None)
    assert result.stopped == "no better for 1 validations" and result.step < 30


def test_generating_is_the_same_from_python_twice_and_differs_by_seed(text, tmp_path):
    out = tmp_path / "run"
    pretrain(text, out)
    how = {"most": 20, "threads": 1}
    one, two = (api.generate(out, "the", seed=seed, **how)[0].text for seed in (1, 2))
    assert one == api.generate(out, "the", seed=1, **how)[0].text != two
    assert len(api.generate(out, "the", samples=3, **how)) == 3


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_the_encoder_of_a_run_gives_every_word_a_vector(text, tmp_path, kind):
    out = tmp_path / "run"
    pretrain(text, out, kind=kind)
    encoder = api.load_encoder(out, threads=1)
    rows = [encoder.frame(line) for line in ("the king", "a queen my lord", "")]
    assert rows[0][0] == 2 and rows[0][-1] == 3 and rows[2] == [2, 3]
    ids, mask = encoder.batch(rows)
    states = encoder.encode(ids, mask)
    assert states.shape == (3, len(rows[1]), 16) and mask.sum(1).tolist() == [len(row) for row in rows]
    assert len(encoder.frame("the king " * 100)) == 32  # what is too long is cut


def test_the_encoder_of_a_translator_reads_its_source_as_it_was_trained_to(tmp_path):
    source, target = tmp_path / "a.en", tmp_path / "a.fr"
    source.write_text("".join(f"w{i} is good\n" for i in range(120)))
    target.write_text("".join(f"w{i} est bon\n" for i in range(120)))
    tiny = ["tokenizer.kind=words", "model.width=16", "model.heads=2", "model.feedforward=16", "model.encoder_layers=1"]
    run = api.train(api.Data(source, target), tmp_path / "run", settings=tiny, updates=2, threads=1).run
    encoder = api.load_encoder(run.path, threads=1)
    ids, mask = encoder.batch([encoder.frame("w1 is good"), encoder.frame("w2")])
    assert ids[0].tolist() == [*run.tokenizers().source.encode("w1 is good"), 3]
    assert encoder.encode(ids, mask).shape == (2, 4, 16)


def test_a_verb_used_on_the_wrong_kind_of_run_says_what_it_is_and_what_fits(text, tmp_path):
    out = tmp_path / "run"
    pretrain(text, out)
    with pytest.raises(RunError, match="is a language model; translating needs a translator: `kente train") as caught:
        api.load(out)
    assert "With this run: kente generate" in str(caught.value)
    pretrain(text, out, kind="masked", force=True)
    with pytest.raises(RunError, match="is a masked encoder; kente generate needs a language model"):
        api.generate(out, "x")


def test_mistakes_are_said_before_a_folder_is_made(text, tmp_path):
    out = tmp_path / "run"
    with pytest.raises(UsageError, match=r"nothere\.txt"):
        pretrain(tmp_path / "nothere.txt", out)
    with pytest.raises(UsageError, match="no kind of pre-training called both"):
        pretrain(text, out, kind="both")
    with pytest.raises(
        ConfigError, match=r"model\.kind = masked cannot become a language model; set it to one of language"
    ):
        pretrain(text, out, "model.kind=masked")
    with pytest.raises(UsageError, match="makes a translator, not a language model: `kente train"):
        pretrain(text, out, "train.task=translation")
    with pytest.raises(ConfigError, match="holds no tokenizer; a run does"):
        pretrain(text, out, tokenizer=tmp_path)
    assert not out.exists()
    with pytest.raises(CorpusError, match="can be held out for validation; name some with --validation"):
        one = tmp_path / "one.txt"
        one.write_text("all of it in a single line")
        pretrain(one, out)


def test_a_translator_cannot_be_made_from_a_language_model_recipe(text, tmp_path):
    with pytest.raises(UsageError, match=r"train\.task = causal makes a language model, not a translator"):
        api.train(api.Data(text, text), tmp_path / "run", recipe="lstm-language")


def test_the_tokenizer_of_another_run_and_gpt2s_files_are_taken_as_they_are(text, tmp_path):
    first = pretrain(text, tmp_path / "one").run
    second = pretrain(text, tmp_path / "two", tokenizer=first.path, kind="masked").run
    assert second.tokenizers().sha256 == first.tokenizers().sha256
    gpt2 = tmp_path / "gpt2"
    gpt2.mkdir()
    vocabulary = {letter: number for number, letter in enumerate(byte_letters().values())} | {"th": 256}
    (gpt2 / "vocab.json").write_text(json.dumps(vocabulary))
    (gpt2 / "merges.txt").write_text("#version: 0.2\nt h\n")
    third = pretrain(text, tmp_path / "three", tokenizer=gpt2, validation=[text]).run
    assert third.config.tokenizer.kind == "byte-level" and third.tokenizers().target.size == 261
    assert third.tokenizers().target.pieces(third.tokenizers().target.encode("the")) == ["th", "e"]
    with pytest.raises(ConfigError, match="byte-level is not learned here"):
        pretrain(text, tmp_path / "four", "tokenizer.kind=byte-level", tokenizer=None)


def test_the_run_whose_tokenizer_is_taken_is_not_replaced_and_settings_cannot_change_it(text, tmp_path):
    first = pretrain(text, tmp_path / "one").run
    whole = sha(first.path)
    for folder in (first.path, first.path / "tokenizer"):
        with pytest.raises(
            UsageError, match=r"--out .*one is the run whose tokenizer is to be used; choose another folder"
        ):
            pretrain(text, first.path, tokenizer=folder, force=True)
    for setting in ("tokenizer.kind=bpe", "tokenizer.vocabulary=99"):
        name = setting.partition("=")[0]
        with pytest.raises(
            UsageError,
            match=rf"{name} cannot be set: the tokenizer of .*one is taken as it is; .* leave out --tokenizer",
        ):
            pretrain(text, tmp_path / "two", setting, tokenizer=first.path)
    assert sha(first.path) == whole and not (tmp_path / "two").exists()


@pytest.mark.parametrize(
    ("kind", "setting", "message"),
    [
        (
            "causal",
            "tokenizer.sampling=0.1",
            "tokenizer.sampling = 0.1 is for translators; a language model reads text",
        ),
        (
            "masked",
            "train.label_smoothing=0.1",
            "train.label_smoothing = 0.1 is nothing that a masked encoder learns with",
        ),
        (
            "words",
            "train.label_smoothing=0.1",
            "train.label_smoothing = 0.1 is nothing that a table of word vectors learns",
        ),
        ("words", "train.precision=bfloat16", "train.precision = bfloat16: a table of word vectors has no products"),
    ],
)
def test_settings_that_nobody_reads_are_refused(text, tmp_path, kind, setting, message):
    with pytest.raises(ConfigError, match=message):
        api.pretrain([text], tmp_path / "run", kind=kind, settings=[setting])
    assert not (tmp_path / "run").exists()


def test_another_programs_tokenizer_file_does_not_hide_gpt2s(text, tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "tokenizer.json").write_text('{"version": "1.0", "model": {"type": "BPE", "vocab": {}}}')
    with pytest.raises(ConfigError, match=r"tokenizer\.json is another program's; .* put them beside it"):
        given_tokenizers(folder)
    vocabulary = {letter: number for number, letter in enumerate(byte_letters().values())}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    assert given_tokenizers(folder).target.kind == "byte-level"
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(RunError, match="is not a tokenizer description"):
        given_tokenizers(folder)


@pytest.mark.parametrize(
    ("name", "end"), [("character", "; did you mean characters?"), ("Unigram", "; did you mean unigram?"), ("x/y", "")]
)
def test_a_misspelt_kind_of_tokenizer_names_those_there_are(text, tmp_path, name, end):
    with pytest.raises(UsageError) as caught:
        pretrain(text, tmp_path / "run", tokenizer=name)
    there_are = "a kind to learn (unigram, bpe, characters, words) nor a folder that is there"
    assert str(caught.value) == f"--tokenizer {name} is neither {there_are}{end}"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("kind", "side", "said"),
    [
        ("masked", "source", "for its source, which a masked encoder reads"),
        ("causal", "target", "for its target, which a language model reads"),
    ],
)
def test_of_two_vocabularies_an_encoder_takes_the_source_and_a_decoder_the_target(tmp_path, text, kind, side, said):
    source, target = (Symbols("words", words, "nfc") for words in (["", "the", "king"], ["", "le", "roi", "et"]))
    Tokenizers(source, target, joint=False).save(tmp_path / "given")
    heard = []

    class Listener(Reporter):
        def say(self, text: str) -> None:
            heard.append(text)

    config = replace(automatic_language(kind), tokenizer=TokenizerConfig(kind="words"))
    run = Run.create(tmp_path / "run", config)
    prepare_text(run, [text], None, tmp_path / "given", config, 1, Listener())
    taken = run.tokenizers()
    assert taken.joint and taken.target.symbols == (source if side == "source" else target).symbols
    assert any(line.startswith("tokenizer: ") and line.endswith(f"as given {said}") for line in heard)
