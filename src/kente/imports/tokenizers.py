"""Their tokenizers, from their files: what text is cut with, and which rows of the model the pieces are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kente.data.byte_level import END_OF_TEXT, ByteLevel
from kente.data.sentencepieces import LANGUAGE, SentencePieces
from kente.data.tokenizer import BOS, EOS, PAD, UNK, Tokenizer, Tokenizers
from kente.data.wordpiece import MASK, WordPiece
from kente.errors import RunError, UsageError
from kente.imports.folder import CONFIG, read_json
from kente.imports.links import Vocabulary
from kente.imports.theirs import Settings

LANGUAGES = {
    "m2m100": "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy id "
    "ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so "
    "sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu",
    "wmt21": "en ha is ja cs ru zh de",
}
"""M2M100's languages in the order of their marks, which its files list in any order or not at all."""


@dataclass(frozen=True)
class Read:
    """Tokenizers, and the rows that their ids are in the model."""

    tokenizers: Tokenizers
    source: Vocabulary
    target: Vocabulary


class Files:
    """The small files of a tokenizer: what its marks are called, what else it was told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = read_json(folder / "tokenizer_config.json")
        self.names = read_json(folder / "special_tokens_map.json")
        self.whole = read_json(folder / "tokenizer.json")
        self.added = read_json(folder / "added_tokens.json")
        if "auto_map" in self.config:
            raise UsageError(
                f"{folder / 'tokenizer_config.json'} names code that comes with the tokenizer (auto_map); Kente runs no code but its own"
            )

    def require_class(self, *known: str) -> None:
        """Rules for cutting text go by the name of a class; one that Kente does not know cuts otherwise."""
        name = self.config.get("tokenizer_class") or read_json(self.folder / CONFIG).get("tokenizer_class")
        if name is not None and str(name).removesuffix("Fast") not in known:
            raise UsageError(
                f"{self.folder}: its text is cut by {name}; of this layout Kente knows {' and '.join(known)}"
            )

    def mark(self, name: str, default: str) -> str:
        """How a mark is written."""
        value = self.config.get(f"{name}_token") or self.names.get(f"{name}_token") or default
        return str(value["content"] if isinstance(value, dict) else value)

    def listed(self) -> list[str]:
        """Further marks, in their order."""
        for names in (self.config, self.names):
            for key in ("extra_special_tokens", "additional_special_tokens"):
                if isinstance(names.get(key), list) and names[key]:
                    return [str(mark["content"] if isinstance(mark, dict) else mark) for mark in names[key]]
        return []

    def vocabulary(self, name: str) -> dict[str, int]:
        """piece -> id of a JSON file."""
        path = self.folder / name
        found = read_json(path)
        if not found:
            raise UsageError(f"{path} is missing: it says which id each piece has")
        return _numbers(found, path)

    def bytes(self, name: str) -> bytes:
        path = self.folder / name
        if not path.is_file():
            raise UsageError(f"{path} is missing: the sentencepiece model that cuts text")
        return path.read_bytes()

    def model(self, kind: str) -> dict[str, Any] | None:
        """The model inside tokenizer.json, if there is one; another kind than the layout has is refused."""
        if not self.whole:
            return None
        model = self.whole.get("model") or {}
        if model.get("type", kind) != kind:
            raise UsageError(f"{self.folder / 'tokenizer.json'} is of kind {model.get('type')}; the layout has {kind}")
        return dict(model)

    def added_tokens(self) -> dict[str, int]:
        """Pieces beside the vocabulary."""
        inside = {token["content"]: token["id"] for token in self.whole.get("added_tokens") or ()}
        decoded = self.config.get("added_tokens_decoder") or {}
        told = {str(token["content"]): int(number) for number, token in decoded.items()}
        return {**inside, **told, **_numbers(self.added, self.folder / "added_tokens.json")}


def _numbers(found: Mapping[str, Any], path: Path) -> dict[str, int]:
    if not all(isinstance(number, int) and number >= 0 for number in found.values()):
        raise UsageError(f"{path} should hold pieces and their ids")
    return dict(found)


def named_rows(pieces: Mapping[str, int], rows: int, where: Path) -> list[str]:
    """What each row of the model is called; rows that no file names get a name that no text has."""
    highest = max(pieces.values(), default=-1)
    if highest >= rows:
        raise UsageError(f"the tokenizer in {where} has an id {highest:,}, but the model has {rows:,} words")
    names = [f"<row {number}>" for number in range(rows)]
    for piece, number in pieces.items():
        names[number] = piece
    return names


def _id(pieces: Mapping[str, int], mark: str, where: Path) -> int:
    if mark not in pieces:
        raise UsageError(f"the tokenizer in {where} has no {mark}, which the layout needs")
    return pieces[mark]


def _joint(tokenizer: Tokenizer, vocabulary: Vocabulary) -> Read:
    return Read(Tokenizers(tokenizer, tokenizer, joint=True), vocabulary, vocabulary)


# ---------------------------------------------------------------- BERT


def read_wordpiece(folder: Path, rows: int) -> Read:
    """tokenizer.json, or vocab.txt with tokenizer_config.json beside it."""
    files = Files(folder)
    model = files.model("WordPiece")
    if model is not None:
        pieces = {**_numbers(model.get("vocab") or {}, folder / "tokenizer.json"), **files.added_tokens()}
        how = _bert_normaliser(files)
        if model.get("continuing_subword_prefix", "##") != "##":
            raise UsageError(f"{folder / 'tokenizer.json'}: pieces that carry on a word should begin with ##")
    elif (folder / "vocab.txt").is_file():
        files.require_class(*WORDPIECE)
        _require_bert_cutting(files)
        lines = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
        pieces = {line.removesuffix("\r"): number for number, line in enumerate(lines) if line} | files.added_tokens()
        how = {
            "lowercase": files.config.get("do_lower_case", True),
            "strip_accents": files.config.get("strip_accents"),
            "split_ideographs": files.config.get("tokenize_chinese_chars", True),
        }
    else:
        raise UsageError(f"{folder} has no tokenizer: neither tokenizer.json nor vocab.txt")
    defaults = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]"}
    marks = tuple(_id(pieces, files.mark(name, written), folder) for name, written in defaults.items())
    vocabulary = Vocabulary(marks, (), rows)
    names = named_rows(pieces, rows, folder)
    if (mask := files.mark("mask", MASK)) in pieces:
        names[pieces[mask]] = MASK
    return _joint(WordPiece([names[number] for number in vocabulary.order[4:]], **how), vocabulary)


WORDPIECE = ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "MobileBertTokenizer")
"""Classes that cut text as BERT's does."""
BERT_CUTTING = {"do_basic_tokenize": True, "word_tokenizer_type": "basic", "subword_tokenizer_type": "wordpiece"}
"""Settings, and the only value of each that Kente has rules for."""


