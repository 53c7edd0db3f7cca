"""What commands take: a parser that helps, kinds of values, and the options that several commands share."""

from __future__ import annotations

import argparse
import difflib
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from kente.errors import UsageError

if TYPE_CHECKING:
    from kente.api import Data


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are UsageErrors, and which knows a misspelt option when it sees one."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\nsee {self.prog} --help")

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        known, extra = self.parse_known_intermixed_args(arguments)
        if extra:
            options = [name for name in self._option_string_actions if name.startswith("--")]
            near = difflib.get_close_matches(extra[0].split("=")[0], options, 1)
            self.error(f"no option {extra[0]}" + (f"; did you mean {near[0]}?" if near else ""))
        return known


def at_least(least: int) -> Callable[[str], int]:
    def whole_number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is too small, it must be at least {least}")
        return value

    return whole_number


def above_zero(text: str) -> float:
    value = finite(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text} must be above 0")
    return value


def finite(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text} is not a number one can use")
    return value


def two_fields(text: str) -> tuple[str, str]:
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names):
        raise argparse.ArgumentTypeError(f"{text!r} should be two names such as en,fr")
    return names[0], names[1]


def common_options(parser: Parser) -> None:
    group = parser.add_argument_group("common options")
    group.add_argument("--threads", type=at_least(1), metavar="N", help="processor threads (default: all cores)")
    group.add_argument(
        "--device", choices=("auto", "cpu", "cuda", "mps"), default="auto", help="where to compute (default: auto)"
    )
    group.add_argument("-q", "--quiet", action="store_true", help="only results, warnings and errors")
    group.add_argument("-v", "--verbose", action="store_true", help="show the traceback when something fails")
    group.add_argument("--json", action="store_true", help="the result as JSON on standard output")
    group.add_argument("--no-color", action="store_true", help="no colour (NO_COLOR does the same)")


def data_options(parser: Parser, prefix: str = "", what: str = "") -> None:
    dash = f"{prefix}-" if prefix else ""
    parser.add_argument(f"--{dash}source", type=Path, metavar="F", help=f"{what}text to translate from, a line each")
    parser.add_argument(f"--{dash}target", type=Path, metavar="F", help=f"{what}translations, line by line")
    parser.add_argument(
        f"--{dash}pairs", type=Path, metavar="F", help=f"{what}both sides in one file, .tsv or .jsonl (also .gz)"
    )


def fields_option(parser: Parser) -> None:
    parser.add_argument("--fields", type=two_fields, metavar="A,B", help="names of source and target in --pairs files")


def languages_option(parser: Parser) -> None:
    parser.add_argument(
        "--languages",
        type=two_codes,
        metavar="A,B",
        help="codes of source and target (default: as the files are named)",
    )


def two_codes(text: str) -> tuple[str, str]:
    from kente.text.languages import is_code

    codes = two_fields(text)
    for code in codes:
        if not is_code(code):
            raise argparse.ArgumentTypeError(f"{code!r} is no code of a language, such as en, twi or pt-BR")
    return codes


def corpus_of(arguments: argparse.Namespace, prefix: str = "") -> Data | None:
    """The corpus that --source and --target, or --pairs, name; None when none of them was given."""
    dash = f"--{prefix}-" if prefix else "--"
    source, target, pairs = (
        getattr(arguments, f"{prefix}_{side}" if prefix else side) for side in ("source", "target", "pairs")
    )
    if pairs and (source or target):
        raise UsageError(f"give {dash}source and {dash}target, or {dash}pairs, not both")
    if (source is None) != (target is None):
        given, missing = ("source", "target") if source else ("target", "source")
        raise UsageError(f"{dash}{given} {source or target} needs {dash}{missing} beside it")
    if not (source or pairs):
        return None
    from kente.api import Data

    codes = getattr(arguments, "languages", None)
    return Data(source, target, pairs, arguments.fields if pairs else None, None if prefix else codes)


def more_pairs_option(parser: Parser) -> None:
    parser.add_argument(
        "--also", nargs="+", type=Path, default=[], metavar="F",
        help="more pairs to train on, such as those of `kente augment`: the first two columns of .tsv, source and target of .jsonl; "
        "none of them is held out",
    )  # fmt: skip


def more_pairs(arguments: argparse.Namespace) -> list[Data]:
    """The files that --also names."""
    if not arguments.also:
        return []
    from kente.api import Data

    return [Data(pairs=path) for path in arguments.also]


def training_corpus(arguments: argparse.Namespace) -> Data:
    data = corpus_of(arguments)
    if data is None:
        raise UsageError("no corpus given: --source FILE --target FILE, or --pairs FILE.tsv")
    return data


def require_beside(arguments: argparse.Namespace, options: str, beside: str, *, unless: bool = False) -> None:
    """Refuse options (names with spaces between) that say nothing without the option `beside`, or, with `unless`, next to it."""
    if bool(getattr(arguments, beside)) != unless:
        return
    for name in options.split():
        if getattr(arguments, name) not in (None, False):
            raise UsageError(f"--{name} says nothing {'beside' if unless else 'without'} --{beside}; leave it out")


def require_drawing(arguments: argparse.Namespace) -> None:
    """Options of drawing say nothing to a search."""
    for name in ("temperature", "top_k", "top_p", "min_p", "seed"):
        if not arguments.sample and getattr(arguments, name, None) is not None:
            raise UsageError(f"--{name.replace('_', '-')} is for drawing at random; add --sample")


def engine_option(parser: Parser) -> None:
    parser.add_argument(
        "--engine",
        choices=("auto", "torch", "ctranslate2", "native"),
        help="what searches: torch carries every model, ctranslate2 most Transformers, native the usual ones (default: the fastest)",
    )


def language_options(parser: Parser) -> None:
    """For models of many languages."""
    for option, name, what in (("--from", "source", "the text is in"), ("--to", "target", "to translate into")):
        parser.add_argument(option, dest=f"{name}_language", metavar="L", help=f"models of many languages: {what}")


def tokenize_options(parser: Parser, *, lowercase: bool = True) -> None:
    parser.add_argument(
        "--tokenize",
        default="13a",
        metavar="T",
        help="how BLEU cuts words: 13a (default), none (the text is tokenized), intl, char, zh, ja-mecab",
    )
    if lowercase:
        parser.add_argument("--lowercase", action="store_true", help="score without regard to case")
