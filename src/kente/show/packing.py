"""An exploration as small JSON for a page: two letters to a weight.

A Transformer of 6 + 6 layers and 8 heads has a quarter of a million weights for 40 tokens. As digits they would fill a page of two
megabytes; twelve bits each, in the letters of base64, half of one. A weight is then off by 0.00012 at most.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kente.measure.explored import KINDS, Explored, Maps, Occlusion, Reading, Side, Step
from kente.show.text import visible
from kente.show.views import TITLES, right_to_left

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
FULL = 64 * 64 - 1
EXPLAINED = {
    "cross": "Before each piece it writes (a row), the decoder looks at the pieces of the source (the columns).",
    "encoder": "Each piece of the source (a row) looks at the pieces of the source (the columns).",
    "decoder": "Before each piece it writes (a row), the decoder looks back at what it has read: the start mark, then what it wrote.",
}
STEPWISE = ("cross", "decoder")
"""Kinds whose rows are written one after the other."""


def packed(values: NDArray[Any]) -> str:
    """Numbers from 0 to 1, two letters each; what is outside counts as the nearest of these, what is no number as 0."""
    levels = np.rint(np.clip(np.nan_to_num(values.astype(float)), 0, 1) * FULL).astype(np.int64).ravel()
    letters = np.frombuffer(LETTERS.encode(), dtype=np.uint8)
    return np.stack([letters[levels >> 6], letters[levels & 63]], axis=-1).tobytes().decode()


def record(explored: Explored) -> dict[str, Any]:
    """All that the page's script needs."""
    there = dict.fromkeys(maps.kind for reading in explored.readings for maps in reading.maps) or [next(iter(KINDS))]
    return {
        "kinds": {
            kind: {
                "title": TITLES.get(kind, kind),
                "explained": EXPLAINED.get(kind, ""),
                "stepwise": kind in STEPWISE,
            }
            for kind in there
        },
        "readings": [_reading(reading) for reading in explored.readings],
    }


def _reading(reading: Reading) -> dict[str, Any]:
    return {
        "name": visible(reading.name),
        "description": reading.description,
        "answer": visible(reading.answer),
        "text": visible(reading.text),
        "given": reading.given,
        "sides": {name: _side(side) for name, side in reading.sides.items()},
        "maps": [_maps(maps) for maps in reading.maps],
        "absent": dict(reading.absent),
        "steps": [_step(step) for step in reading.steps],
        "beam": reading.beam,
        "wentOn": reading.went_on,
        "vector": [round(value, 3) for value in reading.vector],
        "occlusion": _occlusion(reading.occlusion) if reading.occlusion else None,
        "links": [list(link) for link in reading.links],
        "warnings": [visible(warning) for warning in reading.warnings],
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "pieces": [visible(piece) for piece in side.pieces],
        "words": [[visible(word.text), word.begin, word.end] for word in side.words],
        "mirrored": right_to_left(side.labels(joined=True)),
    }


def _maps(maps: Maps) -> dict[str, Any]:
    return {
        "kind": maps.kind,
        "rows": maps.rows,
        "columns": maps.columns,
        "layers": maps.layers,
        "heads": maps.heads,
        "usual": maps.usual_layer(),
        "weights": packed(maps.weights),
        "rollout": None if maps.rollout is None else packed(maps.rollout),
        "habits": {name: np.round(values, 3).tolist() for name, values in maps.habits.items()},
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "piece": visible(step.piece),
        "p": _share(step.probability),
        "rank": step.rank,
        "candidates": [[visible(c.piece), _share(c.probability)] for c in step.candidates],
        "beginnings": [[visible(b.text), round(b.log_probability, 3), b.fate, int(b.chosen)] for b in step.beginnings],
    }


def _share(probability: float) -> float:
    return float(f"{probability:.4g}")


def _occlusion(occlusion: Occlusion) -> dict[str, Any]:
    return {
        "words": [visible(word) for word in occlusion.words],
        "without": packed(occlusion.probabilities),
        "instead": [visible(text) for text in occlusion.instead],
    }
