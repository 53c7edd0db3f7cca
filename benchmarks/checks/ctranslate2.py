"""CTranslate2 and sentencepiece, as the README in the export has them."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import ctranslate2
import sentencepiece

from benchmarks.checks.common import Line, Result, main


def check(folder: Path, lines: list[Line], begin: int) -> Result:
    names = ("joint", "joint") if (folder / "tokenizer" / "joint.model").exists() else ("source", "target")
    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer" / f"{name}.model")) for name in names
    )
    translator = ctranslate2.Translator(str(folder), device="cpu", intra_threads=1)
    result = Result()
    for line in lines:
        pieces = source.encode(unicodedata.normalize("NFC", line.text), out_type=str)
        settings = {"max_decoding_length": line.cap, "disable_unk": True, "suppress_sequences": [["<pad>"], ["<s>"]]}
        greedy = translator.translate_batch([pieces], beam_size=1, **settings)[0].hypotheses[0]
        beam = translator.translate_batch([pieces], beam_size=5, length_penalty=0, **settings)[0].hypotheses[0]
        ids = (list(map(target.piece_to_id, answer)) for answer in (greedy, beam))
        result.compare(line, list(map(source.piece_to_id, pieces)), *ids)
        result.measure(line, translator.score_batch([pieces], [line.greedy_pieces])[0].log_probs)
    return result


if __name__ == "__main__":
    main(check)
