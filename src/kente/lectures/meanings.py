"""One word, two meanings (lecture 004): word2vec gives `bank` one vector, an encoder gives it one for each place it stands in.

Both learn from the same lines about a river and a counting house (`scenes`): skip-gram word vectors, and a masked encoder. Sentences neither
has read then say which `bank` is near which.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from kente.config import BatchConfig, HeadConfig, MaskedConfig, SkipGramConfig, TokenizerConfig
from kente.data.batches import Batch, collate
from kente.data.blocks import Masking
from kente.data.framing import Framing
from kente.data.skip_grams import SkipGrams
from kente.data.texts import Line, TextStore
from kente.data.tokenizer import SPECIALS, Tokenizer, Tokenizers, train_tokenizer
from kente.decode.embedder import Embedder, framing_of, unit
from kente.decode.nearest import nearest
from kente.errors import RunError
from kente.lectures.finding import Finding, beside
from kente.lectures.practice import practise, seeded
from kente.lectures.scenes import MONEY, RIVER, WORD, Sentence, sentences, text
from kente.models.masked_lm import MaskedLM
from kente.models.skip_gram import SkipGram
from kente.models.text_reader import TextReader
from kente.reporting import SILENT, Reporter
from kente.runs import Run
from kente.show.charts import table
from kente.show.scatter import Points, scatter
from kente.train.objectives import Masked, NegativeSampling

SEED = 7
APART = 40
"""Sentences of each meaning that nobody learns from."""
ROWS = 32
UPDATES = 500
WIDTH = 64
SHARE = 0.15
SCENES = {
    RIVER: ("river", "water", "boat", "boats", "fish", "reeds", "stream", "willow", "flood"),
    MONEY: ("money", "loan", "account", "clerk", "coins", "cash", "interest", "savings", "debt", "cheque"),
}
"""Words of one scene alone."""
UNTOLD = 1e-6
"""Vectors that differ by no more than this are one."""


@dataclass(frozen=True)
class Separation:
    """How vectors of the same word in many sentences lie, once what all of them have in common is taken off: cosines within a meaning and
    between two, and how often the nearest is of one's own."""

    within: float
    between: float
    right: float


def separation(vectors: NDArray[np.float32], meanings: list[str]) -> Separation:
    """Of each sentence with all others; where all are equally near, the nearest is right by chance."""
    same = np.array(meanings)[:, None] == np.array(meanings)
    others = ~np.eye(len(meanings), dtype=bool)
    vectors = unit(vectors)
    apart = vectors - vectors.mean(axis=0)
    if np.abs(apart).max() < UNTOLD:
        return Separation(1.0, 1.0, float((same & others).sum() / others.sum()))
    cosines = unit(apart) @ unit(apart).T
    within, between = float(cosines[same & others].mean()), float(cosines[~same].mean())
    nearest_other = np.where(others, cosines, -np.inf).argmax(axis=1)
    return Separation(within, between, float(same[np.arange(len(meanings)), nearest_other].mean()))


def places_of(framing: Framing, sentence: str, word: str) -> list[int]:
    """The places of a word's pieces in the framed sentence."""
    words = sentence.split(" ")
    start = words.index(word)
    ends = [len(framing.tokenizer.encode(" ".join(words[:end]))) for end in (start, start + 1)]
    before = 1 if framing.begins else len(framing.marks)
    return [place + before for place in range(*ends)]


def word_vectors(embedder: Embedder, some: list[Sentence]) -> NDArray[np.float32]:
    """(N, D) the vector of WORD in each sentence, where it stands."""
    rows = []
    for sentence in some:
        places = places_of(embedder.framing, sentence.text, WORD)
        rows.append(embedder.states(sentence.text)[places].mean(axis=0))
    return np.stack(rows)


# --- the two learners ---


