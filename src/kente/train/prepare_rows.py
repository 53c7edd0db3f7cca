"""From labelled texts, or texts to be compared, to what training reads: a tokenizer and framed ids on disk."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kente.config import Config
from kente.data.corpus import Corpus, read_lines
from kente.data.framing import Framing
from kente.data.labelled import Labelled, classes_of, groups_of, labelled, numbered, usable
from kente.data.rows import RowStore
from kente.data.splitting import default_validation_size, hold_out
from kente.data.tokenizer import Tokenizers, train_tokenizer
from kente.errors import CorpusError
from kente.reporting import SILENT, Reporter
from kente.runs import Run

Fields = tuple[str, str] | None

REMEDY = "--set batches.max_length=N reads more, as far as the encoder can"


def clear(run: Run) -> None:
    """Nothing is left of a preparation that was cut short."""
    for name in ("data", "tokenizer"):
        shutil.rmtree(run.path / name, ignore_errors=True)


def give_tokenizer(
    run: Run, tokenizers: Tokenizers | None, texts: Sequence[str], config: Config, reporter: Reporter
) -> Tokenizers:
    """The encoder's tokenizer, or one learned from the texts, in the run folder."""
    if tokenizers is None:
        tokenizers = train_tokenizer(lambda: iter(texts), config.tokenizer, reporter)
    tokenizers.save(run.path / "tokenizer")
    return tokenizers


def framing(tokenizers: Tokenizers, config: Config) -> Framing:
    """How the texts of a run with a head are put to its encoder."""
    longest = min(config.batches.max_length, getattr(config.model, "max_length", config.batches.max_length))
    return Framing(tokenizers.source, config.head.begins, longest, marks=tokenizers.source_marks)


# --- texts and their classes ---


def read_labelled(
    train: Sequence[Path], validation: Sequence[Path], fields: Fields, seed: int, reporter: Reporter
) -> tuple[Labelled, Labelled]:
    """(to train on, to validate on); without files for the latter, some texts are held out of the former."""
    corpus = _all(train, fields)
    if validation:
        return _said(corpus, reporter), _said(_all(validation, fields), reporter)
    size = default_validation_size(corpus.count())
    if not size:
        raise CorpusError(
            f"{corpus.name} has {corpus.count():,} rows, too few to hold some out and see how training goes; "
            "add more, or name a file with --validation"
        )
    split = hold_out(corpus, validation=size, seed=seed)
    reporter.say(f"validation: {size:,} texts held out")
    return _said(split.train, reporter), _said(split.validation, reporter)


def _all(files: Sequence[Path], fields: Fields) -> Corpus:
    corpora = [labelled(path, fields) for path in files]
    name = " + ".join(str(path) for path in files)
    return Corpus(name, lambda: (pair for corpus in corpora for pair in corpus))


def _said(corpus: Corpus, reporter: Reporter) -> Labelled:
    texts = usable(corpus, corpus.name)
    texts.say_dropped(corpus.name, reporter)
    return texts


def store_labelled(
    run: Run,
    train: Labelled,
    validation: Labelled,
    tokenizers: Tokenizers,
    config: Config,
    threads: int,
    reporter: Reporter = SILENT,
) -> dict[str, Any]:
    """Ids and classes on disk; facts for prepared.json."""
    classes = classes_of((*train.labels, *validation.labels), "the set of labelled texts")
    frame = framing(tokenizers, config)
    for name, texts in (("train", train), ("validation", validation)):
        rows = numbered(texts, classes, f"the {name} set")
        RowStore.build(run.path / "data" / name, rows, lambda some: frame.frame_many(some, threads), tokenizers.sha256)
    frame.say_cut(len(train) + len(validation), reporter, REMEDY)
    counts = {name: train.labels.count(name) for name in classes}
    return {"classes": classes, "texts": {"train": len(train), "validation": len(validation), "in_class": counts}}


# --- texts and their partners ---


def read_partners(
    files: Sequence[Path], fields: Fields, text: Sequence[Path], reporter: Reporter
) -> list[tuple[str, ...]]:
    """Rows of two texts that mean the same; or, from plain text, of one."""
    rows: list[tuple[str, ...]] = []
    empty = 0
    for path in files:
        for pair in Corpus.of_pairs(path, fields):
            if pair.source.strip() and pair.target.strip():
                rows.append((pair.source, pair.target))
            else:
                empty += 1
    for path in text:
        rows += [(line,) for line in read_lines(path) if line.strip()]
    if empty:
        reporter.warn(f"{empty:,} pairs left out: a text is missing")
    if len(rows) < 2:
        raise CorpusError("fewer than two texts to compare; name a file with more")
    return rows


def store_partners(
    run: Run,
    rows: list[tuple[str, ...]],
    tokenizers: Tokenizers,
    config: Config,
    threads: int,
    reporter: Reporter = SILENT,
) -> dict[str, Any]:
    """Ids on disk, some held out; rows that share a text have the same label."""
    groups = groups_of(rows)
    held_out = _held_out(groups)
    frame = framing(tokenizers, config)
    sides = len(rows[0])
    counts = {}
    for name in ("train", "validation"):
        inside = [place for place, group in enumerate(groups) if (group in held_out) == (name == "validation")]
        RowStore.build(
            run.path / "data" / name,
            ((rows[place], groups[place]) for place in inside),
            lambda some: frame.frame_many(some, threads),
            tokenizers.sha256,
            sides=sides,
        )
        counts[name] = len(inside)
    reporter.say(f"validation: {counts['validation']:,} of {len(rows):,} rows held out")
    frame.say_cut(len(rows) * sides, reporter, REMEDY)
    return {"texts": {**counts, "sides": sides}}


def _held_out(groups: list[int]) -> set[int]:
    """Groups evenly taken, until a twentieth of the rows is held out; one with more rows than are still wanted is passed over."""
    sizes = Counter(groups)
    distinct = list(sizes)
    if len(distinct) < 2:
        raise CorpusError("all pairs share their texts: nothing can be held out for validation")
    wanted = max(1, min(len(groups) // 2, default_validation_size(len(groups))))
    count = min(wanted, len(distinct) // 2)
    evenly = [distinct[place * len(distinct) // count] for place in range(count)]
    held_out: set[int] = set()
    for group in dict.fromkeys([*evenly, *distinct]):
        if sizes[group] <= wanted:
            held_out.add(group)
            wanted -= sizes[group]
    return held_out or {min(distinct, key=sizes.__getitem__)}
