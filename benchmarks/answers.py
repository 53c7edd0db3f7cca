"""Do engines with the same weights answer equally well? BLEU and lengths over several runs, since one run's difference may be chance.

    python -m benchmarks.answers RUN ... --source test.en --reference test.de [--limit N]

Each run is translated by Kente as it comes and by bare CTranslate2, which gets it through `kente export`, in float32 and int8: greedily, and with
a beam of 5 without length penalty, which is one rule for all. Text is tokenised already; BLEU is sacreBLEU's with `tok:none`. p is that of a paired
bootstrap against Kente's answers. Nothing is timed: how fast each of them is, docs/benchmarks.md says.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import ctranslate2
import sentencepiece

import kente
from benchmarks.peers.adapter import read_lines
from benchmarks.report import markdown
from kente import api
from kente.measure.scores import corpus_bleu, paired_bootstrap

SEARCHES = {"greedy": 1, "beam 5, no length penalty": 5}
TYPES = ("float32", "int8")
OURS = "Kente"


@dataclass(frozen=True)
class Answers:
    """What an engine said to all lines of one run: how much, how good, and how far from Kente."""

    engine: str
    tokens: int
    bleu: float
    apart: float = 0.0
    p: float = 1.0


class Bare:
    """CTranslate2 and sentencepiece, as the README of an export has them."""

    def __init__(self, folder: Path, kind: str):
        joint = (folder / "tokenizer" / "joint.model").exists()
        names = ("joint", "joint") if joint else ("source", "target")
        self.source, self.target = (
            sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer" / f"{name}.model"))
            for name in names
        )
        self.translator = ctranslate2.Translator(str(folder), device="cpu", compute_type=kind)

    def translate(self, lines: Sequence[str], beam: int) -> list[str]:
        pieces = self.source.encode([unicodedata.normalize("NFC", line) for line in lines], out_type=str)
        longest = 2 * max(map(len, pieces)) + 12
        how = {"beam_size": beam, "length_penalty": 0.0, "max_decoding_length": longest, "max_batch_size": 32}
        return list(
            self.target.decode([answer.hypotheses[0] for answer in self.translator.translate_batch(pieces, **how)])
        )


def compare(run: Path, lines: Sequence[str], references: Sequence[str], beam: int) -> list[Answers]:
    """Kente's answers first, then those of CTranslate2 in each type."""
    translator = kente.load(run, length_penalty=0.0)
    texts = {OURS: [answer.text for answer in translator.translate(lines, beam=beam)]}
    with TemporaryDirectory() as folder:
        exported = Path(folder) / "exported"
        api.export(run, "ctranslate2", exported)
        bare = {f"CTranslate2 {kind}": Bare(exported, kind) for kind in TYPES}
        texts |= {name: engine.translate(lines, beam) for name, engine in bare.items()}
        pieces = bare[f"CTranslate2 {TYPES[0]}"].target
    differences = paired_bootstrap(texts, OURS, references, tokenize="none")
    return [
        Answers(
            name,
            sum(len(ids) + 1 for ids in pieces.encode(said)),  # an end mark each
            corpus_bleu(said, references, "none").value,
            *differences.get(name, ()),
        )
        for name, said in texts.items()
    ]


def table(found: dict[str, list[Answers]]) -> str:
    """A row for each run, and one for the means."""
    engines = [answers.engine for answers in next(iter(found.values()))]
    rows = []
    for run, said in found.items():
        cells = [
            f"{a.bleu:.2f} ({a.tokens:,})" + (f", {a.apart:+.2f}, p = {a.p:.2f}" if a.engine != OURS else "")
            for a in said
        ]
        rows.append([run, *cells])
    columns = list(zip(*found.values(), strict=True))
    means = [statistics.mean(a.bleu for a in column) for column in columns]
    tokens = [statistics.mean(a.tokens for a in column) for column in columns]
    cells = [
        f"{m:.2f} ({t:,.0f})" + (f", {m - means[0]:+.2f}" if m is not means[0] else "")
        for m, t in zip(means, tokens, strict=True)
    ]
    return markdown(["run", *(f"{name}, BLEU (tokens)" for name in engines)], [*rows, ["mean", *cells]])


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--limit", type=int, help="only so many lines")
    options = parser.parse_args(given)
    lines, references = (read_lines(path, options.limit) for path in (options.source, options.reference))
    for name, beam in SEARCHES.items():
        found = {run.name: compare(run, lines, references, beam) for run in options.runs}
        print(f"\n{name}\n\n{table(found)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
