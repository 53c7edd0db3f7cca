"""The masked table of lecture 004, "<sos> Je vais bien", read off a real decoder.

    weights = softmax(Q K' / sqrt(K) + mask),      mask_tj = -inf where j > t

One reading of the whole sentence stands for four: <sos>, <sos> Je, <sos> Je vais, <sos> Je vais bien. The slide prints 0.00 where the mask
stands beside scores such as 9.125: its table holds scores before the softmax, where a masked one is -inf; zeros, and rows that sum to one,
come after it.
"""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from kente.lectures.finding import Finding
from kente.lectures.translator import UPDATES, Subject, subject
from kente.reporting import SILENT, Reporter
from kente.show.charts import heatmap, table

SOURCE, TARGET = "I am good", "Je vais bien"
START = "<sos>"


def ahead(weights: Tensor) -> float:
    """The largest weight right of the diagonal, on words not written yet."""
    return float(weights.triu(diagonal=1).max())


def row_error(weights: Tensor) -> float:
    """How far the rows are from summing to one."""
    return float((weights.sum(dim=-1) - 1).abs().max())


def step_by_step_error(reader: Subject, source: list[int], target: list[int]) -> float:
    """Row t of one reading against the last row of a reading that ends there: the largest difference in any head."""
    whole = reader.decoder_maps(source, target)
    return max(
        float((weights[-1] - whole[place][length, : length + 1]).abs().max())
        for length in range(len(target) + 1)
        for place, weights in reader.decoder_maps(source, target[:length]).items()
    )


def explore(reporter: Reporter = SILENT, run: Path | None = None, *, updates: int = UPDATES) -> Finding:
    """Every head of every decoder layer reads "Je vais bien"."""
    reader = subject(run, reporter, updates)
    source, target = reader.source(SOURCE), reader.target(TARGET)
    maps = reader.decoder_maps(source, target)
    names = [START, *reader.target_names(target)]
    largest_ahead = max(ahead(weights) for weights in maps.values())
    largest_error = max(row_error(weights) for weights in maps.values())
    apart = step_by_step_error(reader, source, target)
    first = maps[0, 0]
    pictures = [
        heatmap(weights.tolist(), names, names, title=f"layer {layer + 1}, head {head + 1}")
        for (layer, head), weights in maps.items()
    ]
    figures = (
        table(
            ["", *names, "sum"],
            [
                [name, *(f"{weight:.3f}" for weight in row), f"{sum(row):.3f}"]
                for name, row in zip(names, first.tolist(), strict=True)
            ],
            caption="Layer 1, head 1: a row looks at its columns",
        ),
        f'<div class="cards" style="--room:15rem">{"".join(pictures)}</div>',
    )
    return Finding(
        "mask",
        "The mask of the decoder",
        "lecture 004",
        "With a mask of -inf over later words, one reading of the whole target gives each word the table it would have step by step.",
        found(len(maps), largest_ahead, largest_error, apart, reader.about),
        figures,
        {
            "about": reader.about,
            "pieces": names,
            "ahead": largest_ahead,
            "row_error": largest_error,
            "step_by_step_error": apart,
            "weights": {f"{layer}.{head}": weights.tolist() for (layer, head), weights in maps.items()},
        },
    )


def found(heads: int, largest_ahead: float, largest_error: float, apart: float, about: str) -> str:
    """What the numbers allow to be said."""
    zeros = "exactly 0" if largest_ahead == 0 else f"up to {largest_ahead:.0e}, not 0"
    ones = f"every row sums to one within {largest_error:.0e}"
    if largest_error > 1e-3:
        ones = f"rows miss one by up to {largest_error:.0e}"
    same = "gives the same rows" if apart < 1e-4 else "does not give the same rows"
    return (
        f"In all {heads} heads of {about} the weights right of the diagonal are {zeros} and {ones}; "
        f"reading the beginnings one by one {same} (largest difference {apart:.0e})."
    )
