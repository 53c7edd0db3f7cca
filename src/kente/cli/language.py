"""pretrain and generate: language models and masked encoders."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from pathlib import Path

from kente.cli.arguments import Parser, above_zero, at_least, finite
from kente.cli.printing import print_json
from kente.cli.terminal import Terminal
from kente.cli.training import settled, trained, training_arguments, training_options
from kente.errors import UsageError

MANNER = ("most", "temperature", "top_k", "top_p", "min_p", "repetition", "no_repeat", "seed")


def pretrain_options(parser: Parser) -> None:
    parser.add_argument("--text", nargs="+", type=Path, default=[], metavar="F", help="text files to read (also .gz)")
    parser.add_argument(
        "--kind",
        choices=("causal", "masked", "words"),
        default=None,
        help="causal: what comes next (default); masked: fill gaps, looking both ways; words: word vectors",
    )
    parser.add_argument(
        "--validation", nargs="+", type=Path, default=[], metavar="F",
        help="text to validate on (default: the last tenth of each file)",
    )  # fmt: skip
    parser.add_argument(
        "--tokenizer",
        metavar="KIND|FOLDER",
        help="unigram, bpe, characters or words, learned from the text; or a run (where it has two, masked takes the source's, others the "
        "target's); or a folder with GPT-2's vocab.json and merges.txt",
    )
    parser.add_argument(
        "--documents", choices=("files", "paragraphs", "lines"), help="what is one document (default: a file)"
    )
    parser.add_argument(
        "--apart", action="store_true", help="keep documents apart: no block of text holds parts of two of them"
    )
    training_options(parser)


def pretrain(arguments: argparse.Namespace, terminal: Terminal) -> int:
    began = time.monotonic()
    if (code := settled(arguments, terminal)) is not None:
        return code
    how = training_arguments(arguments, terminal)
    if arguments.documents:
        how["settings"] = [*how["settings"], f"text.documents={arguments.documents}"]
    if arguments.apart:
        how["settings"] = [*how["settings"], "text.packed=false"]
    from kente import api

    result = api.pretrain(
        arguments.text,
        arguments.out,
        kind=arguments.kind or "causal",
        validation=arguments.validation,
        tokenizer=arguments.tokenizer,
        began=began,
        **how,
    )
    return trained(result, arguments, terminal)


def generate_options(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="run folder of a language model")
    parser.add_argument("--prompt", default="", metavar="TEXT", help="how the text begins; - reads standard input")
    parser.add_argument("--tokens", type=at_least(1), metavar="N", dest="most", help="tokens written at most (200)")
    parser.add_argument("--samples", type=at_least(1), default=1, metavar="N", help="so many different ones")
    parser.add_argument(
        "--temperature", type=finite, metavar="T", help="below 1 sharper, above 1 wilder, 0 always the likeliest (1)"
    )
    parser.add_argument("--top-k", type=at_least(0), metavar="K", help="only the K likeliest tokens")
    parser.add_argument(
        "--top-p", type=above_zero, metavar="P", help="only the likeliest tokens that together have this probability"
    )
    parser.add_argument(
        "--min-p", type=finite, metavar="P", help="only tokens at least this share as likely as the likeliest"
    )
    parser.add_argument(
        "--repetition", type=above_zero, metavar="R", help="above 1, what stands there already becomes less likely (1)"
    )
    parser.add_argument(
        "--no-repeat", type=at_least(0), metavar="N", help="never write the same N tokens in a row twice"
    )
    parser.add_argument(
        "--stop", action="append", default=[], metavar="TEXT", help="end before this text; may be given several times"
    )
    parser.add_argument("--seed", type=at_least(0), metavar="S", help="the same seed writes the same text (1)")


def generate(arguments: argparse.Namespace, terminal: Terminal) -> int:
    prompt = _prompt(arguments.prompt)
    from kente import api
    from kente.decode.generation import Manner

    given = {name: getattr(arguments, name) for name in MANNER if getattr(arguments, name) is not None}
    manner = Manner(stop=tuple(map(_unescaped, arguments.stop)), **given)
    where = {"device": arguments.device, "threads": arguments.threads, "reporter": terminal}
    writer = api.load_writer(arguments.run, **where)
    terminal.finish()
    if arguments.json:
        print_json([dataclasses.asdict(written) for written in writer.write(prompt, manner, arguments.samples)])
        return 0
    for sample in range(arguments.samples):
        if arguments.samples > 1:
            terminal.say(f"--- {sample + 1} of {arguments.samples} ---")
        print(prompt, end="", flush=True)
        for news in writer.stream(prompt, manner, sample):
            print(news, end="", flush=True)
        print(flush=True)
    return 0


def _prompt(given: str) -> str:
    if given == "-":
        try:
            return sys.stdin.buffer.read().decode("utf-8").removesuffix("\n")
        except UnicodeDecodeError as error:
            raise UsageError(f"the prompt on standard input is not UTF-8 at byte {error.start + 1:,}") from None
    if any("\ud800" <= letter <= "\udfff" for letter in given):
        raise UsageError(f"the prompt {given.encode(errors='backslashreplace').decode()} is not UTF-8")
    return _unescaped(given)


def _unescaped(text: str) -> str:
    """\\n and \\t, which are hard to type in a shell, as what they mean."""
    return text.replace("\\n", "\n").replace("\\t", "\t")
