"""From a run to the task it trains for: one case for each."""

from __future__ import annotations

import torch

from kente.api.descent import Adapted, Started
from kente.api.heads import Classification, Similarity
from kente.api.language import Causal, Gaps
from kente.api.nodes import Nodes
from kente.api.translation import Translation
from kente.api.words import WordVectors
from kente.reporting import Reporter
from kente.runs import Run
from kente.train.task import Task


def task_of(run: Run, device: torch.device, threads: int, reporter: Reporter) -> Task:
    """The task that the run's settings name."""
    match run.config.train.task:
        case "translation":
            return _translation(run)(run, device, threads, reporter)
        case "causal":
            return Causal(run, device, threads, reporter)
        case "masked":
            return Gaps(run, device, threads, reporter)
        case "nodes":
            return Nodes(run, device, threads, reporter)
        case "words":
            return WordVectors(run, device, threads, reporter)
        case "classification":
            return Classification(run, device, threads, reporter)
        case "similarity":
            return Similarity(run, device, threads, reporter)


def _translation(run: Run) -> type[Translation]:
    """By what the request says a translator begins with: nothing, another translator, or parts of other runs."""
    request = run.request()
    if request.get("parent"):
        return Adapted
    return Started if request.get("encoder_from") or request.get("decoder_from") else Translation
