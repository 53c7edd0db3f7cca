"""The few largest of many numbers, without sorting the many."""

from __future__ import annotations

import torch
from torch import Tensor

DEEP = 64
"""Numbers of which only the largest is looked at first."""


def likeliest(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of each row (N, V), largest first, and where they stand: what topk gives, ties aside.

    A row is written in DEEP lines, one below the other. The largest of each column costs little to find, and none of the `count`
    largest can stand outside the `count` columns whose largest are the largest; so only those are searched.
    """
    columns = scores.shape[1] // DEEP
    if columns < 4 * count:  # little to save
        return scores.topk(count, dim=1)
    lines, rest = scores[:, : columns * DEEP].unflatten(1, (DEEP, columns)), scores[:, columns * DEEP :]
    chosen = lines.amax(1).topk(count, dim=1).indices[:, None].expand(-1, DEEP, -1)  # (N, DEEP, count)
    best, places = torch.cat([lines.gather(2, chosen).flatten(1), rest], dim=1).topk(count, dim=1)
    above = torch.arange(0, columns * DEEP, columns, device=scores.device)[:, None]  # where each line begins
    ids = torch.cat([(chosen + above).flatten(1), _numbers(scores)[:, columns * DEEP :]], dim=1)
    return best, ids.gather(1, places)


def _numbers(scores: Tensor) -> Tensor:
    return torch.arange(scores.shape[1], device=scores.device).expand(len(scores), -1)