def _require_bert_cutting(files: Files) -> None:
    for name, usual in BERT_CUTTING.items():
        if files.config.get(name, usual) not in (usual, None):
            raise UsageError(
                f"{files.folder}: its text is cut with {name} = {files.config[name]!r}; Kente knows {usual!r}"
            )


def _bert_normaliser(files: Files) -> dict[str, Any]:
    normaliser = files.whole.get("normalizer") or {}
    cutter = files.whole.get("pre_tokenizer") or {}
    if normaliser.get("type") != "BertNormalizer" or cutter.get("type") != "BertPreTokenizer":
        seen = f"{normaliser.get('type')} and {cutter.get('type')}"
        raise UsageError(
            f"{files.folder / 'tokenizer.json'} prepares text by {seen}; BERT's is BertNormalizer and BertPreTokenizer"
        )
    return {
        "lowercase": normaliser.get("lowercase", True),
        "strip_accents": normaliser.get("strip_accents"),
        "split_ideographs": normaliser.get("handle_chinese_chars", True),
    }


# ---------------------------------------------------------------- GPT-2


def read_byte_level(folder: Path, rows: int) -> Read:
    """tokenizer.json, or vocab.json and merges.txt. The one mark is all of ours: BOS owns its row."""
    files = Files(folder)
    model = files.model("BPE")
    if model is not None:
        own = _numbers(model.get("vocab") or {}, folder / "tokenizer.json")
        merges = [line.split(" ", 1) if isinstance(line, str) else line for line in model.get("merges") or ()]
        _require_byte_level(files)
    else:
        files.require_class("GPT2Tokenizer")
        own = files.vocabulary("vocab.json")
        path = folder / "merges.txt"
        if not path.is_file():
            raise UsageError(f"{path} is missing: it says which pieces grow together")
        lines = path.read_text(encoding="utf-8").split("\n")
        merges = [line.split(" ", 1) for line in lines if line.strip() and not line.startswith("#version")]
    if files.config.get("add_prefix_space"):
        raise UsageError(f"{folder}: the tokenizer puts a space before every text (add_prefix_space); GPT-2's does not")
    added = files.added_tokens()
    pieces = {**own, **added}
    mark = files.mark("eos", END_OF_TEXT)
    if (begin := files.mark("bos", mark)) != mark:
        raise UsageError(f"{folder}: texts begin with {begin} and end with {mark}; GPT-2's begin and end with one mark")
    end = _id(pieces, mark, folder)
    vocabulary = Vocabulary((end,) * 4, (PAD, UNK, EOS), rows)
    names = named_rows(pieces, rows, folder)
    named = {names[number]: place for place, number in enumerate(vocabulary.order[4:])}
    marks = [name for name in named if name in added or name not in pieces]
    try:
        tokenizer = ByteLevel(named, [(str(one), str(two)) for one, two in merges], marks=marks)
    except (RunError, ValueError) as error:
        raise UsageError(f"{folder}: {error}") from None
    return _joint(tokenizer, vocabulary)


