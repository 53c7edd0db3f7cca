"""export: a run as a model of another program."""

from __future__ import annotations

import argparse
from pathlib import Path

from kente.cli.arguments import Parser, two_fields
from kente.cli.printing import print_json, show
from kente.cli.terminal import Terminal
from kente.errors import UsageError


def export_options(parser: Parser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder")
    parser.add_argument(
        "--to",
        choices=("ctranslate2", "huggingface", "argos", "onnx"),
        help="the program (default: say which of them can carry the run)",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder to make")
    parser.add_argument(
        "--numbers",
        choices=("float32", "int8"),
        default="float32",
        help="int8 is a quarter of the size, and not quite the same answers; for ctranslate2 and argos (float32)",
    )
    parser.add_argument(
        "--languages",
        type=two_fields,
        metavar="A,B",
        help="argos: codes of source and target (default: what the corpus's file names end with)",
    )
    parser.add_argument("--names", type=two_fields, metavar="A,B", help="argos: what these languages are called")


def export(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from kente import api

    if arguments.to is None:
        found = api.carriers(arguments.run)
        if arguments.json:
            print_json(found)
            return 0
        for program, why in found.items():
            print(f"{program:<12} {'yes' if why is None else f'no: {why}'}")
        terminal.say(f"next: kente export {arguments.run} --to PROGRAM --out DIR")
        return 0
    if arguments.out is None:
        raise UsageError("where should it go? --out DIR names a folder that is made")
    exported = api.export(
        arguments.run,
        arguments.to,
        arguments.out,
        numbers=arguments.numbers,
        languages=arguments.languages,
        names=arguments.names,
        reporter=terminal,
    )
    terminal.finish()
    show(exported, arguments.json)
    return 0
