"""The few largest of many numbers, without sorting the many."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

BLOCK = 64
"""Numbers that are looked at together."""


def likeliest(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of each row (N, V), largest first, and where they stand: what topk gives, ties aside.

    None of them can stand outside the `count` blocks with the largest maxima, so only those are searched.
    """
    blocks = scores.shape[1] // BLOCK
    if blocks < 4 * count:  # little to save
        return scores.topk(count, dim=1)
    whole, rest = scores[:, : blocks * BLOCK].unflatten(1, (blocks, BLOCK)), scores[:, blocks * BLOCK :]
    chosen = whole.amax(2).topk(count, dim=1).indices  # (N, count)
    near = whole.gather(1, chosen[:, :, None].expand(-1, -1, BLOCK)).flatten(1)
    best, places = torch.cat([near, rest], dim=1).topk(count, dim=1)
    chosen = F.pad(chosen, (0, 1), value=blocks)  # behind the chosen blocks stands the rest, a last one that is not full
    return best, chosen.gather(1, places // BLOCK) * BLOCK + places % BLOCK
