"""From a corpus to what training reads: cleaned pairs, tokenizers, ids on disk. Constant memory, whatever the corpus."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kente.config import Config
from kente.data.cleaning import Cleaner, CleaningReport
from kente.data.corpus import Corpus, Pair, write_pairs
from kente.data.keys import Keys
from kente.data.splitting import default_validation_size, held_out_keys, hold_out
from kente.data.store import Store
from kente.data.tags import found_tags, tags_in_use, untagged
from kente.data.tokenizer import Texts, Tokenizers, train_tokenizers
from kente.errors import CorpusError, RunError
from kente.reporting import Reporter
from kente.runs import LANGUAGES, Run
from kente.text.languages import UNNAMED, learn_pair

VALIDATION_KEPT = 3000
"""Validation pairs used at most: more would cost time and say nothing new."""

SAMPLED = 8000
"""Pairs that languages are learnt from at most."""
LENGTHS = "lengths.json"
"""{"words": w, "characters": c}: lengths that all but one in a thousand source sentences trained on do not exceed."""
CORRECTED = 4
"""How often a correction is trained on: more often than the pair that taught the mistake, and still a trace of the corpus."""
CLEANED = "cleaning.json"
"""What a folder shared by several runs says about its corpus, written when the folder is whole."""


@dataclass(frozen=True)
class Prepared:
    """What training reads."""

    tokenizers: Tokenizers
    train: Store
    validation: Store
    validation_pairs: list[Pair]

    @classmethod
    def open(cls, run: Run) -> Prepared:
        """What `prepare` left in the run folder."""
        tokenizers = run.tokenizers()
        folder = run.path / "data"
        pairs = list(Corpus.of_files(folder / "validation.source", folder / "validation.target"))
        train, validation = (Store.open(folder / name, tokenizers.sha256) for name in ("train", "validation"))
        return cls(tokenizers, train, validation, pairs)


def prepare(
    run: Run,
    corpus: Corpus,
    validation: Corpus | None,
    config: Config,
    threads: int,
    reporter: Reporter,
    languages: tuple[str, str] = UNNAMED,
    *,
    also: Sequence[Corpus] = (),
    apart: Sequence[Pair] = (),
    corrections: Corpus | None = None,
    tokenizers: Callable[[Texts], Tokenizers] | None = None,
) -> CleaningReport:
    """Clean, split, learn tokenizers and languages, store ids: everything lands in the run folder. Safe to do again after a crash.

    Pairs of `also`, such as synthetic ones, and `corrections` are trained on but never held out; sources of `apart` are not trained on.
    `tokenizers` makes them from the text where they are not to be learned from it alone.
    """
    folder = run.path / "data"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(run.path / "tokenizer", ignore_errors=True)
    folder.mkdir()
    with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as scratch:
        if validation is None:
            size = default_validation_size(corpus.count())
            split = hold_out(corpus, validation=size, seed=config.train.seed)
            corpus, validation = split.train, split.validation
            reporter.say(f"validation: {size:,} pairs held out of the corpus by source sentence")
        kept = _keep_validation(folder, validation, config, reporter)
        report = _clean(Path(scratch), joined(corpus, *also), [*kept, *apart], config, reporter, corrections)
        texts = partial(_texts, Path(scratch), "train")
        tags = found_tags((source for source, _ in texts()), tags_in_use(config.tokenizer.tags))
        plain = partial(_plain_texts, texts, tags) if tags else texts
        sample: list[tuple[str, str]] = []
        (folder / LENGTHS).write_text(json.dumps(_lengths(_sampled(plain(), report.kept, sample))))
        learn_pair(languages, sample).save(run.path / LANGUAGES)
        made = tokenizers(plain) if tokenizers else train_tokenizers(plain, config.tokenizer, reporter)
        made = made.with_tags(tags).speaking(config.decode.source_language, config.decode.target_language)
        if tags:
            reporter.say(f"tags: {' '.join(tags)} at the beginning of a source, each a piece of its own")
        made.save(run.path / "tokenizer")
        build = partial(Store.build, tokenizers=made, max_length=config.batches.max_length, threads=threads)
        store = build(folder / "train", texts(), text=config.tokenizer.sampling > 0, reporter=reporter)
        for reason, number in store.dropped.items():
            if number:
                reporter.say(f"left out {number:,} pairs: {reason} (in tokens)")
        build(folder / "validation", _texts(folder, "validation"))
    return report


def joined(corpus: Corpus, *others: Corpus) -> Corpus:
    """All of them, one after the other."""
    if not others:
        return corpus
    parts = (corpus, *others)
    return Corpus(" + ".join(part.name for part in parts), lambda: (pair for part in parts for pair in part))


def _plain_texts(texts: Callable[[], Iterator[tuple[str, str]]], tags: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The text itself, without the marks that sources begin with."""
    return ((untagged(source, tags), target) for source, target in texts())


