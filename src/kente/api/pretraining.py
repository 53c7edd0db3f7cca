"""pretrain: from text files to a language model or a masked encoder; and how well one predicts other text."""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kente.api.inputs import pick_device, require_elsewhere, require_free_tokenizer, use_threads
from kente.api.language import scored, text_scores, unknown_note
from kente.api.lifecycle import TrainResult, launch
from kente.api.words import automatic_words
from kente.data.batches import Batch
from kente.data.blocks import Masking
from kente.data.given import given_tokenizers
from kente.data.running import read_parts
from kente.data.texts import Texts, TextStore, first_lines, per_cent
from kente.errors import RunError, UsageError
from kente.reporting import SILENT, Reporter
from kente.runs import Run, Score
from kente.train.kinds import require
from kente.train.language_budget import automatic_language
from kente.train.objectives import CrossEntropy, Masked, mean_loss

KINDS = ("causal", "masked", "words")
TOKENIZERS = ("unigram", "bpe", "characters", "words")


def pretrain(
    text: Sequence[Path | str],
    out: Path | str,
    *,
    kind: str = "causal",
    validation: Sequence[Path | str] = (),
    tokenizer: str | Path | None = None,
    settings: Sequence[str] = (),
    **how: Any,
) -> TrainResult:
    """Train a language model (kind "causal"), a masked encoder ("masked") or word vectors ("words") on text files.

    `tokenizer` is a kind to learn, or the folder of one that exists: a run, or GPT-2's vocab.json and merges.txt. Without `validation`
    files the last tenth of each text file is held out. `how` as for `train`.
    """
    if kind not in KINDS:
        raise UsageError(f"no kind of pre-training called {kind}; there are {', '.join(KINDS)}")
    files, held_out = [Path(path) for path in text], [Path(path) for path in validation]
    if not files:
        raise UsageError("no text given: --text FILE ... names what to read")
    for path in (*files, *held_out):
        next(iter(read_parts(path)), None)  # a file that cannot be read is said before a folder is made
    folder: Path | None = None
    if tokenizer is not None and str(tokenizer) in TOKENIZERS:
        settings = [*settings, f"tokenizer.kind={tokenizer}"]
    elif tokenizer is not None:
        folder = Path(tokenizer).resolve()
        if not folder.is_dir():
            raise _no_such_tokenizer(str(tokenizer))
        given_tokenizers(folder)
        require_elsewhere(out, "whose tokenizer is to be used", folder)
        require_free_tokenizer(settings, tokenizer, "--tokenizer")
    request = {
        "text": [str(path.resolve()) for path in files],
        "validation": [str(path.resolve()) for path in held_out],
        "tokenizer": str(folder) if folder else None,
    }
    return launch(
        automatic_words() if kind == "words" else automatic_language(kind), out, request, settings=settings, **how
    )


def _no_such_tokenizer(name: str) -> UsageError:
    near = difflib.get_close_matches(name.lower(), TOKENIZERS, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return UsageError(
        f"--tokenizer {name} is neither a kind to learn ({', '.join(TOKENIZERS)}) nor a folder that is there{hint}"
    )


@dataclass(frozen=True)
class TextEvaluation:
    """How well a model predicts a text."""

    run: str
    text: str
    characters: int
    tokens: int
    unknown: float
    """Share of the tokens that the tokenizer does not know."""
    scores: dict[str, Score]
    note: str = ""
    """What must be known before the scores are compared with others."""

    def as_dict(self) -> dict[str, Any]:
        about = {"run": self.run, "text": self.text, "characters": self.characters, "tokens": self.tokens}
        scores = {name: score.value for name, score in self.scores.items()}
        return {**about, "unknown": self.unknown, **scores, **({"note": self.note} if self.note else {})}

    def lines(self) -> list[str]:
        counted = f"{self.characters:,} characters, {self.tokens:,} tokens, {per_cent(self.unknown)} unknown"
        about = f"run {self.run} | {self.text} | {counted if self.unknown else counted.rpartition(',')[0]}"
        scores = "  ".join(f"{score.name} {score.value:.4f}" for score in self.scores.values())
        return [f"{scores} | {about}", *([f"note: {self.note}"] if self.note else [])]


def evaluate_text(
    run: Path | str,
    text: Sequence[Path],
    *,
    limit: int | None = None,
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
) -> TextEvaluation:
    """Loss and perplexity of a text for each token, and bits per character, in blocks as the model was trained on.

    All of it is read, or its first `limit` lines.
    """
    opened = require(Run.open(run), "kente evaluate --text", "causal", "masked")
    if not getattr(opened.config.model, "gaps", True):
        raise RunError(
            f"{opened.path} was imported without a head that fills gaps: it reads text, but predicts none of it"
        )
    use_threads(threads)
    where = pick_device(device)
    checkpoint = opened.chosen(reporter)
    tokenizers, config = opened.tokenizers(checkpoint), opened.config
    model, masked = opened.model(checkpoint, where), opened.config.train.task == "masked"
    texts = Texts(tuple(map(Path, text)), config.text.documents)
    name = f"the first {limit:,} lines of {texts.name}" if limit else texts.name
    with tempfile.TemporaryDirectory(prefix="kente-") as scratch:
        lines = first_lines(texts, limit) if limit else texts
        store = TextStore.build(Path(scratch) / "text", lines, tokenizers, reporter=reporter)
        masking = Masking.of(config.text, tokenizers.target) if masked else None
        batches = _shown(scored(store, config, masking), len(store), reporter)
        loss = mean_loss(model, batches, where, Masked() if masked else CrossEntropy())
        scores = text_scores(loss, store)
        unknown, note = store.unknown, unknown_note(store, tokenizers.target)
    if masked:
        del scores["bits_per_character"]
        note = ""
    return TextEvaluation(opened.path.name, name, store.characters, len(store), unknown, scores, note)


def _shown(batches: Iterator[Batch], total: int, reporter: Reporter) -> Iterator[Batch]:
    """The same batches, with a word on how far they have been read."""
    done = 0
    for batch in batches:
        yield batch
        done += batch.tokens
        reporter.progress("scoring", done, total, "tokens")
    reporter.finish()
