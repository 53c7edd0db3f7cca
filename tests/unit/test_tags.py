"""Marks at the beginning of a source: one piece each, there and nowhere else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kente.config import CleaningConfig, TokenizerConfig
from kente.data.cleaning import IN_VALIDATION, Cleaner
from kente.data.corpus import Pair
from kente.data.splitting import held_out_keys
from kente.data.tags import BACK, SELF, Tagged, found_tags, split_tag, untagged
from kente.data.tokenizer import Tokenizers, train_tokenizers

PAIRS = [(f"the cat number {n} sat on the mat", f"paka namba {n} alikaa mkekani") for n in range(60)]


def learn(kind: str = "unigram", joint: bool = True) -> Tokenizers:
    size = 300 if kind in ("unigram", "bpe") else 0
    return train_tokenizers(lambda: iter(PAIRS), TokenizerConfig(kind=kind, vocabulary=size, joint=joint))


@pytest.mark.parametrize("kind", ["unigram", "bpe", "words", "characters"])
def test_a_tag_is_one_piece_behind_all_others_and_the_rest_is_cut_as_before(kind):
    plain = learn(kind)
    tagged = plain.with_tags([BACK, SELF])
    text = "the cat sat"
    ids = plain.source.encode(text)
    assert tagged.source.size == plain.source.size + 2 and tagged.tags == (BACK, SELF)
    assert tagged.source.encode(text) == ids
    assert tagged.source.encode(f"{BACK} {text}") == [plain.source.size, *ids]
    assert tagged.source.encode_many([f"{SELF} {text}", text]) == [[plain.source.size + 1, *ids], ids]
    assert tagged.source.decode(tagged.source.encode(f"{BACK} {text}")) == text
    assert tagged.source.decode_many([[plain.source.size, *ids], ids, []]) == [text, text, ""]
    assert tagged.source.pieces([plain.source.size, *ids])[0] == BACK
    assert tagged.source.encode_sampled(f"{BACK} {text}", 0.5, np.random.default_rng(1))[0] == plain.source.size


def test_a_tag_elsewhere_in_the_text_is_text():
    tagged = learn().with_tags([BACK])
    for text in (f"the {BACK} cat", BACK, f"{BACK}the cat"):
        assert tagged.source.size - 1 not in tagged.source.encode(text)
        assert tagged.source.decode(tagged.source.encode(text)) == text


@pytest.mark.parametrize("joint", [True, False])
def test_saved_and_loaded_tags_are_still_there(tmp_path: Path, joint):
    tagged = learn(joint=joint).with_tags([BACK])
    tagged.save(tmp_path)
    again = Tokenizers.load(tmp_path, tagged.sha256)
    assert again.tags == (BACK,) and isinstance(again.source, Tagged)
    assert (again.target is again.source) == joint and isinstance(again.target, Tagged) == joint
    assert again.source.encode(f"{BACK} the cat") == tagged.source.encode(f"{BACK} the cat")
    assert tagged.sha256 != learn(joint=joint).sha256


def test_tags_are_found_and_taken_off():
    assert split_tag("<bt> a b") == ("<bt>", "a b") and split_tag("<x> a b") == ("", "<x> a b")
    assert untagged("<st> a") == "a" and untagged("a <st>") == "a <st>"
    assert found_tags(["a", "<st> b", "<bt> c", "<x> d"]) == (BACK, SELF)
    assert found_tags(["<2tw> a"], {"<2tw>"}) == ("<2tw>",) and found_tags(["a", "b"]) == ()


def test_a_tagged_sentence_is_still_known_to_be_held_out():
    cleaner = Cleaner(CleaningConfig(), exclude=held_out_keys([Pair("The cat sat.", "Paka alikaa.", 1)]))
    kept = list(cleaner.clean([Pair("<st> the cat sat.", "paka alikaa", 1), Pair("<st> a dog", "mbwa", 2)]))
    assert [pair.line for pair in kept] == [2] and cleaner.report.dropped == {IN_VALIDATION: 1}
