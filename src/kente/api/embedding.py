"""embed: texts as vectors, with any encoder. contrast: an encoder whose vectors are near where texts mean the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kente.api.encoding import encoder_of
from kente.api.heads import require_same_model
from kente.api.inputs import pick_device, require_elsewhere, require_free_tokenizer, use_threads
from kente.api.lifecycle import TrainResult, launch
from kente.config import Config, HeadConfig, ModelConfig
from kente.configfile import apply
from kente.data.corpus import Corpus, read_lines
from kente.data.labelled import scored_pairs
from kente.decode.embedder import Embedder, Vectors, begins, framing_of, unit
from kente.errors import UsageError
from kente.imports.run import stated_pooling
from kente.measure.similarity import similarity_score
from kente.models.text_reader import TextReader
from kente.reporting import SILENT, Reporter
from kente.runs import Run, Score
from kente.train.head_budget import automatic_head, upon

POOLINGS = ("mean", "cls", "attention")
MAGIC = b"\x93NUMPY"
"""How .npy files begin."""


def head_upon(encoder: Path | str | None, task: str, kind: str, pooling: str | None) -> Config:
    """The settings of a head upon an encoder's run, or upon an encoder that is to be learned with it."""
    if pooling is not None and pooling not in POOLINGS:
        raise UsageError(f"no pooling called {pooling}; there are {', '.join(POOLINGS)}")
    run = Run.open(encoder) if encoder else None
    head = {"kind": kind, "begins": begins(run) if run else True}
    if chosen := pooling or (run and _usual_pooling(run)):
        head["pooling"] = chosen
    settings = HeadConfig(**head)  # type: ignore[arg-type]
    return upon(run.config, task, settings) if run else automatic_head(task, settings)


def head_check(
    out: Path | str, encoder: Path | str | None, settings: Sequence[str], *, lines: bool = False
) -> Callable[[Config, frozenset[str]], None]:
    """What refuses a head that cannot be made upon an encoder, before its folder is; `lines` are plain text to be read twice."""
    require_elsewhere(out, "to begin from", encoder)
    require_free_tokenizer(settings, encoder, "--encoder")

    def check(config: Config, given: frozenset[str]) -> None:
        if encoder:
            require_same_model(config.model, Run.open(encoder))
        _require_mark(config.model, config.head.pooling)
        if lines:
            _require_dropout(config.model, given)

    return check


def _require_mark(model: ModelConfig, pooling: str) -> None:
    if pooling == "cls" and model.kind == "skip-gram":
        raise UsageError(
            "--pooling cls takes the vector of a mark, and word vectors have none for marks: every text would be zeros; use --pooling mean"
        )


def _require_dropout(model: ModelConfig, given: frozenset[str]) -> None:
    """Plain text teaches what dropout makes of it, and nothing where there is none."""
    if model.kind == "skip-gram":
        raise UsageError(
            "word vectors have no dropout, so a text read twice is the same twice and --text teaches nothing; give pairs (--pairs F)"
        )
    if "model.dropout" in given and not any(getattr(model, name, 0) for name in ("dropout", "attention_dropout")):
        raise UsageError(
            "model.dropout = 0 makes a text that is read twice the same twice, so --text teaches nothing; leave it out, or give pairs (--pairs F)"
        )


def _usual_pooling(run: Run) -> str | None:
    """How a run was trained to make one vector of many, here or where it was imported from."""
    return run.config.head.pooling if run.config.head.kind != "none" else stated_pooling(run)


def contrast(
    out: Path | str,
    *,
    encoder: Path | str | None = None,
    pairs: Sequence[Path | str] = (),
    text: Sequence[Path | str] = (),
    similar: Path | str | None = None,
    fields: tuple[str, str] | None = None,
    pooling: str | None = None,
    **how: Any,
) -> TrainResult:
    """Fine-tune an encoder so that texts that mean the same have vectors that are near.

    `pairs` are files of two texts that mean the same; each is to find the other among all of a batch. Without pairs, `text` will do: a
    text is read twice, and dropout makes it two. `similar` is a file of (score, text, text) that the best weights are chosen by.
    `how` as for `train`.
    """
    if bool(pairs) == bool(text):
        raise UsageError("give pairs of texts that mean the same (--pairs F), or plain text (--text F), one of the two")
    for path in pairs:
        next(iter(Corpus.of_pairs(path, fields)), None)  # a file that cannot be read is said before a folder is made
    for path in text:
        next(iter(read_lines(path)), None)
    if similar:
        scored_pairs(similar)
    request = {
        "pairs": [str(Path(path).resolve()) for path in pairs],
        "text": [str(Path(path).resolve()) for path in text],
        "similar": str(Path(similar).resolve()) if similar else None,
        "fields": list(fields) if fields else None,
        "encoder": str(Path(encoder).resolve()) if encoder else None,
    }
    base = head_upon(encoder, "similarity", "vectors", pooling)
    check = head_check(out, encoder, how.get("settings", ()), lines=bool(text))
    return launch(base, out, request, check=check, **how)


