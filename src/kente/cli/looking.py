"""look: what a model attends to, as a page, a picture, numbers, or in the terminal."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kente.cli.arguments import Parser, at_least
from kente.cli.printing import one_line, print_json
from kente.cli.terminal import Terminal
from kente.errors import UsageError

if TYPE_CHECKING:
    from kente.measure.alignment import GoldPair
    from kente.show.views import View

FORMATS = ("html", "svg", "png", "csv", "json", "text")
ENDINGS = {
    ".html": "html",
    ".htm": "html",
    ".svg": "svg",
    ".png": "png",
    ".csv": "csv",
    ".json": "json",
    ".txt": "text",
}


def look_options(parser: Parser) -> None:
    parser.add_argument(
        "what", nargs="+", metavar="RUN", help='run folders, side by side, and last the SENTENCE: runs/a runs/b "..."'
    )
    parser.add_argument("--target", metavar="TEXT", help="read this translation (default: each model's own)")
    parser.add_argument(
        "--out", type=Path, metavar="F", help="file to write, such as look.html (default: print to the terminal)"
    )
    parser.add_argument("--format", choices=FORMATS, help="what to write (default: as the ending of --out says)")
    parser.add_argument(
        "--example",
        type=at_least(1),
        metavar="N",
        help="test sentence N of the embedded corpus, with its translation and known alignment, in place of a sentence",
    )
    parser.add_argument(
        "--links", metavar="I-J,...", help='known alignment of the words of sentence and target, such as "0-0 1-2 2-1"'
    )
    parser.add_argument("--beam", type=at_least(1), metavar="N", help="hypotheses kept alive while translating")
    parser.add_argument(
        "--no-occlusion", action="store_true", help="do not leave words out: quicker for long sentences"
    )
    group = parser.add_argument_group("which map (svg, png, csv and text; a page and JSON hold all of them)")
    group.add_argument("--kind", default="cross", metavar="K", help="cross (default), encoder or decoder")
    group.add_argument("--layer", metavar="N|all", help="layer, counted from 1 (default: the last but one)")
    group.add_argument(
        "--head", default="mean", metavar="N|mean|max|rollout", help="head, counted from 1 (default: mean)"
    )
    group.add_argument("--pieces", action="store_true", help="pieces of words as the model has them, not joined")


def look(arguments: argparse.Namespace, terminal: Terminal) -> int:
    runs, sentence = _runs_and_sentence(arguments)
    form = _form(arguments)
    from kente import api

    view, known = _view(arguments), _known(arguments, sentence)
    explored = api.look(
        runs,
        known.source if known else sentence,
        target=arguments.target,
        known=known,
        beam=arguments.beam,
        occlusion=not arguments.no_occlusion,
        device=arguments.device,
        threads=arguments.threads,
        reporter=terminal,
    )
    terminal.finish()
    for reading in explored.readings:
        for warning in reading.warnings:
            terminal.warn(f"{reading.name}: {warning}")
    drawn = api.draw(explored, form, view, shutil.get_terminal_size((100, 24)).columns)
    if arguments.out is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(drawn)
        sys.stdout.buffer.flush()
        return 0
    from kente.durable import replace_file

    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    replace_file(arguments.out, drawn)
    answers = [{"name": r.name, "text": r.text, "answer": r.answer} for r in explored.readings]
    if arguments.json:
        print_json({"file": str(arguments.out), "format": form, "bytes": len(drawn), "models": answers})
    else:
        width = max(len(reading.name) for reading in explored.readings)
        for reading in explored.readings:
            print(f"{reading.name:<{width}}  {one_line(reading.text)}")
        print(f"{'page' if form == 'html' else form}: {arguments.out}", flush=True)
    return 0


def _runs_and_sentence(arguments: argparse.Namespace) -> tuple[list[str], str]:
    what = arguments.what
    if arguments.example is not None:
        return what, ""
    if len(what) < 2 or os.path.isdir(what[-1]):
        raise UsageError(
            f'no sentence given: the last of {" ".join(what)} should be one, as in kente look {what[0]} "Good morning."'
        )
    for text in (what[-1], arguments.target or ""):
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise UsageError(f"the text {text.encode(errors='backslashreplace').decode()} is not UTF-8")
    return what[:-1], what[-1]


def _form(arguments: argparse.Namespace) -> Any:
    """The format asked for, or the one the file's name asks for; without either, text, or JSON where --json wants it."""
    form = arguments.format
    if form is None and arguments.out is not None:
        form = ENDINGS.get(arguments.out.suffix.lower())
        if form is None:
            raise UsageError(f"what should {arguments.out} be? --format names it: {', '.join(FORMATS)}")
    if form == "png" and arguments.out is None and sys.stdout.isatty():
        raise UsageError("a PNG does not go on a terminal; name a file: --out look.png")
    return form or ("json" if arguments.json else "text")


def _view(arguments: argparse.Namespace) -> View:
    from kente.show.views import View

    layer: Any = "usual"
    if arguments.layer is not None:
        layer = "all" if arguments.layer == "all" else _number("layer", arguments.layer, "all")
    head: Any = arguments.head
    if head not in ("mean", "max", "rollout"):
        head = _number("head", head, "mean, max or rollout")
    return View(arguments.kind, layer, head, joined=not arguments.pieces)


def _number(name: str, text: str, others: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"--{name} {text}: there are numbers from 1 on, and {others}")
    return int(text) - 1


def _known(arguments: argparse.Namespace, sentence: str) -> GoldPair | None:
    from kente import api

    if arguments.example is not None:
        if arguments.links is not None:
            raise UsageError("--example brings its own alignment; leave out --links")
        return api.example(arguments.example)
    if arguments.links is None:
        return None
    if arguments.target is None:
        raise UsageError("--links needs --target beside it: which words are linked depends on both sentences")
    return api.links_of_words(sentence, arguments.target, arguments.links.replace(",", " "))
