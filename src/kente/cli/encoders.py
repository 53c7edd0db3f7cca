"""classify, embed, contrast, match and cluster: what one does with an encoder."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from kente.cli.arguments import Parser, at_least, require_beside, two_fields
from kente.cli.printing import one_line, print_json, show
from kente.cli.terminal import Terminal, ready_lines
from kente.cli.training import settled, trained, training_arguments, training_options
from kente.errors import UsageError


def _where(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    return {"device": arguments.device, "threads": arguments.threads, "reporter": terminal}


def _labelled_options(parser: Parser, what: str) -> None:
    parser.add_argument(
        "--labelled",
        nargs="+",
        type=Path,
        default=[],
        metavar="F",
        help=f"{what}: a label and a text in each row (.tsv, .jsonl)",
    )
    parser.add_argument(
        "--fields", type=two_fields, metavar="LABEL,TEXT", help="columns by number or name, or keys (1,2 or label,text)"
    )


def _pooling_option(parser: Parser) -> None:
    parser.add_argument(
        "--pooling",
        choices=("mean", "cls", "attention"),
        help="one vector for a text: the mean of its words', that of its opening mark, or learned weights (default: as trained, else mean)",
    )


def _encoder_option(parser: Parser) -> None:
    parser.add_argument(
        "--encoder",
        type=Path,
        metavar="RUN",
        help="run to begin from: a masked encoder, a translator, an imported BERT ... (default: begin at random)",
    )


def _checked(texts: list[str]) -> list[str]:
    for text in texts:
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise UsageError(f"the text {text.encode(errors='backslashreplace').decode()} is not UTF-8")
    return texts


# ---------------------------------------------------------------- classify


def classify_train_options(parser: Parser) -> None:
    _labelled_options(parser, "texts to learn from")
    parser.add_argument(
        "--validation",
        nargs="+",
        type=Path,
        default=[],
        metavar="F",
        help="texts to validate on (default: some are held out)",
    )
    _encoder_option(parser)
    _pooling_option(parser)
    training_options(parser)


def classify_train(arguments: argparse.Namespace, terminal: Terminal) -> int:
    began = time.monotonic()
    if (code := settled(arguments, terminal)) is not None:
        return code
    how = training_arguments(arguments, terminal)
    from kente import api

    result = api.classify_train(
        arguments.labelled,
        arguments.out,
        encoder=arguments.encoder,
        validation=arguments.validation,
        fields=arguments.fields,
        pooling=arguments.pooling,
        began=began,
        **how,
    )
    return trained(result, arguments, terminal)


def classify_predict_options(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="run folder of a classifier")
    parser.add_argument("text", nargs="*", metavar="TEXT", help="what to classify (default: lines of standard input)")
    parser.add_argument("--all", action="store_true", help="the probability of every class, likeliest first")


def classify_predict(arguments: argparse.Namespace, terminal: Terminal) -> int:
    texts = _checked(arguments.text)
    from kente import api

    classifier = api.load_classifier(arguments.run, **_where(arguments, terminal))
    for lines in [texts] if texts else ready_lines(sys.stdin.buffer):
        for found in classifier.predict(lines):
            if arguments.json:
                print_json(found.as_dict())
            elif arguments.all:
                ranked = sorted(found.probabilities.items(), key=lambda entry: -entry[1])
                print("\t".join(f"{one_line(label)} {chance:.3f}" for label, chance in ranked))
            else:
                print(f"{one_line(found.label)}\t{found.probability:.3f}")
        sys.stdout.flush()
    return 0


def classify_report_options(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="run folder of a classifier")
    _labelled_options(parser, "texts to test on")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="also write a page with the confusion matrix there")


def classify_report(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if not arguments.labelled:
        raise UsageError("no labelled texts given: --labelled FILE names what to test on")
    from kente import api

    where = _where(arguments, terminal)
    report = api.classify_report(arguments.run, arguments.labelled, arguments.out, fields=arguments.fields, **where)
    terminal.finish()
    show(report, arguments.json)
    if arguments.out:
        terminal.say(f"page: {arguments.out / 'report.html'}")
    return 0


# ---------------------------------------------------------------- embed and contrast


def embed_options(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="run folder: anything that reads text")
    parser.add_argument("--text", type=Path, metavar="F", help="texts, a line each (default: standard input)")
    parser.add_argument("--out", type=Path, metavar="F", help="vectors.npy, or .jsonl with the texts beside them")
    _pooling_option(parser)
    parser.add_argument("--unit", action="store_true", help="vectors of length one, whose products are cosines")
    parser.add_argument(
        "--similarity",
        type=Path,
        metavar="F",
        help="instead: how well cosines agree with people, on rows of score, text, text",
    )
    parser.add_argument(
        "--fields",
        type=three_fields,
        metavar="A,B,C",
        help="columns of --similarity by number or name, or keys (1,2,3)",
    )


def three_fields(text: str) -> tuple[str, str, str]:
    names = [name.strip() for name in text.split(",")]
    if len(names) != 3 or not all(names):
        raise argparse.ArgumentTypeError(f"{text!r} should be three names such as 1,2,3")
    return names[0], names[1], names[2]


def embed(arguments: argparse.Namespace, terminal: Terminal) -> int:
    require_beside(arguments, "text out unit", "similarity", unless=True)
    require_beside(arguments, "fields", "similarity")
    if arguments.similarity:
        return _similarity(arguments, terminal)
    if arguments.out is None:
        raise UsageError("where should the vectors go? --out vectors.npy, or --out vectors.jsonl")
    from kente import api
    from kente.data.corpus import read_lines

    if arguments.text:
        texts = list(read_lines(arguments.text))
    else:
        texts = [line for lines in ready_lines(sys.stdin.buffer) for line in lines]
    how = {"pooling": arguments.pooling, "unit_length": arguments.unit, **_where(arguments, terminal)}
    vectors = api.embed(arguments.run, texts, arguments.out, **how)
    terminal.finish()
    if arguments.json:
        print_json({"texts": len(vectors), "width": vectors.shape[1], "out": arguments.out})
    else:
        print(f"{arguments.out}: {len(vectors):,} vectors of {vectors.shape[1]:,} numbers")
    return 0


def _similarity(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from kente import api

    how = {"fields": arguments.fields, "pooling": arguments.pooling, **_where(arguments, terminal)}
    score = api.similarity(arguments.run, arguments.similarity, **how)
    terminal.finish()
    if arguments.json:
        print_json({"spearman": score.value, "signature": score.signature})
    else:
        print(
            f"Spearman {score.value:.4f} | run {Path(arguments.run).name} | {arguments.similarity.name} | {score.signature}"
        )
    return 0


def contrast_options(parser: Parser) -> None:
    _encoder_option(parser)
    parser.add_argument(
        "--pairs",
        nargs="+",
        type=Path,
        default=[],
        metavar="F",
        help="two texts that mean the same in each row (.tsv, .jsonl)",
    )
    parser.add_argument(
        "--text",
        nargs="+",
        type=Path,
        default=[],
        metavar="F",
        help="or plain text, a line each: dropout makes the pairs",
    )
    parser.add_argument("--fields", type=two_fields, metavar="A,B", help="names of the two texts in --pairs files")
    parser.add_argument(
        "--similar", type=Path, metavar="F", help="score, text, text in each row: the best weights are chosen by it"
    )
    _pooling_option(parser)
    training_options(parser)


def contrast(arguments: argparse.Namespace, terminal: Terminal) -> int:
    began = time.monotonic()
    if (code := settled(arguments, terminal)) is not None:
        return code
    require_beside(arguments, "fields", "text", unless=True)
    how = training_arguments(arguments, terminal)
    from kente import api

    result = api.contrast(
        arguments.out,
        encoder=arguments.encoder,
        pairs=arguments.pairs,
        text=arguments.text,
        similar=arguments.similar,
        fields=arguments.fields,
        pooling=arguments.pooling,
        began=began,
        **how,
    )
    return trained(result, arguments, terminal)


# ---------------------------------------------------------------- match and cluster


def match_options(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="run folder: anything that reads text")
    parser.add_argument("text", nargs="*", metavar="TEXT", help="what to look for")
    parser.add_argument("--queries", type=Path, metavar="F", help="or a file of such texts, a line each")
    parser.add_argument(
        "--corpus",
        type=Path,
        metavar="F",
        help="texts to look through, a line each (default, for word vectors: their words)",
    )
    parser.add_argument("--vectors", type=Path, metavar="F.npy", help="vectors that `kente embed` made of the corpus")
    parser.add_argument("--nearest", type=at_least(1), default=5, metavar="N", help="neighbours of each (5)")
    parser.add_argument(
        "--index", choices=("exact", "hnsw", "faiss"), default="exact",
        help="exact (default); hnsw or faiss for millions, with hnswlib or faiss-cpu installed",
    )  # fmt: skip
    _pooling_option(parser)


def match(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if arguments.vectors and not arguments.corpus:
        raise UsageError(f"--vectors {arguments.vectors} needs --corpus beside it: the texts they were made of")
    from kente import api
    from kente.data.corpus import read_lines

    queries = _checked(arguments.text) + (list(read_lines(arguments.queries)) if arguments.queries else [])
    corpus = list(read_lines(arguments.corpus)) if arguments.corpus else None
    found = api.match(
        arguments.run,
        queries,
        corpus,
        nearest=arguments.nearest,
        vectors=arguments.vectors,
        index=arguments.index,
        pooling=arguments.pooling,
        **_where(arguments, terminal),
    )
    terminal.finish()
    for answer in found:
        if arguments.json:
            print_json(answer.as_dict())
            continue
        print(one_line(answer.query))
        for near in answer.neighbours:
            print(f"  {near.cosine:.3f}\t{near.line}\t{one_line(near.text)}")
    return 0


def cluster_options(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="run folder: anything that reads text")
    parser.add_argument("--text", type=Path, metavar="F", help="texts, a line each")
    _labelled_options(parser, "or texts whose labels are known, to be judged by them")
    parser.add_argument("--clusters", type=at_least(1), metavar="K", help="how many (default: as labels, or chosen)")
    parser.add_argument(
        "--method", choices=("kmeans", "hdbscan"), default="kmeans", help="kmeans (default), or hdbscan: dense places"
    )
    parser.add_argument("--smallest", type=at_least(2), metavar="N", help="hdbscan: texts in a cluster (10)")
    parser.add_argument("--seed", type=at_least(0), default=1, metavar="S", help="everything random follows from it")
    parser.add_argument(
        "--out", type=Path, default=Path("clusters"), metavar="FOLDER", help="where page and table go (clusters)"
    )
    _pooling_option(parser)


def cluster(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if bool(arguments.text) == bool(arguments.labelled):
        raise UsageError("give texts (--text F), or texts with labels (--labelled F), one of the two")
    require_beside(arguments, "fields", "text", unless=True)
    from kente import api
    from kente.data.labelled import labelled, read_texts, usable

    labels = None
    if arguments.text:
        texts = read_texts(arguments.text)
    else:
        pairs = [pair for path in arguments.labelled for pair in labelled(path, arguments.fields)]
        name = " + ".join(map(str, arguments.labelled))
        known = usable(pairs, name)
        known.say_dropped(name, terminal)
        texts, labels = list(known.texts), list(known.labels)
    found = api.cluster(
        arguments.run,
        texts,
        arguments.out,
        labels=labels,
        clusters=arguments.clusters,
        method=arguments.method,
        smallest=arguments.smallest,
        pooling=arguments.pooling,
        seed=arguments.seed,
        **_where(arguments, terminal),
    )
    terminal.finish()
    show(found, arguments.json)
    return 0