def _sampled(texts: Iterator[tuple[str, str]], total: int, sample: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The texts as they come; some of them, evenly taken and in random order, are left in `sample`."""
    stride = max(1, total // SAMPLED)
    for number, pair in enumerate(texts):
        if number % stride == 0:
            sample.append(pair)
        yield pair
    random.Random(0).shuffle(sample)


def _lengths(texts: Iterator[tuple[str, str]]) -> dict[str, int]:
    counts: dict[str, Counter[int]] = {"words": Counter(), "characters": Counter()}
    for source, _ in texts:
        counts["words"][len(source.split())] += 1
        counts["characters"][len(source)] += 1
    return {unit: _nearly_longest(lengths) for unit, lengths in counts.items()}


def _nearly_longest(lengths: Counter[int]) -> int:
    spare = lengths.total() // 1000
    for length in sorted(lengths, reverse=True):
        spare -= lengths[length]
        if spare < 0:
            return length
    return 0


def trained_length(run: Run, unit: str) -> int:
    """The longest source sentence the run was trained on, in words or characters (one in a thousand may be longer); 0 if unknown."""
    file = run.path / "data" / LENGTHS
    return int(json.loads(file.read_bytes())[unit]) if file.exists() else 0


def share_prepared(shared: Run, run: Run) -> dict[str, Any]:
    """Give `run` the corpus and tokenizers of `shared`, without a copy where the disk allows; returns the cleaning report."""
    if not (shared.path / CLEANED).exists():
        raise RunError(f"{shared.path} holds no prepared corpus: its making was interrupted; make it again")
    if shared.config.tokenizer != run.config.tokenizer or shared.config.cleaning != run.config.cleaning:
        raise RunError(f"{run.path} wants another tokenizer or other cleaning than {shared.path} was made with")
    for name in ("data", "tokenizer"):
        shutil.rmtree(run.path / name, ignore_errors=True)
        shutil.copytree(shared.path / name, run.path / name, copy_function=_link)
    if (shared.path / LANGUAGES).exists():
        (run.path / LANGUAGES).unlink(missing_ok=True)
        _link(str(shared.path / LANGUAGES), str(run.path / LANGUAGES))
    return dict(json.loads((shared.path / CLEANED).read_bytes()))


def _link(source: str, target: str) -> None:
    """The same bytes under a second name; a copy where the disk has no such thing."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _keep_validation(folder: Path, validation: Corpus, config: Config, reporter: Reporter) -> list[Pair]:
    """The validation pairs worth scoring, kept as text: BLEU is taken on text."""
    cleaner = Cleaner(config.cleaning)
    pairs = list(cleaner.clean(validation))
    if not pairs:
        raise CorpusError(
            f"{validation.name} holds no usable pair to validate on: " + "; ".join(cleaner.report.lines())
        )
    if len(pairs) > VALIDATION_KEPT:
        stride = len(pairs) / VALIDATION_KEPT
        pairs = [pairs[int(i * stride)] for i in range(VALIDATION_KEPT)]
        reporter.say(f"validation: {VALIDATION_KEPT:,} of {cleaner.report.kept:,} pairs, evenly taken")
    write_pairs(folder, "validation", pairs)
    return pairs


def _clean(
    scratch: Path,
    corpus: Corpus,
    held_out: list[Pair],
    config: Config,
    reporter: Reporter,
    corrections: Corpus | None = None,
) -> CleaningReport:
    """One pass over the corpus; what is kept is written out once, so that later passes need not judge again."""
    tags = tags_in_use(config.tokenizer.tags)
    exclude = held_out_keys(held_out, tags=tags)
    cleaner = Cleaner(config.cleaning, exclude=exclude, tags=tags)
    pairs: Iterator[Pair] = _counted(cleaner.clean(corpus), reporter)
    if corrections is not None:
        pairs = itertools.chain(pairs, _corrected(corrections, cleaner, exclude, reporter))
    write_pairs(scratch, "train", pairs)
    reporter.finish()
    for line in cleaner.report.lines():
        reporter.say(line)
    if not cleaner.report.kept:
        raise CorpusError(f"nothing to train on is left of {corpus.name} after cleaning; `kente check` says more")
    return cleaner.report


def _corrected(corrections: Corpus, corpus: Cleaner, exclude: Keys, reporter: Reporter) -> Iterator[Pair]:
    """The corrections worth keeping beside a corpus that was cleaned, several times over; of two for the same sentence, the later one."""
    latest = {pair.source: pair for pair in corrections}
    kept = list(Cleaner(corpus.config, corpus.profile, exclude, corpus.tags).clean(latest.values()))
    reporter.say(f"corrections: {len(kept):,} of {len(latest):,} mixed in, each {CORRECTED} times")
    for _ in range(CORRECTED):
        yield from kept


def _counted(pairs: Iterator[Pair], reporter: Reporter) -> Iterator[Pair]:
    for number, pair in enumerate(pairs, 1):
        if number % 10_000 == 0:
            reporter.progress("reading", number, None, "pairs")
        yield pair


def _texts(folder: Path, name: str) -> Iterator[tuple[str, str]]:
    corpus = Corpus.of_files(folder / f"{name}.source", folder / f"{name}.target")
    return ((pair.source, pair.target) for pair in corpus)
