"""onnxruntime, through the translate.py that lies beside the graphs."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np

from benchmarks.checks.common import BOS, EOS, Line, Result, main


def check(folder: Path, lines: list[Line], begin: int) -> Result:
    model = runpy.run_path(str(folder / "translate.py"))["Model"](folder)
    result = Result()
    for line in lines:
        ids = model.source.encode(line.text)
        result.compare(line, ids, model.search(ids, beam=1)[0], model.search(ids, beam=5)[0])
        state, found = model.start(np.array([[*line.source, EOS]])), []
        for token, following in zip([BOS, *line.greedy], [*line.greedy, EOS], strict=True):
            scores, state = model.step(state, np.array([token]))
            found.append(float(scores[0, following]))
        result.measure(line, found)
        assert model.target.decode(line.greedy) == line.greedy_text
    return result


if __name__ == "__main__":
    main(check)
