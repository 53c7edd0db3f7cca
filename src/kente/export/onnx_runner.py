"""Translate with a model that Kente exported to ONNX. It needs numpy and onnxruntime, sentencepiece for subwords, and nothing of Kente.

    python translate.py "A sentence." "Another one."          translations, one a line
    python translate.py --beam 1 < sentences.txt               greedy, a line each

Beside this file lie encoder.onnx, decoder.onnx, model.json and tokenizer/. From Python: Model(folder).translate("A sentence.")
"""

from __future__ import annotations

import argparse
import json
import sys
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np

PAD, UNK, BOS, EOS = 0, 1, 2, 3
ESCAPE, SPACE = "\uf8f0", "\u2581"  # sentencepiece writes spaces as the second; in a text it is written with the first


class Tokenizer:
    """One side's text to ids and back."""

    def __init__(self, folder: Path, side: str) -> None:
        self.about = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
        names = list(self.about["files"])
        path = folder / (names[0] if side == "source" else names[-1])
        self.kind = self.about["kind"]
        if self.kind in ("unigram", "bpe"):
            import sentencepiece

            self.processor = sentencepiece.SentencePieceProcessor(model_proto=path.read_bytes())
        else:
            self.symbols = json.loads(path.read_text(encoding="utf-8"))
            self.ids = {symbol: number for number, symbol in enumerate(self.symbols, start=EOS + 1)}

    def encode(self, text: str) -> list[int]:
        text = " ".join(text.split())
        if self.about["normalisation"] == "nfc":
            text = unicodedata.normalize("NFC", text)
        if self.kind in ("unigram", "bpe"):
            escaped = text.replace(ESCAPE, ESCAPE + "0").replace(SPACE, ESCAPE + "1")
            return list(self.processor.encode(escaped))
        symbols = text.split(" ") if self.kind == "words" else list(text)
        return [self.ids.get(symbol, UNK) for symbol in symbols if text]

    def decode(self, ids: list[int]) -> str:
        if self.kind in ("unigram", "bpe"):
            return str(self.processor.decode(ids)).replace(ESCAPE + "1", SPACE).replace(ESCAPE + "0", ESCAPE)
        return (" " if self.kind == "words" else "").join(self.symbols[i - EOS - 1] for i in ids)


class Model:
    """The two graphs, the tokenizers and the settings of a folder."""

    def __init__(self, folder: Path | str) -> None:
        import onnxruntime

        folder = Path(folder)
        self.settings = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        self.source, self.target = (Tokenizer(folder / "tokenizer", side) for side in ("source", "target"))
        self.encoder, self.decoder = (
            onnxruntime.InferenceSession(folder / f"{name}.onnx", providers=["CPUExecutionProvider"])
            for name in ("encoder", "decoder")
        )

    def start(self, ids: Any) -> dict[str, Any]:
        """Everything a sentence's decoder remembers, by name; ids (batch, length)."""
        names = [output.name for output in self.encoder.get_outputs()]
        return dict(zip(names, self.encoder.run(None, {"source": ids}), strict=True))

    def step(self, state: dict[str, Any], tokens: Any) -> tuple[Any, dict[str, Any]]:
        """(log-probabilities (batch, words) after `tokens` (batch,), what is remembered then)."""
        names = [output.name for output in self.decoder.get_outputs()]
        wanted = {value.name for value in self.decoder.get_inputs()}
        given = {name: value for name, value in {**state, "token": tokens}.items() if name in wanted}
        found = dict(zip(names, self.decoder.run(None, given), strict=True))
        after = {name.removeprefix("next_"): value for name, value in found.items() if name.startswith("next_")}
        return found["log_probabilities"], {**state, **after}

    def translate(self, text: str, beam: int | None = None) -> str:
        """The best translation of one sentence."""
        ids = self.source.encode(text)[: self.settings["max_source_tokens"] - 1]
        return self.target.decode(self.search(ids, beam)[0]) if ids else ""

    def search(self, ids: list[int], beam: int | None = None) -> tuple[list[int], float]:
        """(ids of the best answer, its log-probability): beam search, rows of the batch are the answers being written."""
        beam = beam or self.settings["beam"]
        cap = self.cap(len(ids) + 1)
        state = self.start(np.array([[*ids, EOS]], np.int64))
        living: list[list[int]] = [[]]
        totals, tokens = np.zeros(1), np.array([BOS])
        best, best_score, best_total = living[0], -np.inf, 0.0
        for written in range(cap + 1):
            log_probabilities, state = self.step(state, tokens)
            scores = totals[:, None] + log_probabilities.astype(np.float64)
            scores[:, [PAD, UNK, BOS]] = -np.inf
            if written == cap:  # nothing but the end
                scores[:, EOS + 1 :] = -np.inf
            order = np.argsort(-scores, axis=None, kind="stable")[: 2 * beam]
            rows, words = np.unravel_index(order, scores.shape)
            chosen: list[tuple[int, int, float]] = []
            for rank, (row, word) in enumerate(zip(rows, words, strict=True)):
                total = scores[row, word]
                if total == -np.inf:
                    continue
                if word == EOS:
                    score = total / self.penalty(written + 1)
                    if rank < beam and score > best_score:  # an end must earn its place among the others
                        best, best_score, best_total = living[row], score, total
                elif len(chosen) < beam:
                    chosen.append((row, word, total))
            # go on only with what can still become the best
            chosen = [one for one in chosen if self.at_best(one[2], written + 1, cap) > best_score]
            if not chosen:
                break
            rows = np.array([row for row, _, _ in chosen])
            tokens = np.array([word for _, word, _ in chosen])
            totals = np.array([total for _, _, total in chosen])
            living = [[*living[row], int(word)] for row, word, _ in chosen]
            state = {name: value[rows] for name, value in state.items()}
        return best, float(best_total)

    def cap(self, length: int) -> int:
        """Tokens that an answer to a source of this length may have."""
        cap = int(length * self.settings["max_ratio"]) + self.settings["slack"]
        return int(min(cap, self.settings["max_target_tokens"] or cap))

    def penalty(self, length: int) -> float:
        """What a log-probability is divided by: ((5 + length) / 6) ^ power."""
        return float(((5 + length) / 6) ** self.settings["length_penalty"])

    def at_best(self, total: float, written: int, cap: int) -> float:
        """The highest score that an answer so far can still reach: it becomes less likely, and ends at once or at the cap."""
        return max(total / self.penalty(written + 1), total / self.penalty(cap + 1))


def main() -> None:
    parser = argparse.ArgumentParser(description="Translate sentences with the model beside this file.")
    parser.add_argument("text", nargs="*", help="sentences (default: lines of standard input)")
    parser.add_argument("--beam", type=int, help="answers kept alive; 1 is greedy (default: as the model was set)")
    arguments = parser.parse_args()
    model = Model(Path(__file__).resolve().parent)
    for line in arguments.text or sys.stdin:
        print(model.translate(line, arguments.beam), flush=True)


if __name__ == "__main__":
    main()
