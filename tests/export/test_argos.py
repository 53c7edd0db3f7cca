"""Packages for Argos Translate: what lies in them, and that each part does what the run does; all of it where Argos is installed."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import unicodedata
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch

from kente.config import RecurrentConfig, TokenizerConfig, TransformerConfig
from kente.decode.library import ctranslate2
from kente.errors import UsageError
from kente.export.argos import export
from kente.export.languages import languages_of
from kente.export.sentence_splitter import UNITS, WINDOW, splitter
from kente.export.sentencepiece_file import for_both_sides

EOS = 3
TINY = TransformerConfig(encoder_layers=1, decoder_layers=2, width=24, feedforward=40, heads=4, max_length=64)
APART = replace(TINY, norm_place="pre", norm="rms", activation="swiglu", tie="target")
MODELS = {
    "joint unigram": (TINY, TokenizerConfig(vocabulary=380)),
    "unigram apart": (APART, TokenizerConfig(vocabulary=360, joint=False)),
    "bpe apart": (APART, TokenizerConfig(kind="bpe", vocabulary=360, joint=False)),
}


@pytest.fixture(scope="module")
def package(make: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Any, Path]]:
    """(the run, the package unpacked); its file lies beside it."""
    folders: dict[str, tuple[Any, Path]] = {}

    def of(name: str) -> tuple[Any, Path]:
        if name not in folders:
            made = make(*MODELS[name])
            out = export(made.path, tmp_path_factory.mktemp("argos") / "out", names=("English", "French"))
            (file,) = out.iterdir()
            assert file.name == "translate-en_fr.argosmodel"
            with zipfile.ZipFile(file) as archive:
                for entry in archive.namelist():
                    archive.extract(entry, out.parent)
            folders[name] = made, out.parent / "en_fr"
        return folders[name]

    return of


def test_a_package_says_which_languages_it_is_for(package: Any) -> None:
    _, folder = package("joint unigram")
    about = json.loads((folder / "metadata.json").read_text())
    wanted = {"from_code": "en", "from_name": "English", "to_code": "fr", "to_name": "French"}
    assert wanted.items() <= about.items()
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert {"sentencepiece.model", "minisbd/kente.onnx", "model/model.bin", "metadata.json"} <= files


@pytest.mark.parametrize("name", MODELS)
def test_its_sentencepiece_model_cuts_the_source_and_reads_the_target(
    name: str, package: Any, lines: list[str]
) -> None:
    made, folder = package(name)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    source, target = made.tokenizers.source, made.tokenizers.target
    for line in lines:
        text = " ".join(line.split())
        if "\u2581" in text:
            continue  # plain sentencepiece takes it for a space
        assert processor.encode(text, out_type=str) == source.pieces(source.encode(text)), line
        answer = target.encode(unicodedata.normalize("NFC", text))
        assert processor.decode_pieces(target.pieces(answer)) == target.decode(answer)


@pytest.mark.parametrize("name", MODELS)
def test_its_model_gives_the_log_probabilities_of_the_run(name: str, package: Any, lines: list[str]) -> None:
    made, folder = package(name)
    translator = ctranslate2().Translator(str(folder / "model"), device="cpu", intra_threads=1)
    source, target = made.tokenizers.source, made.tokenizers.target
    for line in lines[:4]:
        ids, answer = made.source_ids(line), target.encode("le café voit")
        found = translator.score_batch([source.pieces(ids)], [target.pieces(answer)])[0].log_probs
        places = torch.tensor([*answer, EOS])[:, None]
        wanted = made.log_probabilities(ids, answer).gather(1, places)[:, 0]
        assert torch.allclose(torch.tensor(found), wanted, atol=1e-4)


def test_int8_makes_a_smaller_package(make: Callable[..., Any], package: Any, tmp_path: Path) -> None:
    made = make(*MODELS["joint unigram"])
    out = export(made.path, tmp_path / "int8", "int8", languages=("en", "tw"))
    with zipfile.ZipFile(out / "translate-en_tw.argosmodel") as archive:
        small = archive.getinfo("en_tw/model/model.bin").file_size
    assert small < (package("joint unigram")[1] / "model" / "model.bin").stat().st_size


def test_the_same_run_gives_the_same_file(make: Callable[..., Any], tmp_path: Path) -> None:
    run = make(*MODELS["joint unigram"]).path
    one, other = (next(export(run, tmp_path / name).iterdir()).read_bytes() for name in ("one", "other"))
    assert one == other


@pytest.mark.parametrize("kind", ["words", "characters"])
def test_tokens_that_sentencepiece_does_not_know_are_refused(
    kind: str, make: Callable[..., Any], tmp_path: Path
) -> None:
    run = make(TINY, TokenizerConfig(kind=kind)).path
    with pytest.raises(
        UsageError, match=f"to Argos: it cuts text with sentencepiece, and this run's tokens are {kind}"
    ):
        export(run, tmp_path / "out")


def test_models_that_are_no_transformers_are_refused(make: Callable[..., Any], tmp_path: Path) -> None:
    run = make(RecurrentConfig(width=12, embedding=10)).path
    with pytest.raises(UsageError, match="to Argos: it carries Transformers, and this is a recurrent model"):
        export(run, tmp_path / "out")


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        ({"source": "data/train.en", "target": "data/train.tw.gz"}, ("en", "tw")),
        ({"pairs": "corpus.jsonl", "fields": ["sw", "en"]}, ("sw", "en")),
        ({"source": "a/train.zh-Hant", "target": "a/train.pt-BR"}, ("zh-Hant", "pt-BR")),
        ({"source": "train.src", "target": "train.tgt"}, None),
        ({"source": "one.txt", "target": "other.txt"}, None),
        ({"pairs": "corpus.tsv", "fields": None}, None),
        ({"source": "train.en", "target": "train.en"}, None),
    ],
)
def test_languages_are_what_file_names_end_with(data: Any, wanted: tuple[str, str] | None, tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text(json.dumps({"data": data}))
    if wanted is None:
        with pytest.raises(UsageError, match="which languages does"):
            languages_of(tmp_path, None)
    else:
        assert languages_of(tmp_path, None) == wanted
    assert languages_of(tmp_path, ("ha", "yo")) == ("ha", "yo")
    with pytest.raises(UsageError, match="'English' is not a language code"):
        languages_of(tmp_path, ("English", "yo"))


def test_letters_are_composed_however_their_marks_come(make: Callable[..., Any]) -> None:
    tokenizers = make(*MODELS["joint unigram"]).tokenizers
    processor = sentencepiece.SentencePieceProcessor(model_proto=for_both_sides(tokenizers))
    composed = "café ẹ̀kọ́ naïve éàü"
    wanted = tokenizers.source.encode(composed)
    for form in ("NFC", "NFD"):
        assert processor.encode(unicodedata.normalize(form, composed)) == wanted


# ---------------------------------------------------------------- the splitter of sentences


def split(model: Any, text: str) -> list[str]:
    """What MiniSBD does with a model's answers, in a few lines."""
    config, vocabulary = json.loads(model.metadata["config"]), json.loads(model.metadata["vocab"])
    lexicon, window = set(json.loads(model.metadata["lexicon"])), config["num_dict_feat"]
    units = np.array([[vocabulary["_unit2id"].get(letter, UNITS.index("<UNK>")) for letter in text]])
    assert config["feat_funcs"] == ["capitalized", "start_of_para"]
    features = np.zeros((1, len(text), 2 + 2 * window), np.float32)
    features[0, 0, 1] = 1
    for place, letter in enumerate(text):
        features[0, place, 0] = letter.isupper()
        for back in range(1, min(window, place) + 1):
            word = text[place - back : place].lower() + letter
            features[0, place, 1 + window + back] = word in lexicon
    ends = model.run(units=units, features=features)["output"].argmax(-1)[0] == 2
    places = [0, *(np.flatnonzero(ends[:-1]) + 1), len(text)]
    return [text[begin:end].strip() for begin, end in itertools.pairwise(places)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["One sentence."],
        ["It rains.", "We stay in!", "Do we?", "Yes."],
        ['He said: "Go."', '"No!" she said.', "(Really.)", "«Bien.»", "End"],
        ["Mr. Smith met Dr. J. Brown at 3.30 p.m. sharp.", "He left."],
        ["He came first.", "She was the best.", "Dr. Who?"],
        ["Wait... What is it now, etc. and so on?", "Nothing."],
        ["これは本です。", "そうですか？", "はい。"],
        ["मेरा नाम राम है।", "तुम?"],
        ["x"],
    ],
)
def test_sentences_end_where_a_mark_a_space_and_a_beginning_meet(
    sentences: list[str], onnx_in_numpy: SimpleNamespace
) -> None:
    gap = "" if sentences[0][0] > "\u3000" else " "
    text = gap.join(sentences)
    model = onnx_in_numpy.Model(splitter("xx", set(text)))
    assert split(model, text) == sentences


