"""The commands: what each takes, and how it calls `api` and prints. Results go to standard output, all else to the terminal.

Nothing heavy is imported before a command runs: torch takes seconds, `--help` should not.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kente.cli.arguments import (
    Parser,
    above_zero,
    at_least,
    common_options,
    corpus_of,
    data_options,
    engine_option,
    fields_option,
    finite,
    languages_option,
    tokenize_options,
    training_corpus,
)
from kente.cli.comparing import compare, compare_options, lecture, lecture_options, report, report_options
from kente.cli.exporting import export, export_options
from kente.cli.looking import look, look_options
from kente.cli.printing import one_line, plain, print_json, show
from kente.cli.serving import serve, serve_options
from kente.cli.terminal import Terminal, duration, ready_lines
from kente.cli.texts import check_file_options, detect, detect_options, file_options, translate_file
from kente.errors import UsageError

if TYPE_CHECKING:
    from kente.api import TrainResult
    from kente.decode.translator import Translation

SHOWN_WARNINGS = 10
"""Lines whose warnings are shown by `translate`; the rest are counted."""
DECODE_OPTIONS = ("beam", "engine", "length_penalty", "sample", "temperature", "top_k", "top_p", "seed")


# ---------------------------------------------------------------- commands


def _demo_options(parser: Parser) -> None:
    parser.add_argument("--out", type=Path, default=Path("runs/demo"), metavar="RUN", help="run folder (runs/demo)")
    parser.add_argument("--minutes", type=above_zero, metavar="M", help="how long to train, all three models together")


def _demo(arguments: argparse.Namespace, terminal: Terminal) -> int:
    began = time.monotonic()
    from kente import api

    given = {} if arguments.minutes is None else {"minutes": arguments.minutes}
    where: dict[str, Any] = {"device": arguments.device, "threads": arguments.threads, "reporter": terminal}
    result = api.demo(arguments.out, began=began, **where, **given)
    terminal.finish()
    if arguments.json:
        print_json(result)
        return 0
    for sample in result["samples"]:
        print(f"  {sample['source']}\n    {sample['translation']}")
    print("\n".join(("", *result["lines"], "", "next:", *(f"  {command}" for command in result["next"]))), flush=True)
    return 0


def _check_options(parser: Parser) -> None:
    data_options(parser)
    data_options(parser, "validation", "validation set: ")
    data_options(parser, "test", "test set, to find what leaks into training: ")
    fields_option(parser)


def _check(arguments: argparse.Namespace, terminal: Terminal) -> int:
    data = training_corpus(arguments)
    from kente import api

    report = api.check(data, corpus_of(arguments, "validation"), corpus_of(arguments, "test"), terminal)
    terminal.finish()
    show(report, arguments.json)
    return 1 if report.worst == "error" else 0


def _train_options(parser: Parser) -> None:
    from kente.configfile import recipes

    data_options(parser)
    data_options(parser, "validation", "validation set (default: split off the corpus): ")
    fields_option(parser)
    languages_option(parser)
    parser.add_argument("--out", type=Path, metavar="RUN", help="run folder to make")
    parser.add_argument("--resume", type=Path, metavar="RUN", help="continue a run from its newest good checkpoint")
    parser.add_argument(
        "--recipe", metavar="NAME|FILE.toml", help="settings to start from: " + (", ".join(recipes()) or "a TOML file")
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--minutes", type=above_zero, metavar="M", help="choose size and schedule so as to land in M minutes"
    )
    length.add_argument("--updates", type=at_least(1), metavar="N", help="stop after N updates")
    parser.add_argument("--save-every", type=at_least(1), metavar="K", help="updates between checkpoints")
    parser.add_argument("--seed", type=at_least(0), metavar="S", help="everything random follows from it")
    parser.add_argument(
        "--set", action="append", default=[], metavar="A.B=C", dest="settings", help="one setting; --set help lists all"
    )
    parser.add_argument("--force", action="store_true", help="replace the run that is in --out already")
    parser.add_argument(
        "--corrections", type=Path, metavar="F", help="what people taught a served run, to be mixed in (.tsv)"
    )


def _train(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if "help" in arguments.settings:
        return _list_settings()
    began = time.monotonic()  # before torch is imported: --minutes counts that too
    length = {"minutes": arguments.minutes, "updates": arguments.updates}
    where: dict[str, Any] = {"device": arguments.device, "threads": arguments.threads, "reporter": terminal}
    where["began"] = began
    if arguments.resume:
        allowed = {"resume", "minutes", "updates", "threads", "device", "quiet", "verbose", "json", "no_color"}
        for name, value in vars(arguments).items():
            if name not in allowed and value not in (None, False, []):
                option = "set" if name == "settings" else name.replace("_", "-")
                raise UsageError(f"--resume goes on with the run's own data and settings; leave out --{option}")
        from kente import api

        return _trained(api.resume(arguments.resume, **length, **where), arguments, terminal)
    if arguments.out is None:
        raise UsageError("where should the run go? --out RUN names a folder, for example --out runs/first")
    data, validation = training_corpus(arguments), corpus_of(arguments, "validation")
    from kente import api

    result = api.train(
        data,
        arguments.out,
        validation=validation,
        recipe=arguments.recipe,
        save_every=arguments.save_every,
        seed=arguments.seed,
        settings=arguments.settings,
        force=arguments.force,
        corrections=arguments.corrections,
        **length,
        **where,
    )
    return _trained(result, arguments, terminal)


def _list_settings() -> int:
    from kente.configfile import listed_settings

    for name, default, text, condition in listed_settings():
        only = f"  (for {condition})" if condition else ""
        print(f"{name} = {json.dumps(default)}{only}\n    {text}")
    return 0


def _trained(result: TrainResult, arguments: argparse.Namespace, terminal: Terminal) -> int:
    terminal.finish()
    if arguments.json:
        print_json(result.as_dict())
        return 0
    run, best = shlex.quote(str(result.run.path)), result.best
    score = f", best validation {best.name} {best.value:.2f} | {best.signature}".rstrip(" |") if best else ""
    print(f"{run}: {result.stopped} after {result.step:,} updates in {duration(result.seconds)}{score}")
    terminal.say(f'next: kente translate {run} "..."    kente evaluate {run} --source F --reference F')
    return 0


def _translate_options(parser: Parser) -> None:
    from kente.configfile import help_texts

    helps = {name.removeprefix("decode."): text.replace("%", "%%") for name, text in help_texts().items()}
    parser.add_argument("run", metavar="RUN", help="run folder")
    parser.add_argument("text", nargs="*", metavar="TEXT", help="what to translate (default: lines of standard input)")
    parser.add_argument("--beam", type=at_least(1), metavar="N", help=helps["beam"])
    engine_option(parser)
    parser.add_argument("--n-best", type=at_least(1), default=1, metavar="N", help="show the N best translations")
    parser.add_argument("--length-penalty", type=finite, metavar="P", help=helps["length_penalty"])
    parser.add_argument("--prefix", metavar="TEXT", help="each translation begins with this")
    parser.add_argument("--sample", action="store_true", default=None, help=helps["sample"])
    parser.add_argument("--temperature", type=above_zero, metavar="T", help=helps["temperature"])
    parser.add_argument("--top-k", type=at_least(0), metavar="K", help=helps["top_k"])
    parser.add_argument("--top-p", type=above_zero, metavar="P", help=helps["top_p"])
    parser.add_argument("--seed", type=at_least(0), metavar="S", help=helps["seed"])
    parser.add_argument("--no-split", action="store_true", help="take a line as one sentence, however many it holds")
    file_options(parser)


def _translate(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if not arguments.sample:
        for name in ("temperature", "top_k", "top_p"):
            if getattr(arguments, name) is not None:
                raise UsageError(f"--{name.replace('_', '-')} is for drawing at random; add --sample")
    for text in arguments.text:
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise UsageError(f"the text {text.encode(errors='backslashreplace').decode()} is not UTF-8")
    check_file_options(arguments)
    options = {name: getattr(arguments, name) for name in DECODE_OPTIONS if getattr(arguments, name) is not None}
    if arguments.file is not None:
        return translate_file(arguments, terminal, options)
    from kente import api

    if not arguments.text and sys.stdin.isatty():
        terminal.say("One line, one translation; Ctrl-D ends.")
    where = {"device": arguments.device, "threads": arguments.threads, "reporter": terminal}
    translator = api.load(arguments.run, **where, **options)
    how = {"n_best": arguments.n_best, "prefix": arguments.prefix, "split": False if arguments.no_split else None}
    line = doubtful = 0
    for lines in [arguments.text] if arguments.text else ready_lines(sys.stdin.buffer):
        for translation in api.translate_lines(translator, lines, arguments.threads, **how):
            line += 1
            doubtful += bool(translation.warnings)
            if translation.warnings and doubtful <= SHOWN_WARNINGS:
                terminal.warn(f"line {line:,}: {'; '.join(translation.warnings)}")
            _print_translation(translation, line, arguments)
        sys.stdout.flush()
    if doubtful > SHOWN_WARNINGS:
        terminal.warn(f"{doubtful:,} of {line:,} lines have such warnings; --json gives each beside its line")
    return 0


def _print_translation(translation: Translation, line: int, arguments: argparse.Namespace) -> None:
    best = [(translation.text, translation.score), *((other.text, other.score) for other in translation.alternatives)]
    if arguments.json:
        print_json(
            {
                "source": translation.source,
                "text": translation.text,
                "score": translation.score,
                "alternatives": [{"text": text, "score": score} for text, score in best[1:]],
                "warnings": list(translation.warnings),
            }
        )
    elif arguments.n_best > 1:
        for text, score in best[: arguments.n_best]:
            print(f"{line}\t{score:.4f}\t{one_line(text)}")
    else:
        print(one_line(translation.text))


def _evaluate_options(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="run folder")
    parser.add_argument("--source", type=Path, metavar="F", required=True, help="text to translate, a line each")
    parser.add_argument(
        "--reference", type=Path, metavar="F", required=True, help="what it should become, line by line"
    )
    parser.add_argument("--beam", type=at_least(1), metavar="N", help="hypotheses kept alive; 1 is greedy")
    engine_option(parser)
    parser.add_argument("--limit", type=at_least(1), metavar="N", help="only the first N lines")
    tokenize_options(parser)


def _evaluate(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from kente import api

    evaluation = api.evaluate(
        arguments.run,
        arguments.source,
        arguments.reference,
        beam=arguments.beam,
        engine=arguments.engine,
        tokenize=arguments.tokenize,
        lowercase=arguments.lowercase,
        limit=arguments.limit,
        device=arguments.device,
        threads=arguments.threads,
        reporter=terminal,
    )
    terminal.finish()
    show(evaluation, arguments.json)
    return 0


def _score_options(parser: Parser) -> None:
    parser.add_argument("--hypothesis", type=Path, metavar="F", required=True, help="translations, a line each")
    parser.add_argument("--reference", type=Path, metavar="F", required=True, help="what they should be, line by line")
    tokenize_options(parser)


def _score(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from kente import api

    evaluation = api.score(arguments.hypothesis, arguments.reference, arguments.tokenize, arguments.lowercase)
    show(evaluation, arguments.json)
    return 0


def _summary_options(parser: Parser) -> None:
    parser.add_argument("what", metavar="RUN|RECIPE", help="run folder, recipe name or TOML file")


def _summary(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from kente import api

    show(api.summary(arguments.what), arguments.json)
    return 0


def _info_options(parser: Parser) -> None:
    parser.add_argument("run", nargs="?", type=Path, metavar="RUN", help="run folder (default: about this machine)")


def _info(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from kente import api

    facts = api.info(arguments.run)
    if arguments.json:
        print_json(facts)
    else:
        width = max(map(len, facts), default=0)
        for name, value in facts.items():
            print(f"{name:<{width}}  {_fact(value)}")
    return 0


def _fact(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)


# ---------------------------------------------------------------- the table of them


@dataclass(frozen=True)
class Command:
    """A word after `kente`."""

    summary: str
    examples: tuple[str, ...]
    options: Callable[[Parser], None]
    run: Callable[[argparse.Namespace, Terminal], int]

    def parser(self, name: str) -> Parser:
        parser = Parser(
            prog=f"kente {name}",
            description=self.summary,
            epilog="examples:\n" + "\n".join(f"  {example}" for example in self.examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.options(parser)
        common_options(parser)
        return parser


COMMANDS = {
    "demo": Command(
        "Train a translator on the embedded English-French corpus, show what it can do, and what to type next.",
        ("kente demo", "kente demo --minutes 1 --out runs/quick"),
        _demo_options,
        _demo,
    ),
    "check": Command(
        "Look a corpus over before training: line counts, shifted lines, leaks, duplicates, scripts, each with its remedy.",
        (
            "kente check --source train.en --target train.tw",
            "kente check --pairs corpus.tsv.gz --test-source test.en --test-target test.tw --json",
        ),
        _check_options,
        _check,
    ),
    "train": Command(
        "Make a translator from a parallel text, or go on with a run that was stopped.",
        (
            "kente train --source train.en --target train.tw --minutes 10 --out runs/en-tw",
            "kente train --pairs corpus.jsonl --fields en,tw --recipe small --set model.dropout=0.3 --out runs/small",
            "kente train --resume runs/en-tw",
            "kente train --source train.en --target train.tw --corrections runs/en-tw/corrections.tsv --out runs/better",
            "kente train --set help",
        ),
        _train_options,
        _train,
    ),
    "translate": Command(
        "Translate the text given, or standard input line by line: one line out for each line in.",
        (
            'kente translate runs/en-tw "Good morning."',
            "kente translate runs/en-tw < news.en > news.tw",
            'kente translate runs/en-tw --n-best 3 --json "How are you?"',
            'kente translate runs/en-tw --sample --temperature 0.8 --seed 7 "Tell me a story."',
            "kente translate runs/en-tw --file film.srt --out film.tw.srt",
        ),
        _translate_options,
        _translate,
    ),
    "detect": Command(
        "Which of the runs' languages is a text in? Learnt from their own corpora.",
        (
            'kente detect runs/en-tw "Maakye"',
            "kente detect runs/en-tw runs/en-ha < lines.txt",
            'kente detect runs/en-tw --json "Good morning."',
        ),
        detect_options,
        detect,
    ),
    "evaluate": Command(
        "Translate a test set and score it: BLEU, chrF++ and TER with signature and interval, loss and perplexity.",
        (
            "kente evaluate runs/en-tw --source test.en --reference test.tw",
            "kente evaluate runs/en-tw --source test.en --reference test.tw --tokenize none --beam 5 --json",
        ),
        _evaluate_options,
        _evaluate,
    ),
    "score": Command(
        "Score translations that are there already, from Kente or elsewhere.",
        ("kente score --hypothesis out.tw --reference test.tw", "kente score --hypothesis a --reference b --json"),
        _score_options,
        _score,
    ),
    "compare": Command(
        "Train several models on the same data in the same time, and put them side by side in one page.",
        (
            "kente compare --out compare",
            "kente compare --source train.en --target train.tw --models gru,gru-attention,transformer --minutes-each 10 --out compare",
            "kente compare --updates-each 2000 --models transformer,transformer-rotary,mine.toml --out positions",
        ),
        compare_options,
        compare,
    ),
    "report": Command(
        "The comparison page of runs that are trained already.",
        (
            "kente report runs/a runs/b --source test.en --reference test.tw --out report",
            "kente report compare/gru compare/transformer --out report --json",
        ),
        report_options,
        report,
    ),
    "lecture": Command(
        "The claims of the lectures as experiments: each ends in a picture and a sentence that says what was found.",
        (
            "kente lecture",
            "kente lecture gradients --out lecture",
            "kente lecture all",
            "kente lecture mask --run runs/demo",
        ),
        lecture_options,
        lecture,
    ),
    "serve": Command(
        "Serve runs over HTTP, to LibreTranslate's clients, to programs and to browsers; SIGTERM or Ctrl-C ends it in good order.",
        (
            "kente serve runs/en-tw",
            "kente serve runs/en-tw runs/tw-en --port 8080",
            "kente serve runs/mine --languages en,ak --host 0.0.0.0 --keys keys.txt --rate 60",
        ),
        serve_options,
        serve,
    ),
    "look": Command(
        "What models attend to while they translate a sentence, every layer and head: a page, a picture, numbers, or in the terminal.",
        (
            'kente look runs/en-tw "Good morning." --out look.html',
            'kente look runs/gru runs/conv runs/transformer "The old cat sleeps." --out look.html',
            'kente look runs/en-tw "Good morning." --target "Maakye." --layer 3 --head 2 --out figure.svg',
            "kente look runs/demo --example 7",
        ),
        look_options,
        look,
    ),
    "export": Command(
        "Write a run as a model of CTranslate2, Hugging Face's transformers, Argos Translate or onnxruntime.",
        (
            "kente export runs/en-tw",
            "kente export runs/en-tw --to huggingface --out exports/en-tw",
            "kente export runs/en-tw --to argos --languages en,tw --names English,Twi --numbers int8 --out exports/argos",
        ),
        export_options,
        export,
    ),
    "summary": Command(
        "The layers of a model with their shapes and parameters.",
        ("kente summary runs/en-tw", "kente summary base --json"),
        _summary_options,
        _summary,
    ),
    "info": Command(
        "Facts about a run (step, parameters, fingerprint of the weights) or about this machine.",
        ("kente info runs/en-tw --json", "kente info"),
        _info_options,
        _info,
    ),
}