def load_embedder(
    run: Path | str,
    pooling: str | None = None,
    *,
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
) -> Embedder:
    """A run as a maker of text vectors: with the pooling it was trained with here or elsewhere, else the mean, or the one asked for."""
    opened = Run.open(run)
    _require_mark(opened.config.model, pooling or _usual_pooling(opened) or "mean")
    use_threads(threads)
    where = pick_device(device)
    model = opened.model(opened.chosen(reporter), where)
    encoder_of(model, opened, where)  # says so where there is none
    if isinstance(model, TextReader) and pooling in (None, opened.config.head.pooling):
        return Embedder(model, framing_of(opened), where)
    if pooling == "attention":
        raise UsageError(
            f"{opened.path} has not learned attention pooling, and its weights cannot be guessed; `kente contrast` or "
            "`kente classify train` with --pooling attention learns it"
        )
    if pooling is not None and pooling not in POOLINGS:
        raise UsageError(f"no pooling called {pooling}; there are {', '.join(POOLINGS)}")
    settings = {"kind": "vectors", "pooling": pooling or _usual_pooling(opened) or "mean", "begins": begins(opened)}
    head = apply(opened.config, {"head": settings}).head
    inner = model.encoder if isinstance(model, TextReader) else model
    return Embedder(TextReader(inner, head).to(where), framing_of(opened), where)


def embed(
    run: Path | str,
    texts: Sequence[str],
    out: Path | str | None = None,
    *,
    pooling: str | None = None,
    unit_length: bool = False,
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
) -> Vectors:
    """(N, D) a vector for each text; with `out`, also as a file: .npy, or .jsonl with the texts beside them."""
    if out is not None and Path(out).suffix not in (".npy", ".jsonl"):
        raise UsageError(f"{out} should end in .npy (an array) or .jsonl (texts with their vectors)")
    if not texts:
        raise UsageError("no text to make vectors of")
    embedder = load_embedder(run, pooling, device=device, threads=threads, reporter=reporter)
    vectors = embedder.vectors(texts, use_threads(threads), reporter)
    if unit_length:
        vectors = unit(vectors)
    if out is not None:
        write_vectors(Path(out), texts, vectors)
    return vectors


def write_vectors(path: Path, texts: Sequence[str], vectors: Vectors) -> None:
    """A file that is whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    with open(part, "wb") as file:
        if path.suffix == ".npy":
            np.save(file, vectors, allow_pickle=False)
        else:
            for text, vector in zip(texts, vectors, strict=True):
                row = {"text": text, "vector": [round(value, 6) for value in vector.tolist()]}
                file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    part.replace(path)


def read_vectors(path: Path | str) -> Vectors:
    """Vectors that `embed` wrote, or another program: a .npy file of (N, D) numbers."""
    try:
        with open(path, "rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise ValueError("it does not begin as one (an archive of several, .npz, is none either)")
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(f"{path} is not a .npy file of vectors: {error}") from None
    if vectors.ndim != 2 or not np.issubdtype(vectors.dtype, np.floating):
        raise UsageError(f"{path} holds {vectors.dtype} numbers of shape {vectors.shape}; vectors are (N, D) floats")
    return np.asarray(vectors, np.float32)


def similarity(
    run: Path | str,
    file: Path | str,
    *,
    fields: tuple[str, str, str] | None = None,
    pooling: str | None = None,
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
) -> Score:
    """Spearman's correlation of a run's cosines with people's scores of how alike two texts are: rows of (score, text, text)."""
    rows = scored_pairs(file, fields)
    embedder = load_embedder(run, pooling, device=device, threads=threads, reporter=reporter)
    scores, one, other = zip(*rows, strict=True)
    vectors = [unit(embedder.vectors(side, use_threads(threads), reporter)) for side in (one, other)]
    return similarity_score(scores, *vectors)
