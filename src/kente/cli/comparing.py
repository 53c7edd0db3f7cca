"""compare, report and lecture: commands that end in a page to look at."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from kente.cli.arguments import Parser, above_zero, at_least, corpus_of, data_options, fields_option, tokenize_options
from kente.cli.printing import print_json, show
from kente.cli.terminal import Terminal, duration
from kente.errors import UsageError


def compare_options(parser: Parser) -> None:
    from kente.configfile import recipes

    data_options(parser, what="(default: the embedded English-French corpus) ")
    data_options(parser, "validation", "validation set (default: split off the corpus): ")
    data_options(parser, "test", "test set (default: split off the corpus): ")
    fields_option(parser)
    parser.add_argument(
        "--out", type=Path, default=Path("compare"), metavar="FOLDER", help="where all of it goes (compare)"
    )
    parser.add_argument(
        "--models",
        metavar="A,B,...",
        help="recipes or TOML files (default: rnn,gru,gru-attention,lstm-attention,conv,transformer); there are "
        + ", ".join(recipes()),
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes-each", type=above_zero, metavar="M", help="training time of each model (5)")
    length.add_argument(
        "--updates-each", type=at_least(1), metavar="N", help="as many updates, so as many tokens, for each"
    )
    parser.add_argument("--seed", type=at_least(0), metavar="S", help="everything random follows from it")
    parser.add_argument(
        "--set", action="append", default=[], metavar="A.B=C", dest="settings", help="one setting for all models"
    )
    parser.add_argument(
        "--beam", type=at_least(1), metavar="N", help="hypotheses kept alive while translating the test set"
    )
    tokenize_options(parser, lowercase=False)
    parser.add_argument("--force", action="store_true", help="train again what is trained already")


def compare(arguments: argparse.Namespace, terminal: Terminal) -> int:
    models = [name.strip() for name in (arguments.models or "").split(",") if name.strip()]
    from kente import api

    given: dict[str, Any] = {"models": models} if models else {}
    compared = api.compare(
        arguments.out,
        data=corpus_of(arguments),
        validation=corpus_of(arguments, "validation"),
        test=corpus_of(arguments, "test"),
        minutes_each=arguments.minutes_each,
        updates_each=arguments.updates_each,
        settings=arguments.settings,
        tokenize=arguments.tokenize,
        beam=arguments.beam,
        seed=arguments.seed,
        force=arguments.force,
        device=arguments.device,
        threads=arguments.threads,
        reporter=terminal,
        **given,
    )
    terminal.finish()
    show(compared, arguments.json)
    return 0


def report_options(parser: Parser) -> None:
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders")
    parser.add_argument(
        "--source", type=Path, metavar="F", help="test sentences (default: the runs' validation sentences)"
    )
    parser.add_argument("--reference", type=Path, metavar="F", help="their translations, line by line")
    parser.add_argument(
        "--out", type=Path, default=Path("report"), metavar="FOLDER", help="where page and numbers go (report)"
    )
    parser.add_argument("--beam", type=at_least(1), metavar="N", help="hypotheses kept alive while translating")
    tokenize_options(parser, lowercase=False)


def report(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if (arguments.source is None) != (arguments.reference is None):
        raise UsageError("a test set has two files: --source F --reference F")
    from kente import api

    test = api.Data(arguments.source, arguments.reference) if arguments.source else None
    compared = api.report(
        arguments.runs,
        arguments.out,
        test=test,
        tokenize=arguments.tokenize,
        beam=arguments.beam,
        device=arguments.device,
        threads=arguments.threads,
        reporter=terminal,
    )
    terminal.finish()
    show(compared, arguments.json)
    return 0


def lecture_options(parser: Parser) -> None:
    parser.add_argument("names", nargs="*", metavar="EXPERIMENT", help="which ones, or all (default: list them)")
    parser.add_argument(
        "--run", type=Path, metavar="RUN", help="a trained run to look into, for the experiments that can"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("lecture"), metavar="FOLDER", help="where the page goes (lecture)"
    )


def lecture(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from kente import api

    experiments = api.experiments()
    if not arguments.names:
        if arguments.json:
            fields = ("name", "title", "lecture", "seconds")
            print_json([{name: getattr(experiment, name) for name in fields} for experiment in experiments.values()])
            return 0
        for experiment in experiments.values():
            print(
                f"{experiment.name:<12} {experiment.title}  ({experiment.lecture}, about {duration(experiment.seconds)})"
            )
        print(
            "\nkente lecture NAME ... runs them, kente lecture all runs every one; each ends in a picture and a sentence."
        )
        return 0
    begun = time.monotonic()
    learnt = api.lecture(
        arguments.names,
        arguments.out,
        run=arguments.run,
        device=arguments.device,
        threads=arguments.threads,
        reporter=terminal,
    )
    terminal.finish()
    if arguments.json:
        print_json({**learnt.as_dict(), "seconds": round(time.monotonic() - begun, 1)})
    else:
        print("\n".join(learnt.lines()))
    return 0
