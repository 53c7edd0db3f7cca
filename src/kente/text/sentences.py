"""Where one sentence ends and the next begins, for no language in particular. Careful rather than complete: in doubt, one sentence."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

Span = tuple[int, int]

# end a sentence wherever they stand: the full stops and question marks of scripts that have their own
_FULL = "。！？｡।॥።፧፨؟۔։။។៕།༎᙮᠃᠉߹෴꓿꘎꘏꛳꛷꣎꣏꧉꩝꩞꩟꫰꫱꯫᭟᱾᱿⁇⁈⁉‼⸮܀"
_TYPED = "፡፡"  # how many keyboards write the Ethiopic full stop: two word spaces
_CLOSERS = "\"'”’»›)\\]」』）】"
_OPENERS = "\"'“”„‘‚«‹»(\\[「『（【¿¡"
_END = re.compile(
    rf"(?<![.!?…{_FULL}])(?P<mark>(?:[.!?…{_FULL}]|{_TYPED})++)(?P<close>[{_CLOSERS}]*+)(?P<gap>\s*+)(?:[-–—]\s?)?"
    rf"(?:«\s|[{_OPENERS}])*+(?=(?P<next>\S))"
)
_LAST_WORD = re.compile(r"[^\s(\[\"'“„«‘]+$")
_LINE = re.compile("[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")

UNSPACED = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Letters of scripts that put no spaces between words, as a regular expression's set."""
_CLAUSE_END = re.compile(r"[,;:،؛.!?…)\]»”–—]\s+|[、，；：。！？।።]\s*")
_SPACE = re.compile(r"\s+")
_SCRIPTS_WITHOUT_SPACES = re.compile(rf"[{UNSPACED}](?=[{UNSPACED}])")
_WIDE_END = re.compile(rf"[{UNSPACED}\u3000-\u303f\uff00-\uffef]$")
_INVISIBLE = frozenset(("Zs", "Zl", "Zp", "Cc", "Cf", "Cs"))

# Words of several languages that take a dot and are followed by a name, in small letters. Words that a sentence may well
# end with are left out, and so are those that come before numbers: a dot and a number never begin a sentence here.
ABBREVIATIONS = frozenset(
    re.split(
        r"\s+",
        """mr mrs ms dr prof st sr jr rev hon gov sen rep gen col lt sgt capt cmdr adm maj pres supt messrs mt ft blvd
        vs etc approx dept al cf ca resp incl jan feb apr jun jul aug sep sept oct nov dec
        bzw usw abs bd hr fr hrsg inkl str tel ggf evtl sog vgl dipl
        mme mmes mlle mlles mm mgr ste av env sra srta dra ud uds vd lic ing dott sig avv pág núm
        dhr mevr drs bijv tzv např tzn tzw bw mhe alh ул им""",
    )
)


@dataclass(frozen=True)
class Sentence:
    """A sentence and what stood between it and the next one: a space, line breaks or nothing."""

    text: str
    gap: str = ""


def sentence_spans(text: str) -> list[Span]:
    """(start, end) of each sentence, without the space around it: before, between and after them is white space only."""
    return [span for line in line_spans(text) for span in _split_line(text[slice(*line)], line[0])]


def line_spans(text: str) -> list[Span]:
    """(start, end) of each line that has something on it, without the space around it."""
    found = []
    for line in _LINE.finditer(text):
        bare = line[0].lstrip()
        if bare:
            start = line.end() - len(bare)
            found.append((start, start + len(bare.rstrip())))
    return found


def split_sentences(text: str) -> list[Sentence]:
    """The sentences of a text. Of what stood between two, line breaks are kept and any other space is one."""
    spans = sentence_spans(text)
    gaps = [text[end:start] for (_, end), (start, _) in pairwise(spans)]
    return [
        Sentence(text[start:end], "\n" * gap.count("\n") or (" " if gap else ""))
        for (start, end), gap in zip(spans, [*gaps, ""], strict=False)
    ]


def _split_line(line: str, offset: int) -> Iterator[Span]:
    start = 0
    for end in _END.finditer(line):
        if _ends(line, end):
            yield offset + start, offset + end.end("close")
            start = end.end("gap")
    yield offset + start, offset + len(line)


def _ends(line: str, end: re.Match[str]) -> bool:
    mark, gap, following = end["mark"], end["gap"], end["next"]
    if mark[-1] in _FULL or mark[-1] in _TYPED:
        return bool(gap) or not end["close"]  # inside a quotation that goes on without a space, the sentence goes on
    if not gap:
        return False
    freestanding = line[end.start() - 1 : end.start()].isspace()  # tokenised text writes " ."
    before = line[max(0, end.start() - 24) : end.start()].rstrip()
    if "…" in mark or ".." in mark or (freestanding and (following in ".…" or before[-1:] in (".", "…"))):
        return False  # dots of an ellipsis
    if mark != ".":
        return _may_begin(following, digits=True)
    word = _LAST_WORD.search(before)
    if word and _takes_a_dot(word[0]):
        return False
    return _may_begin(following, digits=False) or (freestanding and following.isalpha())


def _may_begin(letter: str, digits: bool) -> bool:
    """Whether a sentence may begin with it: a capital, a letter of a script without capitals, perhaps a digit."""
    kind = unicodedata.category(letter)
    return kind in ("Lu", "Lt", "Lo") or (digits and kind == "Nd")


def _takes_a_dot(word: str) -> bool:
    """An abbreviation, an initial, an ordinal or a numeral: a dot after it says little."""
    if len(word) == 1 and word.isalpha() and unicodedata.category(word) != "Lo":
        return True
    if re.fullmatch(r"(?:[^\W\d_]{1,3}\.)+[^\W\d_]{1,3}", word) or re.fullmatch(r"\d{1,2}|[IVXLC]+", word):
        return True
    return word.lower() in ABBREVIATIONS


def cut_in_two(piece: Sentence) -> list[Sentence]:
    """Two parts of like length: at the end of a clause near the middle, else between words, else in a script without spaces anywhere.

    Empty if there is no such place.
    """
    text, length = piece.text, len(piece.text)
    for pattern, margin in ((_CLAUSE_END, length // 4), (_SPACE, 0), (_SCRIPTS_WITHOUT_SPACES, 0)):
        places = (found.end() for found in pattern.finditer(text, margin, length - margin))
        place = min((p for p in places if 0 < p < length), key=lambda p: abs(p - length // 2), default=0)
        if place:
            first = text[:place]
            return [Sentence(first.rstrip(), " " if first[-1].isspace() else ""), Sentence(text[place:], piece.gap)]
    return []


def is_blank(text: str) -> bool:
    """Nothing to see: white space, control and format characters only."""
    return all(unicodedata.category(c) in _INVISIBLE for c in text)


def glue(first: str, gap: str) -> str:
    """What to write after `first`, where `gap` stood in the source: writing that uses spaces gets one where the source had none."""
    return gap or ("" if _WIDE_END.search(first) else " ")