def learn_words(lines: list[str], tokenizers: Tokenizers, reporter: Reporter, updates: int) -> SkipGram:
    """Skip-gram vectors of the lines' words."""
    config = SkipGramConfig(width=WIDTH, subsample=0.0)
    with seeded(SEED), tempfile.TemporaryDirectory(prefix="kente-") as folder:
        model = SkipGram(config, tokenizers.target.size)
        store = TextStore.build(Path(folder) / "text", (Line(line, True) for line in lines), tokenizers)
        pairs = SkipGrams(store, tokenizers.target.size, config, BatchConfig(tokens=512, max_length=32), SEED)
        practise(model, pairs.batch, updates, reporter, "word vectors", rate=1e-2, objective=NegativeSampling())
    return model


def learn_gaps(lines: list[str], tokenizer: Tokenizer, reporter: Reporter, updates: int) -> MaskedLM:
    """A masked encoder of the lines."""
    config = MaskedConfig(layers=2, width=WIDTH, feedforward=2 * WIDTH, heads=4, dropout=0.1)
    ids = [tokenizer.encode(line) for line in lines]
    masking = Masking(SHARE, np.zeros(tokenizer.size, bool), tokenizer.mask)

    def batch_of(step: int) -> Batch:
        rng = np.random.default_rng([SEED, step])
        batch = collate([ids[row] for row in rng.integers(0, len(ids), ROWS)])
        return hidden_words(batch, masking, rng)

    with seeded(SEED):
        model = MaskedLM(config, tokenizer.size)
        practise(model, batch_of, updates, reporter, "masked encoder", rate=3e-3, objective=Masked())
    return model


def hidden_words(batch: Batch, masking: Masking, rng: np.random.Generator) -> Batch:
    """The batch with some words hidden, to be guessed."""
    read, asked = masking(batch.source.numpy(), batch.source_mask.numpy(), rng)
    asked_for = torch.from_numpy(asked)
    nothing = batch.source[:, :0]
    parts = (torch.from_numpy(read), batch.source_mask, nothing, batch.source, asked_for)
    return Batch(*parts, batch.rows, batch.source_tokens, int(asked_for.sum()))


def of_run(run: Path) -> Embedder:
    """The encoder of a trained run."""
    opened = Run.open(run)
    model = opened.model()
    if not hasattr(model, "encode"):
        raise RunError(f"{opened.path} holds a {opened.config.model.kind} model, which does not read text into vectors")
    reader = model if isinstance(model, TextReader) else TextReader(model, HeadConfig(kind="vectors"))
    return Embedder(reader, framing_of(opened), "cpu")


# --- the experiment ---


def explore(reporter: Reporter = SILENT, run: Path | None = None, *, updates: int = UPDATES) -> Finding:
    """The same sentences through both."""
    lines = text(SEED, APART)
    _, some = sentences(SEED, APART)
    tokenizers = train_tokenizer(lambda: iter(lines), TokenizerConfig(kind="words"))
    framing = Framing(tokenizers.target, begins=False, longest=64)
    words = learn_words(lines, tokenizers, reporter, updates)
    context_free = Embedder(TextReader(words, HeadConfig(kind="vectors")), framing, "cpu")
    if run is None:
        gaps = learn_gaps(lines, tokenizers.target, reporter, updates)
        contextual = Embedder(TextReader(gaps, HeadConfig(kind="vectors")), framing, "cpu")
        about = f"a masked encoder of 2 layers, {updates} updates on {len(lines):,} lines"
    else:
        contextual, about = of_run(run), f"the encoder of {run.name}"
    meanings = [sentence.meaning for sentence in some]
    vectors = word_vectors(contextual, some)
    one, two = separation(word_vectors(context_free, some), meanings), separation(vectors, meanings)
    neighbours = near_words(words, tokenizers.target, 8)
    figures = (
        beside(_sentences_map(vectors, some), _words_map(words, tokenizers.target)),
        _table(one, two),
        table(
            ["word", "cosine", "scene"],
            [[word, f"{cosine:.2f}", _scene(word)] for word, cosine in neighbours],
            caption=f"Words nearest to {WORD} among the word vectors",
        ),
    )
    return Finding(
        "meanings",
        "One word, two meanings",
        "lecture 004",
        "An encoder gives a word another vector where it means something else; word2vec gives it one vector for all its meanings.",
        found(one, two, about, len(some)),
        figures,
        {
            "about": about,
            "word_vectors": vars(one),
            "encoder": vars(two),
            "neighbours": [{"word": word, "cosine": cosine, "scene": _scene(word)} for word, cosine in neighbours],
        },
    )


