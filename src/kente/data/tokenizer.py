"""The two tokenizers of a run: learned from a corpus, kept in a folder, bound by hash.

A folder holds `tokenizer.json`, which says what was done to the text, and one file (joint) or two of pieces.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import sentencepiece

from kente.config import TokenizerConfig
from kente.data.pieces import (
    BOS,
    EOS,
    PAD,
    SPECIALS,
    UNK,
    UNKNOWN,
    Normalisation,
    Subwords,
    Symbols,
    Tokenizer,
    escape,
    normalise,
)
from kente.errors import ConfigError, CorpusError, RunError
from kente.reporting import SILENT, Reporter

__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "SPECIALS",
    "UNK",
    "Subwords",
    "Symbols",
    "Tokenizer",
    "Tokenizers",
    "choose_vocabulary",
    "train_tokenizers",
]

Texts = Callable[[], Iterator[tuple[str, str]]]

FORMAT = 1
SAMPLED_LINES = 1_000_000  # lines a vocabulary is learned from at most
LONGEST_LINE = 4000  # bytes; sentencepiece leaves out lines above its limit, so longer ones are cut at spaces
TRAINING_THREADS = 2  # fixed: the sums of unigram training, and so the model, depend on it


@dataclass
class Tokenizers:
    """Source and target side; one and the same object when joint."""

    source: Tokenizer
    target: Tokenizer
    joint: bool

    def encode_source(self, text: str) -> list[int]:
        return self.source.encode(text)

    def encode_target(self, text: str) -> list[int]:
        return self.target.encode(text)

    @cached_property
    def _files(self) -> dict[str, bytes]:
        sides = {"joint": self.source} if self.joint else {"source": self.source, "target": self.target}
        files = {name + side.suffix: side.to_bytes() for name, side in sides.items()}
        about = {
            "format": FORMAT,
            "kind": self.source.kind,
            "joint": self.joint,
            "normalisation": self.source.normalisation,
            "sizes": {"source": self.source.size, "target": self.target.size},
            "specials": dict(zip(SPECIALS, (PAD, UNK, BOS, EOS), strict=True)),
            "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        }
        return {"tokenizer.json": (json.dumps(about, indent=2) + "\n").encode(), **files}

    @property
    def sha256(self) -> str:
        """Over the bytes of every file."""
        return _hash_of(self._files)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self._files.items():
            (folder / name).write_bytes(data)

    @classmethod
    def load(cls, folder: Path, expected: str | None = None) -> Tokenizers:
        """Read and verify. `expected` is the hash that whatever will be used with these tokenizers was made with."""
        about_bytes = _read(folder / "tokenizer.json")
        about = _parse(about_bytes, folder / "tokenizer.json")
        files = {name: _read(folder / name) for name in about["files"]}
        for name, data in files.items():
            seen, wanted = hashlib.sha256(data).hexdigest(), about["files"][name]
            if seen != wanted:
                raise RunError(
                    f"{folder / name} has changed since it was written: sha256 {_short(seen)}, but tokenizer.json says {_short(wanted)}; "
                    "put the original file back or train again"
                )
        seen = _hash_of({"tokenizer.json": about_bytes, **files})
        if expected is not None and seen != expected:
            raise RunError(
                f"the tokenizer in {folder} (sha256 {_short(seen)}) is not the one the model was trained with ({_short(expected)}); "
                "their ids mean different pieces: use the tokenizer folder of the run that made the model"
            )
        sides = [_revive(about["kind"], data, about["normalisation"]) for data in files.values()]
        return cls(sides[0], sides[-1], about["joint"])


def _hash_of(files: dict[str, bytes]) -> str:
    whole = hashlib.sha256()
    for name, data in sorted(files.items()):
        whole.update(f"{name} {len(data)}\n".encode() + data)
    return whole.hexdigest()


def _short(sha256: str) -> str:
    return sha256[:12]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RunError(
            f"cannot read {path}: {error.strerror}; a tokenizer folder holds tokenizer.json and the files it names"
        ) from error


def _parse(data: bytes, path: Path) -> dict[str, Any]:
    try:
        about = json.loads(data)
        version = about["format"]
        names = [Path(name).name == name for name in about["files"]]
        whole = all(names) and len(names) == (1 if about["joint"] else 2)
        whole = (
            whole
            and about["kind"] in ("unigram", "bpe", "characters", "words")
            and about["normalisation"] in ("nfc", "none")
        )
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"{path} is not a tokenizer description: {error!r}; restore it from the run's copy or train again"
        ) from error
    if version != FORMAT:
        raise RunError(
            f"{path} has format {version}, this version of kente reads format {FORMAT}; use the kente that wrote it"
        )
    if not whole:
        raise RunError(
            f"{path} does not describe a tokenizer of kente: kind {about['kind']!r}, files {list(about['files'])}"
        )
    return dict(about)


def _revive(kind: str, data: bytes, normalisation: Normalisation) -> Tokenizer:
    match kind:
        case "unigram" | "bpe":
            return Subwords(kind, data, normalisation)
        case "characters" | "words":
            return Symbols.from_bytes(kind, data, normalisation)
    raise AssertionError(kind)


# --- learning -----------------------------------------------------------------------------------------------------------------


def choose_vocabulary(pairs: int, words: int, distinct: int, characters: int = 0, byte_fallback: bool = True) -> int:
    """Pieces for a subword vocabulary learned from `words` words of text (both sides, if joint), when nobody says.

    The cube root of the amount of text: 4,000 for Multi30k (29,000 captions, 725,000 words), 2,000 for 5,000 short pairs, 16,000 for a
    million Bible verses. Small vocabularies are what small corpora want (Sennrich and Zhang, 2019). Never more than 32,000, nor more
    than there are distinct words to name, nor less than the characters need.
    """
    least = len(SPECIALS) + (256 if byte_fallback else 0) + characters
    wanted = 4000 * (max(words, pairs) / 725_000) ** (1 / 3)
    rounded = round(wanted / 500) * 500 if wanted > 1000 else round(wanted / 100) * 100
    return max(min(rounded, 32_000, least + distinct), least + min(least, 2000) // 2)


@dataclass
class _Amount:
    """How much text there is; distinct words and characters are counted on a part of it when it is large."""

    pairs: int
    words: list[int]  # of each side
    distinct: list[set[str]]
    characters: list[set[str]]

    @classmethod
    def of(cls, texts: Texts, form: Normalisation) -> _Amount:
        amount = cls(0, [0, 0], [set(), set()], [set(), set()])
        stride = 1
        for pair in texts():
            looked_at = amount.pairs % stride == 0
            for side, text in enumerate(pair):
                # scripts without spaces: five characters are about as much as one word
                amount.words[side] += max(text.count(" ") + 1, len(text) // 10) if text else 0
                if looked_at:
                    text = normalise(text, form)
                    amount.distinct[side].update(text.split(" "))
                    amount.characters[side].update(text)
            amount.pairs += 1
            if amount.pairs == 100_000 * stride:
                stride *= 4
        return amount

    def vocabulary(self, sides: tuple[int, ...], byte_fallback: bool) -> int:
        words = sum(self.words[side] for side in sides)
        distinct = len(set().union(*(self.distinct[side] for side in sides)))
        characters = len(set().union(*(self.characters[side] for side in sides)))
        return choose_vocabulary(self.pairs, words, distinct, characters, byte_fallback)


def train_tokenizers(texts: Texts, config: TokenizerConfig, reporter: Reporter = SILENT) -> Tokenizers:
    """Learn the tokenizers of a corpus. `texts()` starts reading it anew: once to see how much there is, then once for each vocabulary."""
    amount = _Amount.of(texts, config.normalisation)
    if not any(amount.words):
        raise CorpusError(
            f"no text to learn a tokenizer from: the corpus holds {amount.pairs:,} pairs and not one word"
        )
    groups: tuple[tuple[int, ...], ...] = ((0, 1),) if config.joint else ((0,), (1,))
    sides = [_learn(texts, config, amount, group, reporter) for group in groups]
    return Tokenizers(sides[0], sides[-1], config.joint)


def _learn(
    texts: Texts, config: TokenizerConfig, amount: _Amount, group: tuple[int, ...], reporter: Reporter
) -> Tokenizer:
    """One vocabulary for the sides in `group`."""
    began = time.perf_counter()
    name = {(0, 1): "source and target", (0,): "source", (1,): "target"}[group]
    kept = min(amount.pairs, SAMPLED_LINES // len(group))
    lines = _lines(texts, group, amount.pairs, kept, config.normalisation)
    chosen = config.vocabulary == 0
    tokenizer: Tokenizer
    if config.kind == "characters" or config.kind == "words":
        tokenizer = _learn_symbols(config, lines)
    else:
        vocabulary = config.vocabulary or amount.vocabulary(group, config.byte_fallback)
        tokenizer = _learn_subwords(texts, config, vocabulary, name, amount, kept, group, reporter)
    reporter.say(
        f"tokenizer ({name}): {tokenizer.size:,} {config.kind} pieces{' (chosen from the corpus)' if chosen else ''}, learned from {kept * len(group):,} lines"
        + (f", evenly taken out of {amount.pairs * len(group):,}," if kept < amount.pairs else "")
        + f" in {time.perf_counter() - began:.1f} s"
    )
    return tokenizer


def _lines(texts: Texts, group: tuple[int, ...], pairs: int, kept: int, form: Normalisation) -> Iterator[str]:
    """Normalised lines of the sides in `group`, from `kept` of the `pairs`, evenly spread."""
    for number, pair in enumerate(texts()):
        if number * kept // pairs != (number + 1) * kept // pairs:
            for side in group:
                if pair[side]:
                    yield normalise(pair[side], form)


def _learn_symbols(config: TokenizerConfig, lines: Iterator[str]) -> Symbols:
    """The most frequent characters or words.

    Where no number is given: every character, and at most 32,000 words, of which (beyond the first thousand) each stands in the corpus twice,
    so that the model meets UNK while it learns.
    """
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split(" ") if config.kind == "words" else line)
        if len(counts) > 5_000_000:  # rare words of a very large corpus: they would not be chosen
            counts = Counter({symbol: count for symbol, count in counts.items() if count > 1})
    counts.pop("", None)
    ranked = sorted(counts, key=lambda symbol: (-counts[symbol], symbol))
    always = [""] if config.kind == "words" else []  # the empty word between two spaces
    if config.vocabulary:
        room = config.vocabulary - len(SPECIALS) - len(always)
        if room < 1:
            raise ConfigError(
                f"tokenizer.vocabulary ({config.vocabulary}) leaves no room for {config.kind}; use 0 to let kente choose"
            )
        ranked = ranked[:room]
    elif config.kind == "words":
        ranked = [word for place, word in enumerate(ranked[:32_000]) if place < 1000 or counts[word] > 1]
    assert config.kind == "words" or config.kind == "characters"
    return Symbols(config.kind, always + ranked, config.normalisation)


def _pack(lines: Iterator[str]) -> Iterator[str]:
    """Lines as sentencepiece takes them: escaped, none beyond its limit."""
    for line in lines:
        line = escape(line)
        if len(line) <= LONGEST_LINE // 4:  # a character is four bytes at most
            yield line
            continue
        part: list[str] = []
        room = LONGEST_LINE // 4
        for word in line.split(" "):
            for start in range(0, len(word) or 1, LONGEST_LINE // 4):
                chunk = word[start : start + LONGEST_LINE // 4]
                if len(chunk) + 1 > room and part:
                    yield " ".join(part)
                    part, room = [], LONGEST_LINE // 4
                part.append(chunk)
                room -= len(chunk) + 1
        yield " ".join(part)


def _learn_subwords(
    texts: Texts,
    config: TokenizerConfig,
    vocabulary: int,
    name: str,
    amount: _Amount,
    kept: int,
    group: tuple[int, ...],
    reporter: Reporter,
) -> Subwords:
    """sentencepiece, told to change nothing in the text. Rarer characters are left to byte fallback when they do not all fit."""
    assert config.kind == "unigram" or config.kind == "bpe"
    coverages = (0.9995, 0.998, 0.99, 0.97, 0.9) if config.byte_fallback else (1.0,)
    for coverage in coverages:
        lines = _pack(_lines(texts, group, amount.pairs, kept, config.normalisation))
        model = io.BytesIO()
        try:
            _run_sentencepiece(lines, model, config, vocabulary, coverage)
        except RuntimeError as error:
            needed = re.search(r"smaller than required_chars. \d+ vs (\d+)", str(error))
            if needed is None:
                raise CorpusError(
                    f"sentencepiece cannot learn a vocabulary of {vocabulary:,} pieces from the {name} text: {error}"
                ) from error
            continue
        if coverage < coverages[0]:
            reporter.warn(
                f"tokenizer ({name}): {vocabulary:,} pieces cannot hold every character, so the rarest {(1 - coverage) * 100:.1f} % of the text "
                "is spelled in bytes; a larger tokenizer.vocabulary would hold them"
            )
        tokenizer = Subwords(config.kind, model.getvalue(), config.normalisation)
        if tokenizer.size < vocabulary:
            reporter.say(f"tokenizer ({name}): the text supports {tokenizer.size:,} pieces, not {vocabulary:,}")
        return tokenizer
    least = int(needed[1]) if needed else 0
    raise ConfigError(
        f"tokenizer.vocabulary ({vocabulary:,}) is too small for the {name} text, whose characters alone need {least:,} pieces; "
        f"set tokenizer.vocabulary to {2 * least:,} or more, or to 0 to have it chosen"
    )


def _run_sentencepiece(
    lines: Iterator[str], model: io.BytesIO, config: TokenizerConfig, vocabulary: int, coverage: float
) -> None:
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines,
        model_writer=model,
        model_type=config.kind,
        vocab_size=vocabulary,
        hard_vocab_limit=False,  # a text that supports fewer pieces gets fewer
        character_coverage=coverage,
        byte_fallback=config.byte_fallback,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        max_sentence_length=4 * LONGEST_LINE,
        pad_id=PAD,
        unk_id=UNK,
        bos_id=BOS,
        eos_id=EOS,
        unk_surface=UNKNOWN,
        num_threads=TRAINING_THREADS,
        minloglevel=2,
    )
