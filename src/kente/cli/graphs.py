"""graph train, graph predict and graph look: learning on nodes that are linked to each other."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kente.cli.arguments import Parser
from kente.cli.printing import print_json
from kente.cli.terminal import Terminal
from kente.cli.training import settled, trained, training_arguments, training_options
from kente.durable import replace_file
from kente.errors import UsageError

if TYPE_CHECKING:
    from kente.api import GraphFiles
    from kente.runs import Score


def _graph_options(parser: Parser, what: str = "") -> None:
    parser.add_argument("--nodes", type=Path, metavar="F", help=f"{what}.csv or .tsv with a row for each node")
    parser.add_argument("--edges", type=Path, metavar="F", help=f"{what}.csv or .tsv with two ids in each row")
    parser.add_argument(
        "--columns", type=_names, metavar="A,B,...", help="names of the nodes' columns, if no header has them"
    )


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise argparse.ArgumentTypeError(f"{text!r} should be names such as id,label,features")
    return names


def _files(arguments: argparse.Namespace) -> GraphFiles | None:
    """The graph that --nodes and --edges name; None when neither was given."""
    if (arguments.nodes is None) != (arguments.edges is None):
        given, missing = ("nodes", "edges") if arguments.nodes else ("edges", "nodes")
        raise UsageError(f"--{given} {getattr(arguments, given)} needs --{missing} beside it: a graph is two files")
    if arguments.nodes is None:
        if arguments.columns and not getattr(arguments, "resume", None):
            raise UsageError(f"--columns {','.join(arguments.columns)} names columns of --nodes, which is missing")
        return None
    from kente.api import GraphFiles

    return GraphFiles(arguments.nodes, arguments.edges, arguments.columns)


def train_options(parser: Parser) -> None:
    _graph_options(parser)
    training_options(parser)


def train(arguments: argparse.Namespace, terminal: Terminal) -> int:
    began = time.monotonic()
    files = _files(arguments)
    if (code := settled(arguments, terminal)) is not None:
        return code
    if files is None:
        raise UsageError("no graph given: --nodes FILE --edges FILE")
    how = training_arguments(arguments, terminal)
    from kente import api

    result = api.graph_train(files, arguments.out, began=began, **how)
    scores = api.graph_predict(result.run.path, device=arguments.device, threads=arguments.threads).scores()
    if arguments.json:
        terminal.finish()
        print_json({**result.as_dict(), "scores": {name: vars(score) for name, score in scores.items()}})
        return 0
    code = trained(result, arguments, terminal)
    print("\n".join(_told(scores)), flush=True)
    return code


def _told(scores: dict[str, Score]) -> list[str]:
    return [
        f"accuracy {score.value:.1f} % ({score.low:.1f} to {score.high:.1f}) | {name} | {score.signature}"
        for name, score in scores.items()
    ]


def predict_options(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="run folder")
    _graph_options(parser, "a new graph (default: the one trained on): ")
    parser.add_argument("--out", type=Path, metavar="F", help="write the answers there (default: standard output)")


def predict(arguments: argparse.Namespace, terminal: Terminal) -> int:
    files = _files(arguments)
    from kente import api

    where: dict[str, Any] = {"device": arguments.device, "threads": arguments.threads, "reporter": terminal}
    answers = api.graph_predict(arguments.run, files, **where)
    terminal.finish()
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        text = "\n".join(["id\tclass\tprobability", *answers.lines()]) + "\n"
        replace_file(arguments.out, text.encode())
    if arguments.json:
        print_json(answers.as_dict())
    elif not arguments.out:
        print("\n".join(answers.lines()), flush=True)
    for line in _told(answers.scores()):
        terminal.say(line)
    return 0


def look_options(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="run folder")
    parser.add_argument("ids", nargs="*", metavar="NODE", help="ids of nodes to look at (default: some telling ones)")
    _graph_options(parser, "a new graph (default: the one trained on): ")
    parser.add_argument("--out", type=Path, default=Path("graph.html"), metavar="F", help="the page (graph.html)")


def look(arguments: argparse.Namespace, terminal: Terminal) -> int:
    files = _files(arguments)
    from kente import api

    where: dict[str, Any] = {"device": arguments.device, "threads": arguments.threads, "reporter": terminal}
    seen = api.graph_look(arguments.run, arguments.ids, arguments.out, files=files, **where)
    terminal.finish()
    if arguments.json:
        print_json(seen.as_dict())
    else:
        print("\n".join(seen.lines()), flush=True)
    return 0
