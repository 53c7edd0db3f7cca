"""The commands that every translator is made, used and looked at with: demo, check, translate, evaluate, score, summary, info."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kente.cli.arguments import (
    Parser,
    above_zero,
    at_least,
    corpus_of,
    data_options,
    engine_option,
    fields_option,
    finite,
    language_options,
    require_drawing,
    tokenize_options,
    training_corpus,
)
from kente.cli.printing import one_line, plain, print_json, show
from kente.cli.terminal import Terminal, ready_lines
from kente.cli.texts import check_file_options, file_options, translate_file
from kente.errors import UsageError

if TYPE_CHECKING:
    from kente.decode.translator import Translation

SHOWN_WARNINGS = 10
"""Lines whose warnings are shown by `translate`; the rest are counted."""
DECODE_OPTIONS = ("beam", "engine", "length_penalty", "sample", "temperature", "top_k", "top_p", "min_p", "seed")
LANGUAGE_OPTIONS = ("source_language", "target_language")


def demo_options(parser: Parser) -> None:
    parser.add_argument("--out", type=Path, default=Path("runs/demo"), metavar="RUN", help="run folder (runs/demo)")
    parser.add_argument("--minutes", type=above_zero, metavar="M", help="how long to train, all three models together")


def demo(arguments: argparse.Namespace, terminal: Terminal) -> int:
    began = time.monotonic()
    from kente import api

    given = {} if arguments.minutes is None else {"minutes": arguments.minutes}
    where: dict[str, Any] = {"device": arguments.device, "threads": arguments.threads, "reporter": terminal}
    result = api.demo(arguments.out, began=began, **where, **given)
    terminal.finish()
    if arguments.json:
        print_json(result)
        return 0
    for sample in result["samples"]:
        print(f"  {sample['source']}\n    {sample['translation']}")
    print("\n".join(("", *result["lines"], "", "next:", *(f"  {command}" for command in result["next"]))), flush=True)
    return 0


def check_options(parser: Parser) -> None:
    data_options(parser)
    data_options(parser, "validation", "validation set: ")
    data_options(parser, "test", "test set, to find what leaks into training: ")
    fields_option(parser)


def check(arguments: argparse.Namespace, terminal: Terminal) -> int:
    data = training_corpus(arguments)
    from kente import api

    report = api.check(data, corpus_of(arguments, "validation"), corpus_of(arguments, "test"), terminal)
    terminal.finish()
    show(report, arguments.json)
    return 1 if report.worst == "error" else 0


def translate_options(parser: Parser) -> None:
    from kente.configfile import help_texts

    helps = {name.removeprefix("decode."): text.replace("%", "%%") for name, text in help_texts().items()}
    parser.add_argument("run", metavar="RUN", help="run folder")
    parser.add_argument("text", nargs="*", metavar="TEXT", help="what to translate (default: lines of standard input)")
    parser.add_argument("--beam", type=at_least(1), metavar="N", help=helps["beam"])
    engine_option(parser)
    parser.add_argument("--n-best", type=at_least(1), default=1, metavar="N", help="show the N best translations")
    parser.add_argument("--length-penalty", type=finite, metavar="P", help=helps["length_penalty"])
    parser.add_argument("--prefix", metavar="TEXT", help="each translation begins with this")
    parser.add_argument("--sample", action="store_true", default=None, help=helps["sample"])
    parser.add_argument("--temperature", type=above_zero, metavar="T", help=helps["temperature"])
    parser.add_argument("--top-k", type=at_least(0), metavar="K", help=helps["top_k"])
    parser.add_argument("--top-p", type=above_zero, metavar="P", help=helps["top_p"])
    parser.add_argument("--min-p", type=finite, metavar="P", help=helps["min_p"])
    parser.add_argument("--seed", type=at_least(0), metavar="S", help=helps["seed"])
    parser.add_argument("--no-split", action="store_true", help="take a line as one sentence, however many it holds")
    file_options(parser)
    language_options(parser)


def translate(arguments: argparse.Namespace, terminal: Terminal) -> int:
    require_drawing(arguments)
    for text in arguments.text:
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise UsageError(f"the text {text.encode(errors='backslashreplace').decode()} is not UTF-8")
    check_file_options(arguments)
    names = (*DECODE_OPTIONS, *LANGUAGE_OPTIONS)
    options = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    if arguments.file is not None:
        return translate_file(arguments, terminal, options)
    from kente import api

    if not arguments.text and sys.stdin.isatty():
        terminal.say("One line, one translation; Ctrl-D ends.")
    where = {"device": arguments.device, "threads": arguments.threads, "reporter": terminal}
    translator = api.load(arguments.run, **where, **options)
    how = {"n_best": arguments.n_best, "prefix": arguments.prefix, "split": False if arguments.no_split else None}
    line = doubtful = 0
    for lines in [arguments.text] if arguments.text else ready_lines(sys.stdin.buffer):
        for translation in translator.translate(lines, **how):
            line += 1
            doubtful += bool(translation.warnings)
            if translation.warnings and doubtful <= SHOWN_WARNINGS:
                terminal.warn(f"line {line:,}: {'; '.join(translation.warnings)}")
            _print_translation(translation, line, arguments)
        sys.stdout.flush()
    if doubtful > SHOWN_WARNINGS:
        terminal.warn(f"{doubtful:,} of {line:,} lines have such warnings; --json gives each beside its line")
    return 0


def _print_translation(translation: Translation, line: int, arguments: argparse.Namespace) -> None:
    best = [(translation.text, translation.score), *((other.text, other.score) for other in translation.alternatives)]
    if arguments.json:
        print_json(
            {
                "source": translation.source,
                "text": translation.text,
                "score": translation.score,
                "alternatives": [{"text": text, "score": score} for text, score in best[1:]],
                "warnings": list(translation.warnings),
            }
        )
    elif arguments.n_best > 1:
        for text, score in best[: arguments.n_best]:
            print(f"{line}\t{score:.4f}\t{one_line(text)}")
    else:
        print(one_line(translation.text))


def evaluate_options(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="run folder")
    parser.add_argument("--source", type=Path, metavar="F", help="text to translate, a line each")
    parser.add_argument("--reference", type=Path, metavar="F", help="what it should become, line by line")
    parser.add_argument(
        "--text", nargs="+", type=Path, metavar="F", help="for language models and masked encoders: text to predict"
    )
    parser.add_argument("--beam", type=at_least(1), metavar="N", help="hypotheses kept alive; 1 is greedy")
    engine_option(parser)
    parser.add_argument("--limit", type=at_least(1), metavar="N", help="only the first N lines")
    tokenize_options(parser)
    language_options(parser)


FOR_TRANSLATORS = (
    ("--beam", "beam", None),
    ("--engine", "engine", None),
    ("--tokenize", "tokenize", "13a"),
    ("--lowercase", "lowercase", False),
    ("--from", "source_language", None),
    ("--to", "target_language", None),
)
"""Options of `evaluate` that text to predict has no use for: name, attribute, and what stands there unless it is given."""


def evaluate(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if arguments.text and (arguments.source or arguments.reference):
        raise UsageError("give --source and --reference for a translator, or --text for a language model, not both")
    idle = [name for name, attribute, usual in FOR_TRANSLATORS if getattr(arguments, attribute) != usual]
    if arguments.text and idle:
        raise UsageError(f"{', '.join(idle)}: of no use with --text, which is read and not translated")
    if not arguments.text and not (arguments.source and arguments.reference):
        missing = (
            "--reference" if arguments.source else "--source" if arguments.reference else "--source and --reference"
        )
        raise UsageError(f"the following are required: {missing} (or --text, for a language model)")
    from kente import api

    if arguments.text:
        where = {"device": arguments.device, "threads": arguments.threads, "reporter": terminal}
        show(api.evaluate_text(arguments.run, arguments.text, limit=arguments.limit, **where), arguments.json)
        return 0
    evaluation = api.evaluate(
        arguments.run,
        arguments.source,
        arguments.reference,
        beam=arguments.beam,
        engine=arguments.engine,
        tokenize=arguments.tokenize,
        lowercase=arguments.lowercase,
        limit=arguments.limit,
        languages=(arguments.source_language, arguments.target_language),
        device=arguments.device,
        threads=arguments.threads,
        reporter=terminal,
    )
    terminal.finish()
    show(evaluation, arguments.json)
    return 0


def score_options(parser: Parser) -> None:
    parser.add_argument("--hypothesis", type=Path, metavar="F", required=True, help="translations, a line each")
    parser.add_argument("--reference", type=Path, metavar="F", required=True, help="what they should be, line by line")
    tokenize_options(parser)


def score(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from kente import api

    evaluation = api.score(arguments.hypothesis, arguments.reference, arguments.tokenize, arguments.lowercase)
    show(evaluation, arguments.json)
    return 0


def summary_options(parser: Parser) -> None:
    parser.add_argument("what", metavar="RUN|RECIPE", help="run folder, recipe name or TOML file")


def summary(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from kente import api

    show(api.summary(arguments.what), arguments.json)
    return 0


def info_options(parser: Parser) -> None:
    parser.add_argument("run", nargs="?", type=Path, metavar="RUN", help="run folder (default: about this machine)")


def info(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from kente import api

    facts = api.info(arguments.run)
    if arguments.json:
        print_json(facts)
    else:
        width = max(map(len, facts), default=0)
        for name, value in facts.items():
            print(f"{name:<{width}}  {_fact(value)}")
    return 0


def _fact(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
