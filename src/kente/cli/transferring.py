"""adapt and augment: a translator that learns more, and text that becomes pairs."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

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
    languages_option,
    more_pairs,
    more_pairs_option,
    require_drawing,
    training_corpus,
)
from kente.cli.printing import show
from kente.cli.terminal import Terminal
from kente.cli.training import settled, trained, training_arguments, training_options
from kente.errors import UsageError

LANGUAGES = ("source_language", "target_language")
DECODING = ("beam", "engine", "sample", "temperature", "top_k", "top_p", "seed", *LANGUAGES)


def adapt_options(parser: Parser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help="run folder of the translator, which stays as it is")
    data_options(parser)
    data_options(parser, "validation", "validation set (default: split off the corpus): ")
    fields_option(parser)
    languages_option(parser)
    more_pairs_option(parser)
    data_options(parser, "old", "what RUN was trained on, where its folder no longer holds it: ")
    parser.add_argument(
        "--freeze", default="", metavar="PARTS",
        help="parts that stay as they are, such as encoder,words (also decoder, attention, cross, feedforward, norms, names of weights)",
    )  # fmt: skip
    parser.add_argument(
        "--lora", type=at_least(1), default=0, metavar="RANK", help="learn maps of this rank beside the fixed ones"
    )
    parser.add_argument(
        "--replay", type=finite, default=0.0, metavar="SHARE", help="share of batches from what RUN was trained on, such as 0.5"
    )  # fmt: skip
    parser.add_argument(
        "--grow-vocabulary", type=at_least(1), default=0, metavar="N", help="add up to N pieces of the new text"
    )
    language_options(parser)
    training_options(parser)


def adapt(arguments: argparse.Namespace, terminal: Terminal) -> int:
    began = time.monotonic()
    if (code := settled(arguments, terminal)) is not None:
        return code
    if arguments.run is None:
        raise UsageError("which translator? kente adapt RUN --source F --target F --out NEW")
    how = training_arguments(arguments, terminal)
    how["settings"] += [f"decode.{name}={value}" for name in LANGUAGES if (value := getattr(arguments, name))]
    data, validation, old = training_corpus(arguments), corpus_of(arguments, "validation"), corpus_of(arguments, "old")
    from kente import api

    result = api.adapt(
        arguments.run,
        data,
        validation=validation,
        also=more_pairs(arguments),
        old=old,
        freeze=arguments.freeze,
        lora=arguments.lora,
        replay=arguments.replay,
        grow_vocabulary=arguments.grow_vocabulary,
        began=began,
        out=arguments.out,
        **how,
    )
    return trained(result, arguments, terminal)


def augment_options(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="run folder of a translator")
    parser.add_argument(
        "--text", nargs="+", type=Path, required=True, metavar="F", help="text in one language, a line each"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="PAIRS.tsv", help="file of pairs to make")
    parser.add_argument(
        "--kind", choices=("back", "self"), default="back",
        help="back: RUN translates from the target language, its answers become sources (default); self: its answers become targets",
    )  # fmt: skip
    parser.add_argument(
        "--tag", metavar="TAG", help="word before each source (default: <bt> for back, <st> for self); none for none"
    )
    parser.add_argument(
        "--exclude", nargs="+", type=Path, default=[], metavar="F", help="files whose lines must not be used, such as test sets"
    )  # fmt: skip
    parser.add_argument("--limit", type=at_least(1), metavar="N", help="only the first N lines")
    parser.add_argument("--beam", type=at_least(1), metavar="N", help="hypotheses kept alive; 1 is greedy")
    engine_option(parser)
    language_options(parser)
    parser.add_argument(
        "--sample", action="store_true", default=None, help="draw words at random: less fluent, more varied"
    )
    parser.add_argument("--temperature", type=above_zero, metavar="T", help="sampling: below 1 sharper, above 1 wilder")
    parser.add_argument("--top-k", type=at_least(0), metavar="K", help="sampling: only the K likeliest words")
    parser.add_argument(
        "--top-p", type=above_zero, metavar="P", help="sampling: only the likeliest words up to this probability"
    )
    parser.add_argument("--seed", type=at_least(0), metavar="S", help="sampling: the same seed draws the same words")
    parser.add_argument("--force", action="store_true", help="begin anew, and replace the file that is there")


def augment(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from kente import api
    from kente.data.tags import KNOWN

    require_drawing(arguments)
    decode = {name: value for name in DECODING if (value := getattr(arguments, name)) is not None}
    result = api.augment(
        arguments.run,
        arguments.text,
        arguments.out,
        kind=arguments.kind,
        tag="" if arguments.tag == "none" else arguments.tag,
        exclude=arguments.exclude,
        limit=arguments.limit,
        force=arguments.force,
        device=arguments.device,
        threads=arguments.threads,
        reporter=terminal,
        **decode,
    )
    terminal.finish()
    show(result, arguments.json)
    tag = arguments.tag or ""
    named = "" if tag in (*KNOWN, "", "none") else f' --set tokenizer.tags="{tag}"'
    terminal.say(f"next: kente train --source F --target F --also {result.out}{named} --out RUN")
    return 0
