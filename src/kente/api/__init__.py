"""The verbs. Command line, server and notebooks all call these: check, train, resume, load, evaluate, score, summary, info, compare,
report, lecture, look, export, demo, detector, translate_document.

Each is imported when it is first used: looking at text should not wait, or pay in memory, for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kente.api.comparison import Compared, compare, report
    from kente.api.corpora import Data, check
    from kente.api.demonstration import demo
    from kente.api.exporting import Exported, carriers, export
    from kente.api.lecturing import experiments, lecture
    from kente.api.loading import load, translate_lines
    from kente.api.looking import draw, example, links_of_words, look
    from kente.api.texts import detector, is_lowercase, translate_document
    from kente.api.training import TrainResult, resume, train
    from kente.api.using import evaluate, info, score, summary

__all__ = [
    "Compared",
    "Data",
    "Exported",
    "TrainResult",
    "carriers",
    "check",
    "compare",
    "demo",
    "detector",
    "draw",
    "evaluate",
    "example",
    "experiments",
    "export",
    "info",
    "is_lowercase",
    "lecture",
    "links_of_words",
    "load",
    "look",
    "report",
    "resume",
    "score",
    "summary",
    "train",
    "translate_document",
    "translate_lines",
]

_HOMES = {
    "comparison": ("Compared", "compare", "report"),
    "corpora": ("Data", "check"),
    "demonstration": ("demo",),
    "exporting": ("Exported", "carriers", "export"),
    "lecturing": ("experiments", "lecture"),
    "loading": ("load", "translate_lines"),
    "looking": ("draw", "example", "links_of_words", "look"),
    "texts": ("detector", "is_lowercase", "translate_document"),
    "training": ("TrainResult", "resume", "train"),
    "using": ("evaluate", "info", "score", "summary"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"kente.api.{home}"), name)
    raise AttributeError(f"module 'kente.api' has no attribute {name!r}")
