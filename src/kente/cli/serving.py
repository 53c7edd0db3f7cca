"""serve: runs behind an address that translation clients, programs and browsers know how to use."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from kente.cli.arguments import Parser, above_zero, at_least, engine_option
from kente.cli.printing import print_json
from kente.cli.terminal import Terminal
from kente.errors import UsageError


def serve_options(parser: Parser) -> None:
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders, one for each direction")
    parser.add_argument(
        "--languages",
        action="append",
        default=[],
        metavar="A,B",
        help="codes of a run's source and target, once for each run, in their order (default: as it was trained with)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1); others need --keys")
    parser.add_argument("--port", type=at_least(0), default=5000, metavar="N", help="port (5000); 0 takes a free one")
    parser.add_argument("--keys", type=Path, metavar="F", help="file of API keys, one a line; whoever asks needs one")
    parser.add_argument("--beam", type=at_least(1), metavar="N", help="hypotheses kept alive; 1 is greedy")
    engine_option(parser)
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--rate", type=at_least(0), metavar="N", help="requests a minute for each key or address (no limit)"
    )
    limits.add_argument("--characters", type=at_least(1), metavar="N", help="characters of one request (20000)")
    limits.add_argument("--texts", type=at_least(1), metavar="N", help="texts of one request (100)")
    limits.add_argument("--file-bytes", type=at_least(1), metavar="N", help="bytes of one file (2000000)")
    limits.add_argument(
        "--waiting", type=above_zero, metavar="S", help="seconds of work that may wait; more is refused (2)"
    )
    limits.add_argument("--deadline", type=above_zero, metavar="S", help="seconds a request may take (30)")
    limits.add_argument(
        "--receipt",
        type=above_zero,
        metavar="S",
        help="seconds a request may take to arrive, an answer to be taken (10)",
    )
    limits.add_argument("--connections", type=at_least(1), metavar="N", help="connections open at once (1000)")
    teaching = parser.add_mutually_exclusive_group()
    teaching.add_argument(
        "--corrections", type=Path, metavar="FOLDER", help="where corrections go (default: corrections.tsv in each run)"
    )
    teaching.add_argument("--no-corrections", action="store_true", help="take none; beyond this machine, the default")
    parser.add_argument(
        "--behind-proxy", action="store_true", help="believe a proxy on this machine about the clients' addresses"
    )


GIVEN = (
    "rate",
    "characters",
    "texts",
    "file_bytes",
    "waiting",
    "deadline",
    "receipt",
    "connections",
    "keys",
    "corrections",
)
"""Options that are settings of the same name."""


def serve(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from kente import api
    from kente.serve.languages import codes_of, served
    from kente.serve.logs import Log
    from kente.serve.server import serve as run
    from kente.serve.settings import Settings
    from kente.serve.wording import Detector

    given = {name: getattr(arguments, name) for name in GIVEN if getattr(arguments, name) is not None}
    settings = Settings(
        host=arguments.host,
        port=arguments.port,
        teachable=False if arguments.no_corrections else None,
        behind_proxy=arguments.behind_proxy,
        **given,
    )
    if arguments.languages and len(arguments.languages) != len(arguments.runs):
        raise UsageError(
            f"{len(arguments.runs)} runs but {len(arguments.languages)} times --languages; give it once for each run, in their order"
        )
    codes: list[tuple[str, str] | None] = [codes_of(text) for text in arguments.languages]
    codes = codes or [None] * len(arguments.runs)
    runs = [served(path, code, terminal) for path, code in zip(arguments.runs, codes, strict=True)]
    pairs, detectors = [pair for pair, _ in runs], [known for _, known in runs if known is not None]
    detector = Detector.combined(detectors) if len(detectors) == len(pairs) else None
    where: dict[str, Any] = {"device": arguments.device, "threads": arguments.threads, "reporter": terminal}
    load = partial(api.load, beam=arguments.beam, engine=arguments.engine, **where)

    def said(address: str) -> None:
        terminal.finish()
        if arguments.json:
            print_json({"address": address, "pairs": [str(pair) for pair in pairs]})
        else:
            print(f"{address} translates {', '.join(map(str, pairs))}; Ctrl-C stops it", flush=True)

    run(pairs, detector, settings, load, Log(None if arguments.quiet else sys.stderr), said)
    return 0
