"""look: what models attend to while they translate a sentence; draw: the same as a page, a picture or numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from kente.api.comparison import gold_pair
from kente.api.loading import load
from kente.data.grammar import splits
from kente.decode.translator import Translator
from kente.errors import UsageError
from kente.measure.alignment import GoldPair
from kente.measure.explore import Reader, explore
from kente.measure.explored import Explored
from kente.reporting import SILENT, Reporter
from kente.show import explorer
from kente.show.figures import png, svg
from kente.show.plain import terminal
from kente.show.sheets import sheet
from kente.show.views import View

Format = Literal["html", "svg", "png", "csv", "json", "text"]
FORMATS: tuple[Format, ...] = get_args(Format)


def look(
    runs: Mapping[str, Translator] | Sequence[Path | str] | Path | str,
    sentence: str,
    *,
    target: str | None = None,
    known: GoldPair | None = None,
    beam: int | None = None,
    occlusion: bool = True,
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
) -> Explored:
    """Every weight of every model on one sentence, how its translation was found, and what changes without a word of it.

    `runs` are folders, or translators that are loaded already, by name. With a `target` they read that; otherwise each its own answer.
    `known` says which words translate each other (its target is then read, unless another is given).
    """
    if known is not None and target is None:
        target = known.target
    readers = _readers(runs, device, threads, reporter)
    return explore(readers, sentence, target=target, known=known, beam=beam, occlusion=occlusion, reporter=reporter)


def _readers(
    runs: Mapping[str, Translator] | Sequence[Path | str] | Path | str,
    device: str,
    threads: int | None,
    reporter: Reporter,
) -> list[Reader]:
    if isinstance(runs, Mapping):
        return [Reader(name, translator) for name, translator in runs.items()]
    paths = [Path(runs)] if isinstance(runs, Path | str) else [Path(run) for run in runs]
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError(f"each run once, please: {', '.join(map(str, paths))}")
    names = [path.resolve().name for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    in_torch = partial(
        load, engine="torch", device=device, threads=threads, reporter=reporter
    )  # only there weights are seen
    return [Reader(name, in_torch(path), str(path)) for name, path in zip(names, paths, strict=True)]


def example(number: int) -> GoldPair:
    """A test sentence of the embedded corpus with its translation and their alignment; the first is number 1."""
    tests = splits(train=0).test
    if not 1 <= number <= len(tests):
        raise UsageError(f"no example {number:,}: the embedded corpus has {len(tests):,} test sentences")
    return gold_pair(tests[number - 1])


def links_of_words(sentence: str, target: str, links: str) -> GoldPair:
    """Known alignment in the usual writing: "0-0 1-2" links source and target words, cut at spaces and counted from 0."""
    words = tuple(sentence.split()), tuple(target.split())
    pairs = set()
    for link in links.split():
        source, _, other = link.partition("-")
        if not (source.isdecimal() and other.isdecimal()):
            raise UsageError(
                f"{link!r} is not a link; write them as 0-0 1-2, source word and target word counted from 0"
            )
        if int(source) >= len(words[0]) or int(other) >= len(words[1]):
            raise UsageError(
                f"the link {link} points beyond the words: the source has {len(words[0])}, the target {len(words[1])}, "
                "cut at spaces and counted from 0"
            )
        pairs.add((int(source), int(other)))
    return GoldPair(sentence, target, *words, frozenset(pairs))


def draw(explored: Explored, form: Format, view: View | None = None, width: int = 100) -> bytes:
    """The exploration as a file of this form. A page and JSON hold all of it, the others one `view` of each model."""
    view = view or View()
    match form:
        case "html":
            return explorer.page(explored).encode()
        case "svg":
            return svg(explored, view).encode()
        case "png":
            return png(explored, view)
        case "csv":
            return sheet(explored, view).encode()
        case "json":
            return json.dumps(explored.as_dict(), ensure_ascii=False).encode() + b"\n"
        case "text":
            return "\n".join([*terminal(explored, view, width), ""]).encode()