def _require_byte_level(files: Files) -> None:
    cutter = files.whole.get("pre_tokenizer") or {}
    if cutter.get("type") != "ByteLevel" or cutter.get("add_prefix_space") or not cutter.get("use_regex", True):
        raise UsageError(
            f"{files.folder / 'tokenizer.json'} cuts text by {cutter.get('type')}; GPT-2's is ByteLevel, without a space before the text"
        )
    if changed := files.whole.get("normalizer"):
        raise UsageError(
            f"{files.folder / 'tokenizer.json'} changes text by {changed.get('type')} before it is cut; GPT-2's does not"
        )
    if (files.whole.get("model") or {}).get("ignore_merges"):
        raise UsageError(
            f"{files.folder / 'tokenizer.json'} takes whole pieces before it merges (ignore_merges); GPT-2's does not"
        )


# ---------------------------------------------------------------- Marian and M2M100


def read_marian(folder: Path, rows: Sequence[int], settings: Settings) -> Read:
    """source.spm and target.spm cut text; vocab.json numbers the pieces of both, or target_vocab.json those of the target."""
    files = Files(folder)
    files.require_class("MarianTokenizer")
    names = {"source": "vocab.json", "target": "vocab.json"}
    separate = bool(files.config.get("separate_vocabs")) or (folder / "target_vocab.json").is_file()
    if separate:
        names["target"] = "target_vocab.json"
    sides, vocabularies = [], []
    for (side, name), count in zip(names.items(), rows, strict=True):
        pieces = files.vocabulary(name)
        vocabulary = _translator_marks(files, pieces, settings, count)
        named = named_rows(pieces, count, folder)
        marks = [
            piece for piece in named if piece not in pieces or (piece.startswith(">>") and LANGUAGE.fullmatch(piece))
        ]
        sides.append(_sentencepieces(files, f"{side}.spm", named, vocabulary, marks))
        vocabularies.append(vocabulary)
    return Read(Tokenizers(sides[0], sides[1], joint=not separate), *vocabularies)


def read_m2m100(folder: Path, rows: Sequence[int], settings: Settings) -> Read:
    """sentencepiece.bpe.model cuts text, vocab.json numbers its pieces, and the marks of languages follow them."""
    files = Files(folder)
    files.require_class("M2M100Tokenizer")
    pieces = files.vocabulary("vocab.json")
    numbered = _language_rows(files, len(pieces), rows[0])
    vocabulary = _translator_marks(files, pieces, settings, rows[0])
    named = named_rows({**pieces, **numbered}, rows[0], folder)
    marks = [piece for piece in named if piece not in pieces or piece == files.mark("bos", "<s>")]
    return _joint(_sentencepieces(files, "sentencepiece.bpe.model", named, vocabulary, marks), vocabulary)


def _language_rows(files: Files, first: int, rows: int) -> dict[str, int]:
    """The row of each language's mark: what the files say; else the published order, after all pieces. A model with fewer languages has its own."""
    codes = LANGUAGES[files.config.get("language_codes", "m2m100")].split()
    published = {f"__{code}__": first + place for place, code in enumerate(codes)}
    given = {mark: number for mark, number in files.added_tokens().items() if LANGUAGE.fullmatch(mark)}
    listed = [mark for mark in files.listed() if LANGUAGE.fullmatch(mark)]
    others = {number for mark, number in published.items() if mark not in given}
    if first + len(published) > rows or others & set(given.values()):
        return given or {mark: first + place for place, mark in enumerate(listed)}
    unknown = [mark for mark in listed if mark not in published | given]
    if unknown:
        raise UsageError(
            f"the tokenizer in {files.folder} lists {unknown[0]}, but no file says which row it has: added_tokens.json should"
        )
    return published | given


def _translator_marks(files: Files, pieces: Mapping[str, int], settings: Settings, rows: int) -> Vocabulary:
    """PAD, UNK and EOS by name; BOS is whatever a translation starts with, most often one of them."""
    pad, unk, eos = (
        _id(pieces, files.mark(name, mark), files.folder)
        for name, mark in (("pad", "<pad>"), ("unk", "<unk>"), ("eos", "</s>"))
    )
    start = settings.count("decoder_start_token_id", default=pad)
    return Vocabulary((pad, unk, start, eos), (BOS,) if start in (pad, unk, eos) else (), rows)


def _sentencepieces(
    files: Files, name: str, named: list[str], vocabulary: Vocabulary, marks: Sequence[str]
) -> SentencePieces:
    pieces = [named[number] for number in vocabulary.order[4:]]
    try:
        return SentencePieces(files.bytes(name), pieces, set(marks) & set(pieces))
    except RuntimeError as error:
        raise UsageError(f"{files.folder / name} is not a sentencepiece model: {error}") from None
