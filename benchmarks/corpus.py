"""The text everyone is measured on: prepared once, one joint BPE vocabulary, the same ids for every peer.

Kente cleans Multi30k and learns the vocabulary (its tokenizer is a plain sentencepiece model); what is left is written out as ids, as pieces
and as text, so that each peer can be fed in the way it likes best.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.flops import work
from benchmarks.shapes import Shape
from kente.api.corpora import Data
from kente.api.training import prepare_corpus
from kente.data.store import Store
from kente.data.tokenizer import Tokenizers
from kente.errors import CorpusError

FILES = ("train", "val", "test_2016_flickr")
FORMAT = 3
"""Raised when what is written changes, so that older folders are made anew."""


@dataclass(frozen=True)
class Corpus:
    """A prepared corpus on disk."""

    folder: Path
    facts: dict[str, Any]

    @property
    def prepared(self) -> Path:
        """The folder `kente.api.train` takes as `prepared`."""
        return self.folder / "prepared"

    @property
    def pieces(self) -> Path:
        """The sentencepiece model."""
        return self.folder / "pieces.model"

    def text(self, name: str) -> Path:
        """test.source, test.target, validation.source, ..."""
        return self.folder / name

    @property
    def vocabulary(self) -> int:
        return int(self.facts["vocabulary"])

    def flop_per_token(self, shape: Shape) -> float:
        """Training FLOP for each real token, source and target, over the whole corpus (see flops.py)."""
        arrays = np.load(self.folder / "train.npz")
        sources, targets = (np.diff(arrays[f"{side}_offsets"]) + 1 for side in ("source", "target"))
        done = work(shape, self.vocabulary, sources.tolist(), targets.tolist())
        return done.training / float(sources.sum() + targets.sum())


def settings(vocabulary: int) -> list[str]:
    """Kente's settings for the text; a training that shares the prepared corpus must name the same."""
    return ["tokenizer.kind=bpe", f"tokenizer.vocabulary={vocabulary}", "batches.max_length=256"]


def multi30k(data: Path) -> Path:
    """Where the text is, or a clear word when it is not."""
    folder = data / "multi30k" / "tok"
    if not folder.is_dir():
        raise CorpusError(
            f"the benchmark reads Multi30k, lowercased and tokenised, from {folder}, which is not there; put train, val and test_2016_flickr "
            "(.en and .de) there, name another folder with --text, or set KENTE_DATA"
        )
    return folder


def prepare(text: Path, folder: Path, vocabulary: int, languages: tuple[str, str] = ("en", "de")) -> Corpus:
    """The corpus of the files in `text`, from `folder` if it was prepared before from the same bytes."""
    paths = {name: [text / f"{name}.{language}" for language in languages] for name in FILES}
    missing = [str(path) for pair in paths.values() for path in pair if not path.is_file()]
    if missing:
        raise CorpusError(f"the benchmark needs {', '.join(missing)}; name the folder of the text with --text")
    key = _fingerprint([path for pair in paths.values() for path in pair], vocabulary)
    marker = folder / "facts.json"
    if marker.is_file() and (facts := json.loads(marker.read_text()))["key"] == key:
        return Corpus(folder, facts)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    train, validation = (Data(source=paths[name][0], target=paths[name][1]) for name in ("train", "val"))
    prepare_corpus(train, folder / "prepared", validation=validation, settings=settings(vocabulary), threads=2)
    for name, ours in (("val", "validation"), ("test_2016_flickr", "test")):
        for path, side in zip(paths[name], ("source", "target"), strict=True):
            shutil.copyfile(path, folder / f"{ours}.{side}")
    facts = write_for_peers(folder) | {
        "asked_vocabulary": vocabulary,
        "key": key,
        "text": "/".join(text.parts[-2:]),
        "languages": list(languages),
    }
    marker.write_text(json.dumps(facts, indent=1))
    return Corpus(folder, facts)


def _fingerprint(paths: list[Path], vocabulary: int) -> str:
    digest = hashlib.sha256(f"{FORMAT} {vocabulary}".encode())
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def write_for_peers(folder: Path) -> dict[str, Any]:
    """Ids (numpy), pieces (text), vocabulary and the sentencepiece model beside a prepared corpus; what they count to."""
    tokenizers = Tokenizers.load(folder / "prepared" / "tokenizer")
    store = Store.open(folder / "prepared" / "data" / "train", tokenizers.sha256)
    (folder / "pieces.model").write_bytes(tokenizers.source.to_bytes())
    pieces = tokenizers.source.pieces(range(tokenizers.source.size))
    (folder / "vocabulary.txt").write_text("".join(piece + "\n" for piece in pieces), encoding="utf-8")
    arrays = {}
    for side, name in zip(store.sides, ("source", "target"), strict=True):
        arrays[name], arrays[f"{name}_offsets"] = np.array(side.ids), np.array(side.offsets)
        with open(folder / f"train.pieces.{name}", "w", encoding="utf-8") as file:
            for row in range(len(store)):
                file.write(" ".join(pieces[i] for i in side[row].tolist()) + "\n")
        for part in ("validation", "test"):
            if (folder / f"{part}.{name}").is_file():
                lines = (folder / f"{part}.{name}").read_text(encoding="utf-8").split("\n")[:-1]
                cut = (" ".join(pieces[i] for i in tokenizers.source.encode(line)) for line in lines)
                (folder / f"{part}.pieces.{name}").write_text("".join(line + "\n" for line in cut), encoding="utf-8")
    np.savez(folder / "train.npz", allow_pickle=False, **arrays)
    return {
        "pairs": len(store),
        "vocabulary": tokenizers.source.size,
        "source_tokens": int(store.source_lengths.sum()) + len(store),
        "target_tokens": int(store.target_lengths.sum()) + len(store),
    }
