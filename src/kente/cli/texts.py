"""detect, and `translate --file`: commands about text that is more, or less, than lines to translate."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from kente.cli.arguments import Parser
from kente.cli.printing import one_line, print_json
from kente.cli.terminal import Terminal, ready_lines
from kente.errors import UsageError

SHOWN_WARNINGS = 10
"""Warnings shown about a file; the rest are counted."""


def detect_options(parser: Parser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folders, whose languages are known")
    parser.add_argument("text", nargs="*", metavar="TEXT", help="what to judge (default: lines of standard input)")


def detect(arguments: argparse.Namespace, terminal: Terminal) -> int:
    runs, texts = _runs_and_texts([*arguments.runs, *arguments.text])
    from kente import api

    detector = api.detector(runs, terminal)
    for lines in [texts] if texts else ready_lines(sys.stdin.buffer):
        for line in lines:
            found = detector.detect(line)
            if arguments.json:
                languages = [{"language": code, "confidence": round(sure, 1)} for code, sure in found]
                print_json({"text": line, "languages": languages})
            else:
                print(f"{found[0][0]}\t{found[0][1]:.0f}\t{one_line(line)}")
        sys.stdout.flush()
    return 0


def _runs_and_texts(words: list[str]) -> tuple[list[str], list[str]]:
    """The first is a run; so are all that follow it and are folders. What remains is text."""
    runs = words[:1]
    for word in words[1:]:
        if len(word) > 1000 or not Path(word).is_dir():
            break
        runs.append(word)
    return runs, words[len(runs) :]


def file_options(parser: Parser) -> None:
    parser.add_argument("--file", type=Path, metavar="F", help="translate a file as a whole: .txt .html .po .srt .tsv")
    parser.add_argument("--out", type=Path, metavar="F", help="with --file: where to write (default: standard output)")
    parser.add_argument(
        "--column", metavar="C", help="with a .tsv --file: which column, counted from 1 (default) or by its name"
    )


def check_file_options(arguments: argparse.Namespace) -> None:
    """--out and --column are for --file, which goes with no text and no n-best list."""
    if arguments.file is None:
        for name in ("out", "column"):
            if getattr(arguments, name) is not None:
                raise UsageError(f"--{name} goes with --file F; without it translations go to standard output")
        return
    for name, given in (("TEXT", arguments.text), ("--n-best", arguments.n_best > 1), ("--prefix", arguments.prefix)):
        if given:
            raise UsageError(f"--file translates a whole file; leave out {name}")
    if arguments.out is not None and arguments.out.exists() and arguments.out.samefile(arguments.file):
        raise UsageError(f"--out {arguments.out} is the file to be translated itself; choose another name")


def translate_file(arguments: argparse.Namespace, terminal: Terminal, options: dict[str, Any]) -> int:
    """One file in, one file of the same kind out."""
    from kente import api
    from kente.durable import replace_file
    from kente.text.documents import open_document

    data = arguments.file.read_bytes()
    how: dict[str, Any] = {"column": arguments.column or "1", "lowercase": api.is_lowercase(arguments.run, terminal)}
    open_document(str(arguments.file), data, **how)  # a wrong file is refused before a model is loaded
    translator = api.load(
        arguments.run, device=arguments.device, threads=arguments.threads, reporter=terminal, **options
    )
    if arguments.no_split:
        translator.split_sentences = False
    written = api.translate_document(
        translator, str(arguments.file), data, threads=arguments.threads, reporter=terminal, **how
    )
    for notice in written.warnings[:SHOWN_WARNINGS]:
        terminal.warn(f"line {notice.line:,}: {notice.message}")
    if len(written.warnings) > SHOWN_WARNINGS:
        terminal.warn(f"{len(written.warnings):,} such warnings in all; --json gives each")
    if arguments.out is None:
        sys.stdout.buffer.write(written.data)
    else:
        replace_file(arguments.out, written.data)
    if arguments.json and arguments.out is not None:
        warnings = [{"kind": one.kind, "message": one.message, "line": one.line} for one in written.warnings]
        print_json({"file": str(arguments.out), "bytes": len(written.data), "warnings": warnings})
    return 0
