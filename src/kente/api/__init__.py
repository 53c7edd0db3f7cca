"""The verbs. Command line, server and notebooks all call these: check, train, resume, load, evaluate, score, summary, info, demo.

Each is imported when it is first used: looking at text should not wait, or pay in memory, for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kente.api.corpora import Data, check
    from kente.api.demonstration import demo
    from kente.api.training import TrainResult, resume, train
    from kente.api.using import evaluate, info, load, score, summary

__all__ = [
    "Data",
    "TrainResult",
    "check",
    "demo",
    "evaluate",
    "info",
    "load",
    "resume",
    "score",
    "summary",
    "train",
]

_HOMES = {
    "corpora": ("Data", "check"),
    "demonstration": ("demo",),
    "training": ("TrainResult", "resume", "train"),
    "using": ("evaluate", "info", "load", "score", "summary"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"kente.api.{home}"), name)
    raise AttributeError(f"module 'kente.api' has no attribute {name!r}")
