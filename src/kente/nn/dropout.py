"""Dropout with one byte of randomness for each value: on a CPU, drawing numbers is most of what dropout costs."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEVELS = 256


class Dropout(nn.Module):
    """Silences a share `p` of the values while training and scales the rest up, so that sums keep their size.

    On a CPU p is rounded to a multiple of 1/256 and the scale follows the rounded share exactly.
    """

    def __init__(self, p: float):
        super().__init__()
        self.p = p
        self.silent = max(1, round(p * LEVELS)) if p else 0

    def forward(self, x: Tensor) -> Tensor:
        if not (self.training and self.silent):
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.p)
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64)
        chance = words.random_(-(2**63), None).view(torch.uint8)[: x.numel()].view(x.shape)
        kept = (chance >= self.silent).to(x.dtype).mul_(LEVELS / (LEVELS - self.silent))
        return x * kept

    def extra_repr(self) -> str:
        return f"p={self.p}"