def near_words(model: SkipGram, tokenizer: Tokenizer, count: int) -> list[tuple[str, float]]:
    """The words whose vectors are nearest to that of WORD, itself left out."""
    table_ = unit(model.embedding.weight.detach().numpy()[len(SPECIALS) :])
    own = tokenizer.encode(WORD)[0] - len(SPECIALS)
    ids, cosines = nearest(table_[own : own + 1], table_, count + 1)
    pairs = zip(ids[0].tolist(), cosines[0].tolist(), strict=True)
    named = [(tokenizer.decode([number + len(SPECIALS)]), cosine) for number, cosine in pairs if number != own]
    return named[:count]


def _scene(word: str) -> str:
    return next((scene for scene, words in SCENES.items() if word in words), "both")


def _flat(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """(N, 2) along the two directions they differ most in."""
    centred = vectors - vectors.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    return np.asarray(centred @ directions[:2].T, np.float32)


def _sentences_map(vectors: NDArray[np.float32], some: list[Sentence]) -> str:
    flat = _flat(unit(vectors)).tolist()
    groups = [
        Points(
            f"{WORD} ({meaning})",
            [(x, y, sentence.text) for (x, y), sentence in zip(flat, some, strict=True) if sentence.meaning == meaning],
        )
        for meaning in SCENES
    ]
    return scatter(groups, title=f"The encoder's vectors of {WORD} in {len(some)} sentences")


def _words_map(model: SkipGram, tokenizer: Tokenizer) -> str:
    names = [*SCENES[RIVER], *SCENES[MONEY], WORD]
    table_ = model.embedding.weight.detach().numpy()
    flat = _flat(unit(table_[[tokenizer.encode(name)[0] for name in names]])).tolist()
    placed = dict(zip(names, flat, strict=True))
    groups = [
        Points(f"words of the {scene}", [(*placed[name], name) for name in words]) for scene, words in SCENES.items()
    ]
    groups.append(Points(f"{WORD}, in any sentence", [(*placed[WORD], WORD)]))
    return scatter(groups, title="word2vec: one vector for each word")


def _table(one: Separation, two: Separation) -> str:
    rows = [
        [name, f"{found.within:.3f}", f"{found.between:.3f}", f"{100 * found.right:.0f} %"]
        for name, found in (("word2vec (skip-gram)", one), ("encoder", two))
    ]
    header = ["vectors", "cosine, same meaning", "cosine, other meaning", "nearest has the same meaning"]
    return table(header, rows, caption=f"{WORD} in sentences that neither has read")


def found(one: Separation, two: Separation, about: str, count: int) -> str:
    """What the numbers allow to be said."""
    apart = "two vectors or more" if two.within - two.between > 0.05 else "vectors that hardly tell its meanings apart"
    same = "one vector" if one.within == one.between else "several vectors"
    return (
        f"word2vec gives {WORD} {same} in all {count} sentences, so whichever is called nearest is right by chance ({100 * one.right:.0f} %). "
        f"For {about}, it has {apart}: apart from what all of them share, cosines of {two.within:.2f} within a meaning and {two.between:.2f} between the two, "
        f"and the nearest other {WORD} has the same meaning in {100 * two.right:.0f} % of them."
    )
