"""Argos Translate: the package installed into a new home, then asked to translate. Its beam is set to 1, for it ranks by a rule of its own."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from benchmarks.checks.common import Line, Result, main


def check(folder: Path, lines: list[Line], begin: int) -> Result:
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"HOME": home, "XDG_DATA_HOME": f"{home}/data", "ARGOS_BEAM_SIZE": "1"}
        from argostranslate import package, translate

        (file,) = folder.glob("*.argosmodel")
        package.install_from_path(file)
        (installed,) = package.get_installed_packages()
        translation = translate.get_translation_from_codes(installed.from_code, installed.to_code)
        processor = installed.tokenizer.lazy_processor()
        result = Result()
        for line in lines:
            text = translation.translate(line.text)
            same = text == line.greedy_text.replace("_", " ")  # which Argos makes of it
            pieces = installed.tokenizer.encode(line.text)
            ids = list(map(processor.piece_to_id, pieces))
            result.compare(line, ids, line.greedy if same else [], None)
            scores = translation.underlying.translator.score_batch([pieces], [line.greedy_pieces])
            result.measure(line, scores[0].log_probs)
            if not same and len(result.examples) <= 3:
                result.examples.append(f"{text!r} instead of {line.greedy_text!r}")
        return result


if __name__ == "__main__":
    main(check)
