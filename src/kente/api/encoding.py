"""The encoder of any run: a translator's, a masked encoder, a language model, word vectors, or what stands upon one of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from kente.api.inputs import pick_device, use_threads
from kente.data.framing import Framing
from kente.data.tokenizer import PAD
from kente.decode.embedder import framing_of
from kente.errors import RunError
from kente.models.interface import Encodes
from kente.reporting import SILENT, Reporter
from kente.runs import Run


@dataclass(frozen=True)
class Encoder(Framing):
    """A network that gives words vectors in their context, and how text is put to it."""

    model: nn.Module
    device: torch.device

    def batch(self, rows: list[list[int]]) -> tuple[Tensor, Tensor]:
        """(ids, mask), both (B, S): rows filled up with PAD; mask is True where a token stands."""
        width = max(map(len, rows))
        ids = torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows], device=self.device)
        lengths = torch.tensor([len(row) for row in rows], device=self.device)
        return ids, torch.arange(width, device=self.device) < lengths[:, None]

    def encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        """States (B, S, D), one for each token; what stands at padding means nothing."""
        return self.model.encode(ids, mask)  # type: ignore[operator]


def load_encoder(
    run: Path | str, *, device: str = "auto", threads: int | None = None, reporter: Reporter = SILENT
) -> Encoder:
    """The encoder of a run with its best weights: load_encoder("runs/mine")."""
    opened = Run.open(run)
    use_threads(threads)
    where = pick_device(device)
    checkpoint = opened.chosen(reporter)
    return encoder_of(opened.model(checkpoint, where), opened, where)


def encoder_of(model: nn.Module, run: Run, device: torch.device) -> Encoder:
    """The encoder of a network that is there already."""
    if not isinstance(model, Encodes):
        raise RunError(f"{run.path} holds a {run.config.model.kind} model, which does not read text into vectors")
    framing = framing_of(run)
    return Encoder(framing.tokenizer, framing.begins, framing.longest, model, device, marks=framing.marks)