def test_no_text_is_too_short_to_be_looked_at(onnx_in_numpy: SimpleNamespace) -> None:
    model = onnx_in_numpy.Model(splitter("en", "ab"))
    for length in range(1, 2 * WINDOW):
        assert split(model, "a" * length) == ["a" * length]


# ---------------------------------------------------------------- with Argos Translate itself

TRANSLATE = """
import json, sys
from argostranslate import package, translate
package.install_from_path(sys.argv[1])
translation = translate.get_translation_from_codes("en", "fr")
print(json.dumps([translation.translate(line) for line in json.loads(sys.argv[2])]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["joint unigram", "bpe apart"])
def test_argos_installs_and_translates_as_the_run_does(
    name: str, package: Any, lines: list[str], tmp_path: Path
) -> None:
    pytest.importorskip("argostranslate", reason="argostranslate is not installed (benchmarks/peers/argos.txt)")
    made, folder = package(name)
    # blanks are not joined there, and a sentence ends at 。 here and there
    asked = [line for line in lines if line == " ".join(line.split()) and not set("\u2581\uf8f0。") & set(line)]
    here = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), "ARGOS_BEAM_SIZE": "1"}
    file = folder.parent / "out" / "translate-en_fr.argosmodel"
    command = [sys.executable, "-c", TRANSLATE, str(file), json.dumps(asked)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, env={**os.environ, **here})
    assert done.returncode == 0, done.stderr
    target = made.tokenizers.target
    wanted = [target.decode(made.greedy(made.source_ids(line), 60)) for line in asked]
    found = json.loads(done.stdout.splitlines()[-1])
    for line, one, other in zip(asked, found, wanted, strict=True):
        assert one[:30] == other.replace("_", " ")[:30], line
