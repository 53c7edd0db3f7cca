"""Where sentences end, as an ONNX model for MiniSBD, the splitter of Argos Translate: rules written as arithmetic, so nothing is downloaded.

MiniSBD hands a model the characters of a paragraph as ids and a few features of each; the model says at which of them a sentence ends.
MiniSBD's own models know some eighty languages and are fetched when first used; this one knows none and lies in the package. The rules are
those of text.sentences, as far as they look at a few characters: a mark, perhaps a closing quote, a space, and something that may begin.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable

import numpy as np

from kente.export.onnx_graph import Graph, Value
from kente.text.sentences import ABBREVIATIONS

MARKS, FULL = ".!?…", "。！？｡।॥።፧؟۔။։។"
"""End a sentence if a space and a beginning follow; end one wherever they stand."""
CLOSERS, OPENERS = "\"'”’»›)]」』）】", "\"'“”„‘‚«‹»([「『（【¿¡"
CLASSES: dict[str, Callable[[str], bool]] = {
    "mark": lambda character: character in MARKS,
    "dot": lambda character: character == ".",
    "full": lambda character: character in FULL,
    "closer": lambda character: character in CLOSERS,
    "opener": lambda character: character in OPENERS,
    "space": lambda character: character == " ",
    "letter": str.isalpha,
    "caseless": lambda character: unicodedata.category(character) == "Lo",
}
UNITS = ("<PAD>", "<UNK>")
WINDOW = max(map(len, ABBREVIATIONS)) + 1
"""Characters looked back for an abbreviation, the space before it counted; no rule looks further, ahead or back."""
FOREVER = np.iinfo(np.int64).max


def splitter(language: str, characters: Iterable[str]) -> bytes:
    """The model's file; `characters` are those that the language's text is made of."""
    units = [*UNITS, *sorted({*characters, *MARKS, *FULL, *CLOSERS, *OPENERS, " "})]
    config = {
        "feat_funcs": ["capitalized", "start_of_para"],
        "use_dictionary": True,
        "num_dict_feat": WINDOW,
        "skip_newline": False,
        "max_seqlen": 1000,
        "batch_size": 1,
        "no_ssplit": False,
    }
    vocabulary = {
        "lang": language,
        "idx": 0,
        "cutoff": 0,
        "lower": False,
        "_unit2id": {unit: number for number, unit in enumerate(units)},
        "_id2unit": units,
    }
    lexicon = [f"{before}{word}." for word in sorted(ABBREVIATIONS) for before in ("", " ")]
    notes = {"config": config, "vocab": vocabulary, "lexicon": lexicon}
    metadata = {"lang_code": language} | {name: json.dumps(note, ensure_ascii=False) for name, note in notes.items()}
    return _graph(units).to_bytes(metadata)


def _graph(units: list[str]) -> Graph:
    """units (B, N) and features (B, N, F) to scores (B, N, 3); the features are: a capital, the first one, words ahead, words behind."""
    graph = Graph("sentences")
    ids = graph.input("units", "int64", ("batch", "characters"))
    features = graph.input("features", "float32", ("batch", "characters", 2 + 2 * WINDOW))
    capital, first, _, behind = features.split([1, 1, WINDOW, WINDOW])
    table = np.array([_classes(unit) for unit in units], np.float32)
    parts = graph.op("Gather", table, ids, axis=0).split([1] * len(CLASSES))
    seen = {name: _Seen(part) for name, part in zip(CLASSES, parts, strict=True)}
    seen |= {"capital": _Seen(capital), "first": _Seen(first)}
    end = _ends(seen, behind.split([1] * WINDOW))
    graph.output("output", graph.concat(end * 0.0 + 0.5, end * 0.0, end), ("batch", "characters", 3))
    return graph


def _classes(unit: str) -> list[bool]:
    return [unit not in UNITS and belongs(unit) for belongs in CLASSES.values()]


class _Seen:
    """1 at characters that are something, 0 at others; asked for at a distance."""

    def __init__(self, value: Value) -> None:
        beyond = np.array([0, WINDOW, 0, 0, WINDOW, 0], np.int64)
        self.padded = value.op("Pad", beyond)

    def at(self, distance: int) -> Value:
        """What the character so far ahead is."""
        begin, end = WINDOW + distance, distance - WINDOW or FOREVER
        return self.padded.op("Slice", *(np.array([number], np.int64) for number in (begin, end, 1)))


def _ends(seen: dict[str, _Seen], behind: list[Value]) -> Value:
    """1 where a sentence ends. Products mean and, maxima or, 1 - x not. `behind` tells of each length whether such a word ends here."""
    is_ = {name: some.at for name, some in seen.items()}

    def begins(distance: int) -> Value:
        return is_["capital"](distance).op("Max", is_["caseless"](distance))

    marked = is_["mark"](0)
    quoted = is_["closer"](0) * is_["mark"](-1)
    twice_quoted = is_["closer"](0) * is_["closer"](-1) * is_["mark"](-2)
    follows = is_["space"](1) * begins(2).op("Max", is_["opener"](2) * begins(3))
    initial = is_["letter"](-1) * (1 - is_["letter"](-2)) * is_["dot"](0)
    ellipsis = is_["dot"](0) * is_["dot"](-1)
    abbreviations = [
        word * is_["space"](-length).op("Max", is_["first"](-length)) for length, word in enumerate(behind, start=1)
    ]
    not_an_end = initial.op("Max", ellipsis, *abbreviations)
    usual = marked.op("Max", quoted, twice_quoted) * follows * (1 - not_an_end)
    full = is_["full"](0) * (1 - is_["closer"](1)) * (1 - is_["full"](1))
    full_quoted = is_["closer"](0) * is_["full"](-1) * is_["space"](1)
    return usual.op("Max", full, full_quoted)
