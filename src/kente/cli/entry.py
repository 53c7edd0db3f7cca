"""The entry: finds the command, runs it, and turns whatever happens into an exit code and a message for people."""

from __future__ import annotations

import difflib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import TypeVar

from kente import __version__
from kente.cli.commands import COMMANDS, GROUPS, Family
from kente.cli.terminal import Terminal
from kente.errors import KenteError, UsageError

EXIT_CODES = "exit codes: 0 done, 1 failure, 2 usage or bad input, 3 diverged, 130 interrupted"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the number returned is the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8")  # corpora are UTF-8, whatever the locale says
    asked = set(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    terminal = Terminal(
        quiet=bool(asked & {"-q", "--quiet"}),
        colour="--no-color" not in asked,
    )
    verbose = bool(asked & {"-v", "--verbose"} or os.environ.get("KENTE_TRACEBACK"))
    try:
        code = _run(arguments, terminal)
        sys.stdout.flush()  # here, where a reader that has gone is noticed, and not while Python shuts down
        return code
    except SystemExit as leaving:  # argparse, after it printed a help text
        return leaving.code if isinstance(leaving.code, int) else 0
    except BrokenPipeError:  # the reader has gone, as in `kente translate ... | head`: nothing to tell it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        _show_traceback(verbose)
        terminal.fail("interrupted")
        return 130
    except KenteError as error:
        _show_traceback(verbose)
        terminal.fail(str(error))
        return error.exit_code
    except MemoryError:
        _show_traceback(verbose)
        terminal.fail("out of memory; smaller batches need less: --set batches.tokens=1024, or a smaller --recipe")
        return 1
    except OSError as error:
        _show_traceback(verbose)
        terminal.fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
        return 1
    except Exception as error:
        _show_traceback(verbose)
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":  # an installation that only translates
            terminal.fail("this command needs torch, which is not installed here; `pip install torch` adds it")
            return 1
        advice = "" if verbose else "Run it again with -v to see where, and "
        terminal.fail(
            f"something broke inside Kente: {type(error).__name__}: {error}\n"
            f"This is a fault of the program, not of yours. {advice or 'Please '}report it to the project's issue tracker, "
            "with the command and the output of `kente info`."
        )
        return 1


def _run(arguments: list[str], terminal: Terminal) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        if len(arguments) > 1 and arguments[1] in COMMANDS:
            arguments = [*arguments[1:], "--help"]
        else:
            print(_overview())
            return 0
    if arguments[0] in ("-V", "--version"):
        print(f"kente {__version__}")
        return 0
    name, *rest = arguments
    command = _find(name, COMMANDS)
    if isinstance(command, Family):
        if not rest or rest[0] in ("-h", "--help", "help"):
            print(command.overview(name))
            return 0
        verb, *rest = rest
        name, command = f"{name} {verb}", _find(verb, command.commands, f"{name} ")
    try:
        return command.run(command.parser(name).read(rest), terminal)
    finally:
        terminal.finish()


Found = TypeVar("Found")


def _find(name: str, commands: dict[str, Found], before: str = "") -> Found:
    """What a word names, or the error that says which words there are."""
    if name not in commands:
        kind = "option" if name.startswith("-") else "command"
        near = difflib.get_close_matches(name, commands, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(commands)}"
        raise UsageError(f"no {kind} called {before}{name}; {hint}")
    return commands[name]


def _overview() -> str:
    commands = "\n".join(
        f"{heading}:\n"
        + "\n".join(f"  {name:<10} {command.summary}" for name, command in COMMANDS.items() if command.group == group)
        for group, heading in GROUPS.items()
    )
    return (
        "Kente makes translators from two text files, on the machine you have.\n\n"
        "usage: kente COMMAND [OPTIONS]          kente COMMAND --help          kente --version\n\n"
        f"{commands}\n\n"
        "first steps:\n"
        "  kente demo\n"
        "  kente check --source train.en --target train.tw\n"
        "  kente train --source train.en --target train.tw --minutes 10 --out runs/en-tw\n"
        '  kente translate runs/en-tw "Good morning."\n\n'
        "common options: --threads N  --device auto|cpu|cuda|mps  -q  -v  --json  --no-color\n" + EXIT_CODES
    )


def _show_traceback(wanted: bool) -> None:
    if wanted:
        traceback.print_exc()
