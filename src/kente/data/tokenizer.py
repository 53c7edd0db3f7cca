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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import sentencepiece

from kente.config import TokenizerConfig
from kente.data.byte_level import ByteLevel
from kente.data.languages import language_marks, languages_of
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
from kente.data.sentencepieces import SentencePieces
from kente.data.tags import Tagged, bare
from kente.data.wordpiece import WordPiece
from kente.durable import replace_file
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
    "Tagged",
    "Tokenizer",
    "Tokenizers",
    "choose_vocabulary",
    "train_tokenizer",
    "train_tokenizers",
]

Texts = Callable[[], Iterator[tuple[str, ...]]]

FORMAT = 1
LEARNED = ("unigram", "bpe", "characters", "words")
BORROWED = {
    "byte-level": "give the folder of its files, vocab.json and merges.txt, with --tokenizer",
    "wordpiece": "it is BERT's, and comes with an imported model",
    "sentencepiece": "it is Marian's or M2M100's, and comes with an imported model; kinds that are learned are unigram and bpe",
}
"""Kinds that come from elsewhere, and how."""
LONGEST_LINE = (
    250  # characters; sentencepiece leaves out very long lines and takes its time over long ones, so they are cut
)
SAMPLED_LINES = 1_000_000  # a vocabulary is learned from so many lines at most, and from so many characters:
SAMPLED_CHARACTERS = {"unigram": 6_000_000, "bpe": 24_000_000, "words": 200_000_000, "characters": 200_000_000}
# on a million Bible verses twice as much made unigram sentences 0.8 % shorter, and unigram training's memory grows with it
TRAINING_THREADS = 2  # fixed: the sums of unigram training, and so the model, depend on it


