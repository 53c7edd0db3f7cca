"""train, and what every command that trains has in common: how long, with which settings, where, and how it goes on."""

from __future__ import annotations

import argparse
import json
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kente.cli.arguments import (
    Parser,
    above_zero,
    at_least,
    corpus_of,
    data_options,
    fields_option,
    languages_option,
    more_pairs,
    more_pairs_option,
    training_corpus,
)
from kente.cli.printing import print_json
from kente.cli.terminal import Terminal, duration
from kente.errors import UsageError

if TYPE_CHECKING:
    from kente.api import TrainResult

RESUMING = {"resume", "minutes", "updates", "threads", "device", "quiet", "verbose", "json", "no_color"}
"""What may stand beside --resume."""


def training_options(parser: Parser) -> None:
    """--out, --resume, --recipe, --minutes, --updates, --save-every, --seed, --set, --force."""
    from kente.configfile import recipes

    parser.add_argument("--out", type=Path, metavar="RUN", help="run folder to make")
    parser.add_argument("--resume", type=Path, metavar="RUN", help="continue a run from its newest good checkpoint")
    parser.add_argument(
        "--recipe", metavar="NAME|FILE.toml", help="settings to start from: " + (", ".join(recipes()) or "a TOML file")
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--minutes",
        type=above_zero,
        metavar="M",
        help="choose size and schedule so as to land in M minutes; with --resume, minutes of the whole run",
    )
    length.add_argument(
        "--updates", type=at_least(1), metavar="N", help="stop after N updates; with --resume, updates of the whole run"
    )
    parser.add_argument("--save-every", type=at_least(1), metavar="K", help="updates between checkpoints")
    parser.add_argument("--seed", type=at_least(0), metavar="S", help="everything random follows from it")
    parser.add_argument(
        "--set", action="append", default=[], metavar="A.B=C", dest="settings", help="one setting; --set help lists all"
    )
    parser.add_argument("--force", action="store_true", help="replace the run that is in --out already")


def training_arguments(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """What `training_options` were given, for an `api` function that trains."""
    if arguments.out is None:
        raise UsageError("where should the run go? --out RUN names a folder, for example --out runs/first")
    names = ("recipe", "minutes", "updates", "save_every", "seed", "settings", "force", "device", "threads")
    return {name: getattr(arguments, name) for name in names} | {"reporter": terminal}


def settled(arguments: argparse.Namespace, terminal: Terminal) -> int | None:
    """The exit code where nothing is to be begun: --set help was asked for, or a run was resumed. None otherwise."""
    if "help" in arguments.settings:
        return _list_settings()
    if not arguments.resume:
        return None
    began = time.monotonic()  # before torch is imported: --minutes counts that too
    for name, value in vars(arguments).items():
        if name not in RESUMING and value not in (None, False, [], "", 0):
            option = "set" if name == "settings" else name.replace("_", "-")
            raise UsageError(f"--resume goes on with the run's own data and settings; leave out --{option}")
    from kente import api

    where = {"device": arguments.device, "threads": arguments.threads, "reporter": terminal, "began": began}
    result = api.resume(arguments.resume, minutes=arguments.minutes, updates=arguments.updates, **where)
    return trained(result, arguments, terminal)


def _list_settings() -> int:
    from kente.configfile import listed_settings

    for name, default, text, condition in listed_settings():
        only = f"  (for {condition})" if condition else ""
        print(f"{name} = {json.dumps(default)}{only}\n    {text}")
    return 0


def trained(result: TrainResult, arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Say how a training ended and what to type next."""
    terminal.finish()
    if arguments.json:
        print_json(result.as_dict())
        return 0
    run, best = shlex.quote(str(result.run.path)), result.best
    score = f", best validation {best} | {best.signature}".rstrip(" |") if best else ""
    print(f"{run}: {result.stopped} after {result.step:,} updates in {duration(result.seconds)}{score}")
    if table := result.table():
        print("\n".join(table))
    terminal.say("next: " + "    ".join(result.next_commands()))
    return 0


def train_options(parser: Parser) -> None:
    data_options(parser)
    data_options(parser, "validation", "validation set (default: split off the corpus): ")
    fields_option(parser)
    languages_option(parser)
    more_pairs_option(parser)
    parser.add_argument("--encoder-from", metavar="RUN", help="begin with the encoder of this run: any kind of model")
    parser.add_argument(
        "--decoder-from", metavar="RUN", help="begin with the decoder of this run, or with a language model"
    )
    training_options(parser)
    parser.add_argument(
        "--corrections", type=Path, metavar="F", help="what people taught a served run, to be mixed in (.tsv)"
    )


def train(arguments: argparse.Namespace, terminal: Terminal) -> int:
    began = time.monotonic()
    if (code := settled(arguments, terminal)) is not None:
        return code
    how = training_arguments(arguments, terminal)
    data, validation = training_corpus(arguments), corpus_of(arguments, "validation")
    from kente import api

    begin = {"encoder_from": arguments.encoder_from, "decoder_from": arguments.decoder_from, "began": began}
    more = {"validation": validation, "also": more_pairs(arguments), "corrections": arguments.corrections}
    return trained(api.train(data, arguments.out, **more, **begin, **how), arguments, terminal)
