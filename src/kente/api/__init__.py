"""The verbs. Command line, server and notebooks all call these: check, train, resume, load, evaluate, score, summary, info, demo."""

from kente.api.demonstration import demo
from kente.api.inputs import Data
from kente.api.training import TrainResult, resume, train
from kente.api.using import check, evaluate, info, load, score, summary

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