@dataclass
class Tokenizers:
    """Source and target side; one and the same object when joint, unless two ways of cutting text share one vocabulary (Marian)."""

    source: Tokenizer
    target: Tokenizer
    joint: bool
    source_marks: tuple[int, ...] = ()
    """What stands before every source: the language, for models of several."""
    target_marks: tuple[int, ...] = ()
    """What every translation begins with; no part of its text."""

    def encode_source(self, text: str) -> list[int]:
        return [*self.source_marks, *self.source.encode(text)]

    def encode_target(self, text: str) -> list[int]:
        return [*self.target_marks, *self.target.encode(text)]

    @property
    def marks(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of source and target."""
        return self.source_marks, self.target_marks

    def speaking(self, source: str, target: str) -> Tokenizers:
        """The same, with the marks of these languages; empty names are no languages."""
        marks = language_marks(self.source, self.target, (source, target))
        return self if marks == self.marks else replace(self, source_marks=marks[0], target_marks=marks[1])

    @property
    def languages(self) -> list[str]:
        """What a model of several languages can be asked for; empty for one that knows one pair."""
        return sorted(languages_of(self.source))

    @property
    def tags(self) -> tuple[str, ...]:
        """Marks that a source may begin with."""
        return self.source.tags if isinstance(self.source, Tagged) else ()

    def with_tags(self, tags: Iterable[str]) -> Tokenizers:
        """The same with these marks too; where both sides share a vocabulary, its marks are shared."""
        new = [tag for tag in tags if tag not in self.tags]
        if not new:
            return self
        source = Tagged(bare(self.source), (*self.tags, *new))
        if not self.joint:
            return replace(self, source=source)
        one = self.target is self.source
        return replace(self, source=source, target=source if one else Tagged(bare(self.target), source.tags))

    @cached_property
    def _files(self) -> dict[str, bytes]:
        one = self.joint and self.source is self.target
        sides = {"joint": self.source} if one else {"source": self.source, "target": self.target}
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
        if self.tags:
            about["tags"] = list(self.tags)
        return {"tokenizer.json": (json.dumps(about, indent=2) + "\n").encode(), **files}

    @property
    def sha256(self) -> str:
        """Over the bytes of every file."""
        return _hash_of(self._files)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self._files.items():
            replace_file(folder / name, data)

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
        sides = [_revive(about, data, folder / name) for name, data in files.items()]
        return cls(sides[0], sides[-1], about["joint"]).with_tags(about.get("tags", ()))


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
        whole = all(names) and len(names) in ((1, 2) if about["joint"] else (2,))
        whole = whole and about["kind"] in (*LEARNED, *BORROWED) and about["normalisation"] in ("nfc", "none")
        whole = whole and all(isinstance(tag, str) and tag for tag in about.get("tags", ()))
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


def _revive(about: dict[str, Any], data: bytes, path: Path) -> Tokenizer:
    kind, normalisation = about["kind"], about["normalisation"]
    try:
        match kind:
            case "unigram" | "bpe":
                return Subwords(kind, data, normalisation)
            case "characters" | "words":
                return Symbols.from_bytes(kind, data, normalisation)
            case "byte-level":
                return ByteLevel.from_bytes(data, normalisation)
            case "wordpiece":
                return WordPiece.from_bytes(data, normalisation)
            case "sentencepiece":
                return SentencePieces.from_bytes(data, normalisation)
    except (ValueError, KeyError, TypeError, RuntimeError) as error:
        raise RunError(f"{path} is not a file of a {kind} tokenizer: {error}") from error
    raise AssertionError(kind)


# --- learning -----------------------------------------------------------------------------------------------------------------


def choose_vocabulary(
    pairs: int, words: int, distinct: int, characters: int = 0, byte_fallback: bool = True, *, joint: bool = False
) -> int:
    """Pieces for a subword vocabulary learned from `words` words of text, when nobody says how many; a `joint` one names those of two languages.

    The cube root of the amount of text. Joint: 8,000 for Multi30k (29,000 captions, 725,000 words), 4,500 for 5,000 short pairs, 31,500 for
    a million Bible verses (docs/speedrun.md has the figures); of one language half as many. Never more than 32,000, nor more than there are
    distinct words to name, nor less than the characters need.
    """
    least = len(SPECIALS) + (256 if byte_fallback else 0) + characters
    wanted = (8000 if joint else 4000) * (max(words, pairs) / 725_000) ** (1 / 3)
    rounded = round(wanted / 500) * 500 if wanted > 1000 else round(wanted / 100) * 100
    return max(min(rounded, 32_000, least + distinct), least + min(least, 2000) // 2)


@dataclass
class _Text:
    """The text one vocabulary is learned from: the sides in `group`, how much there is of it, and the part that is read.

    Distinct words and characters are counted on a part only when there is much text.
    """

    texts: Texts
    group: tuple[int, ...]
    form: Normalisation
    name: str
    pairs: int = 0
    words: int = 0
    length: int = 0  # characters
    distinct_words: int = 0
    distinct_characters: int = 0
    kept: int = 0

    @property
    def what(self) -> str:
        return "text" if self.name == "text" else f"{self.name} text"

    @property
    def units(self) -> str:
        return "lines" if self.name == "text" else "pairs"

    def survey(self, most_characters: int) -> None:
        """Read it all once, and decide how many pairs to learn from."""
        words, characters, stride = set[str](), set[str](), 1
        for pair in self.texts():
            for side in self.group:
                text = pair[side]
                # where a script has no spaces, ten characters count as a word
                self.words += max(text.count(" ") + 1, len(text) // 10) if text else 0
                self.length += len(text)
                if self.pairs % stride == 0:
                    normalised = normalise(text, self.form)
                    words.update(normalised.split(" "))
                    characters.update(normalised)
            self.pairs += 1
            if self.pairs == 50_000 * stride:
                stride *= 4
        self.distinct_words, self.distinct_characters = len(words), len(characters)
        most = min(SAMPLED_LINES // len(self.group), int(self.pairs * most_characters / max(self.length, 1)))
        self.kept = max(1, min(self.pairs, most))

    def __iter__(self) -> Iterator[str]:
        """Normalised lines of the pairs kept, which are evenly spread."""
        for number, pair in enumerate(self.texts()):
            if number * self.kept // self.pairs != (number + 1) * self.kept // self.pairs:
                for side in self.group:
                    if pair[side]:
                        yield normalise(pair[side], self.form)


def train_tokenizers(texts: Texts, config: TokenizerConfig, reporter: Reporter = SILENT) -> Tokenizers:
    """Learn the tokenizers of a corpus. `texts()` starts reading it anew; it is read twice for each vocabulary, and never held."""
    groups = {"source and target": (0, 1)} if config.joint else {"source": (0,), "target": (1,)}
    sides = [
        _learn(_Text(texts, group, config.normalisation, name), config, reporter) for name, group in groups.items()
    ]
    return Tokenizers(sides[0], sides[-1], config.joint)


def train_tokenizer(
    lines: Callable[[], Iterator[str]], config: TokenizerConfig, reporter: Reporter = SILENT
) -> Tokenizers:
    """Learn the tokenizer of one text, which then is that of both sides."""
    text = _Text(lambda: ((line,) for line in lines()), (0,), config.normalisation, "text")
    side = _learn(text, config, reporter)
    return Tokenizers(side, side, joint=True)


def _learn(text: _Text, config: TokenizerConfig, reporter: Reporter) -> Tokenizer:
    if config.kind in BORROWED:
        raise ConfigError(f"tokenizer.kind = {config.kind} is not learned here: {BORROWED[config.kind]}")
    began = time.perf_counter()
    text.survey(SAMPLED_CHARACTERS[config.kind])
    if not text.length:
        raise CorpusError(
            f"no {text.what} to learn a tokenizer from: the corpus holds {text.pairs:,} {text.units} and not one character there"
        )
    tokenizer: Tokenizer
    if config.kind == "characters" or config.kind == "words":
        tokenizer = Symbols(config.kind, _frequent_symbols(text, config), config.normalisation)
    else:
        vocabulary = config.vocabulary or choose_vocabulary(
            text.pairs,
            text.words,
            text.distinct_words,
            text.distinct_characters,
            config.byte_fallback,
            joint=len(text.group) > 1,
        )
        tokenizer = _learn_subwords(text, config, vocabulary, reporter)
    chosen = "" if config.vocabulary else " (chosen from the corpus)"
    part = f", evenly taken from {text.pairs * len(text.group):,}," if text.kept < text.pairs else ""
    reporter.say(
        f"tokenizer ({text.name}): {tokenizer.size:,} {config.kind} pieces{chosen}, "
        f"learned from {text.kept * len(text.group):,} lines{part} in {time.perf_counter() - began:.1f} s"
    )
    return tokenizer


def _frequent_symbols(text: _Text, config: TokenizerConfig) -> list[str]:
    """The most frequent characters or words.

    Where no number is given: every character; at most 32,000 words, and beyond the first thousand only words met twice, so that the model
    meets UNK while it learns.
    """
    words = config.kind == "words"
    counts: Counter[str] = Counter()
    for line in text:
        counts.update(line.split(" ") if words else line)
        if len(counts) > 2_000_000:  # the rare words of a very large corpus would not be chosen
            counts = Counter({symbol: count for symbol, count in counts.items() if count > 1})
    counts.pop("", None)
    always = [""] if words else []  # the word between two spaces
    ranked = sorted(counts, key=lambda symbol: (-counts[symbol], symbol))
    if config.vocabulary:
        room = config.vocabulary - len(SPECIALS) - len(always)
        if room < 1:
            raise ConfigError(
                f"tokenizer.vocabulary ({config.vocabulary}) leaves no room for {config.kind}; set it to 0 to have it chosen"
            )
        ranked = ranked[:room]
    elif words:
        ranked = [word for place, word in enumerate(ranked[:32_000]) if place < 1000 or counts[word] > 1]
    return always + ranked


def _learn_subwords(text: _Text, config: TokenizerConfig, vocabulary: int, reporter: Reporter) -> Subwords:
    """Where not every character fits, the rarest are left to byte fallback."""
    assert config.kind == "unigram" or config.kind == "bpe"
    coverages = (0.9995, 0.998, 0.99, 0.98) if config.byte_fallback else (1.0,)
    least = 0
    for coverage in coverages:
        model = io.BytesIO()
        try:
            _run_sentencepiece(_pack(text), model, config, vocabulary, coverage)
        except RuntimeError as error:
            needed = re.search(r"smaller than required_chars. \d+ vs (\d+)", str(error))
            if needed is None:
                raise CorpusError(
                    f"sentencepiece cannot learn {vocabulary:,} pieces from the {text.what}: {error}"
                ) from error
            least = least or int(needed[1])
            continue
        if coverage < coverages[0]:
            reporter.warn(
                f"tokenizer ({text.name}): {vocabulary:,} pieces cannot hold every character, so the rarest, {100 * (1 - coverage):.1f} % of the "
                f"text, are spelled in bytes; tokenizer.vocabulary = {2 * least} would hold them"
            )
        tokenizer = Subwords(config.kind, model.getvalue(), config.normalisation)
        if tokenizer.size < vocabulary:
            reporter.say(f"tokenizer ({text.name}): the text supports {tokenizer.size:,} pieces, not {vocabulary:,}")
        return tokenizer
    raise ConfigError(
        f"tokenizer.vocabulary ({vocabulary:,}) is too small for the {text.what}, whose characters alone need {least:,} pieces; "
        f"set it to {2 * least:,} or more, or to 0 to have it chosen"
    )


def _pack(lines: Iterable[str]) -> Iterator[str]:
    """Lines as sentencepiece takes them: escaped, in parts of bounded length, each once: it is quadratic in repeated text."""
    seen: set[str] = set()
    for line in lines:
        rest = escape(line)
        while rest:
            end = len(rest)
            if end > LONGEST_LINE:
                space = rest.rfind(" ", 1, LONGEST_LINE)
                end = space if space > 0 else LONGEST_LINE
            part, rest = rest[:end], rest[end:].removeprefix(" ")
            if part not in seen:
                seen.add(part)
                yield part


def _run_sentencepiece(
    lines: Iterator[str], model: io.BytesIO, config: TokenizerConfig, vocabulary: int, coverage: float
) -> None:
    """Learn, with every change sentencepiece would make to the text switched off."""
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
        max_sentence_length=8 * LONGEST_LINE,  # in bytes, and a character has four at most, twice when escaped
        pad_id=PAD,
        unk_id=UNK,
        bos_id=BOS,
        eos_id=EOS,
        unk_surface=UNKNOWN,
        num_threads=TRAINING_THREADS,
        minloglevel=2,
    )
