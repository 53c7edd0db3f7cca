"""Where the tags of a sentence belong in its translation, by which words became which.

An element of the source covers some of its words; in the translation it covers the stretch where most words come from those. Tags
stay nested as they were. Where that cannot be had the answer is None, and the sentence is translated in parts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kente.text.passages import Tag
from kente.text.sentences import Span

Link = tuple[int, int, int, int]
"""Letters [0]:[1] of a sentence became letters [2]:[3] of its translation."""
MOST_TAGS = 64
"""In a sentence; with more it is no sentence, and is translated in parts."""

_WORD = re.compile(r"\w+(?:['’.-]\w+)*")
_WORD_START = "\u2581"  # how pieces of words mark a space before them


# ---------------------------------------------------------------- links


def piece_links(
    sentence: str, translation: str, sources: Sequence[str], targets: Sequence[str], pairs: Iterable[tuple[int, int]]
) -> list[Link]:
    """Links from pairs (source piece, target piece), as `Translation.alignment` has them; pieces that cannot be found are left out."""
    source_spans, target_spans = _spans_of(sources, sentence), _spans_of(targets, translation)
    return [
        (*source, *target) for s, t in pairs if (source := source_spans[s]) is not None and (target := target_spans[t])
    ]


def _spans_of(pieces: Sequence[str], text: str) -> list[Span | None]:
    """Where each piece stands in the text, one after the other."""
    spans: list[Span | None] = []
    place = 0
    for piece in pieces:
        letters = piece.replace(_WORD_START, " ").strip()
        found = text.find(letters, place, place + len(letters) + 8) if letters else -1
        spans.append((found, found + len(letters)) if found >= 0 else None)
        place = found + len(letters) if found >= 0 else place
    return spans


def same_words(source: str, target: str) -> list[Link]:
    """Links between words, numbers or names that stand once in each and are the same."""
    sides = []
    for text in (source, target):
        words = [(found[0], found.span()) for found in _WORD.finditer(text)]
        times = Counter(word for word, _ in words)
        sides.append({word: span for word, span in words if times[word] == 1})
    return [(*span, *sides[1][word]) for word, span in sides[0].items() if word in sides[1]]


def covers(links: Iterable[Link], source: str, start: int, end: int) -> bool:
    """Whether every word of source[start:end] is linked."""
    linked = [(a, b) for a, b, _, _ in links]
    return all(
        any(a < word.end() and b > word.start() for a, b in linked) for word in _WORD.finditer(source, start, end)
    )


# ---------------------------------------------------------------- places


@dataclass
class _Node:
    """An element, or the whole sentence: letters [start, end) of the source and, once found, [low, high) of the target."""

    start: int
    end: int
    low: int
    high: int
    tags: tuple[Tag, ...] = ()
    elements: list[_Node] = field(default_factory=list)
    points: list[tuple[int, tuple[Tag, ...]]] = field(default_factory=list)


def place_tags(
    source: str, target: str, tags: Sequence[Tag], links: Sequence[Link], *, complete: bool
) -> list[tuple[int, Tag]] | None:
    """(place in the target, tag) for every tag, in the order they are to be written.

    `complete`: the links speak for every word, as attention does; otherwise elements with unlinked words cannot be placed.
    """
    if len(tags) > MOST_TAGS:
        return None
    root = _nested(source, target, tags)
    ordered = sorted(set(links), key=lambda link: link[2:])
    return list(_written(root)) if _find(root, source, ordered, complete) else None


def _nested(source: str, target: str, tags: Sequence[Tag]) -> _Node:
    """The sentence as a tree of elements; tags without a partner, and elements without text, are points."""
    partner = partners(tags)
    root = _Node(0, len(source), 0, len(target))
    open_nodes = [root]
    skip = -1
    for number, tag in enumerate(tags):
        other = partner.get(number)
        if number <= skip:
            continue
        if other is None:
            open_nodes[-1].points.append((tag.place, (tag,)))
        elif other < number:
            open_nodes.pop()
        elif not source[tag.place : tags[other].place].strip():
            open_nodes[-1].points.append((tag.place, tuple(tags[number : other + 1])))
            skip = other
        else:
            node = _Node(tag.place, tags[other].place, 0, 0, (tag, tags[other]))
            open_nodes[-1].elements.append(node)
            open_nodes.append(node)
    return root


def partners(tags: Sequence[Tag]) -> dict[int, int]:
    """For each tag that has one, the number of the tag that opens or closes the same element; only elements that nest."""
    partner: dict[int, int] = {}
    waiting: list[int] = []
    names = Counter[str]()
    for number, tag in enumerate(tags):
        if tag.kind == "open":
            waiting.append(number)
            names[tag.name] += 1
        elif tag.kind == "close" and names[tag.name]:
            while True:
                last = waiting.pop()
                names[tags[last].name] -= 1
                if tags[last].name == tag.name:
                    break  # those before it were never closed
            partner[number], partner[last] = last, number
    return partner


def _find(node: _Node, source: str, links: list[Link], complete: bool) -> bool:
    """Give every element and point below `node` its place; False where one has none."""
    for element in node.elements:
        if not complete and not covers(links, source, element.start, element.end):
            return False
        stretch = _stretch(element, node, links)
        if stretch is None:
            return False
        element.low, element.high = stretch
        if not _find(element, source, links, complete):
            return False
    node.elements.sort(key=lambda element: element.low)
    if any(a.high > b.low for a, b in zip(node.elements, node.elements[1:], strict=False)):
        return False
    placed = []
    for place, tags in node.points:
        where = _beside(place, tags[0].kind == "close", node, source, links, complete)
        if where is None:
            return False
        placed.append((_outside(where, node.elements), tags))
    node.points = sorted(placed, key=lambda point: point[0])
    return True


def _stretch(element: _Node, inside: _Node, links: list[Link]) -> Span | None:
    """The stretch of target words with the largest surplus of words that come from the element, the longest of several.

    It begins and ends with such a word; None if there is no surplus.
    """
    best, best_span, surplus, low, high = 0.0, None, -1.0, 0, 0
    for (start, end), own in _shares(element, inside, links):
        if surplus < 0:
            surplus, low, high = 0.0, start, start
        surplus += own
        if own > 0:
            high = max(high, end)  # a link may lie within another
            if surplus >= best:
                best, best_span = surplus, (low, high)
    return best_span


def _shares(element: _Node, inside: _Node, links: list[Link]) -> Iterator[tuple[Span, float]]:
    """For each linked stretch of the target inside `inside`: by how much more it comes from the element than from elsewhere, -1 to 1."""
    votes: dict[Span, list[int]] = {}
    for s0, s1, t0, t1 in links:
        if inside.low <= t0 and t1 <= inside.high:
            votes.setdefault((t0, t1), []).append(1 if s0 < element.end and s1 > element.start else -1)
    for span, cast in votes.items():
        yield span, sum(cast) / len(cast)


def _beside(place: int, closes: bool, node: _Node, source: str, links: list[Link], complete: bool) -> int | None:
    """Where a point belongs, inside the element it is in: before what the next word became or after what the last one did.

    A tag that closes goes by the last word if it can, any other by the next.
    """
    if not source[node.start : place].strip():
        return node.low
    if not source[place : node.end].strip():
        return node.high
    inside = [link for link in links if node.low <= link[2] and link[3] <= node.high]
    after = min((link for link in inside if link[0] >= place), key=lambda link: (link[0], link[2]), default=None)
    before = max((link for link in inside if link[1] <= place), key=lambda link: (link[1], link[3]), default=None)
    found = []
    if after is not None and (complete or not _WORD.search(source, place, after[0])):
        found.append(after[2])
    if before is not None and (complete or not _WORD.search(source, before[1], place)):
        found.append(before[3])
    return found[-1 if closes else 0] if found else None


def _outside(place: int, elements: list[_Node]) -> int:
    """The nearest place that is not inside another element."""
    for element in elements:
        if element.low < place < element.high:
            return element.low if place - element.low < element.high - place else element.high
    return place


def _written(node: _Node) -> Iterator[tuple[int, Tag]]:
    """The tags below `node` in order: points before the elements that begin where they stand."""
    points = list(node.points)
    for element in node.elements:
        while points and points[0][0] <= element.low:
            place, tags = points.pop(0)
            yield from ((place, tag) for tag in tags)
        yield element.low, element.tags[0]
        yield from _written(element)
        yield element.high, element.tags[1]
    for place, tags in points:
        yield from ((place, tag) for tag in tags)


def spread_tags(source: str, target: str, tags: Sequence[Tag]) -> list[tuple[int, Tag]]:
    """A guess where nothing is known: tags in their order, each after as large a share of the text as in the source, between words."""
    gaps = [0, *(found.end() for found in re.finditer(r"\s+", target)), len(target)]
    placed, least = [], 0
    for tag in tags:
        wanted = tag.place / max(1, len(source)) * len(target)
        least = max(least, min(gaps, key=lambda gap: abs(gap - wanted)))
        placed.append((least, tag))
    return placed
