"""A mixture of experts: many feed-forward networks, of which each word visits a few (Shazeer et al., 2017).

The network grows, the work for a word does not. Every word is served, however many want the same expert: nothing depends on
a word's neighbours, and so writing word by word gives what reading in one go gives.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from kente.nn.linear import Linear


@dataclass
class Routing:
    """Where words went, in lines or in a list: the router's probabilities (..., E) and the experts it chose (..., used)."""

    probabilities: Tensor
    chosen: Tensor


def balance(
    probabilities: Float[Tensor, "*B E"], chosen: Int[Tensor, "*B used"], mask: Bool[Tensor, "*B"]
) -> Float[Tensor, ""]:
    """E sum_e f_e P_e  with  f_e the share of visits that went to expert e, P_e its mean probability, over real words alone.

    (Switch Transformer: Fedus et al., 2022, equation 4.)  1 when all are equally busy, E when one expert gets everything.
    The shares do not let a gradient through; the probabilities do, and fall where the shares are high.
    """
    count = probabilities.shape[-1]
    visits = F.one_hot(chosen[mask].flatten(), count).to(probabilities.dtype)
    return count * (visits.mean(dim=0) * probabilities[mask].mean(dim=0)).sum()


class Experts(nn.Module):
    """y = sum_e g_e(x) Expert_e(x)  over the `used` experts with the highest p = softmax(W x);  g = p / (sum of p over those used).

    A single expert's share of itself would always be 1 and teach the router nothing, so with used = 1 its gate is p (as in the
    Switch Transformer). Padding is routed like any word; it changes nothing, since no word looks at it and `balance` leaves it out.
    """

    def __init__(self, width: int, experts: Iterable[nn.Module], used: int):
        super().__init__()
        self.experts, self.used = nn.ModuleList(experts), used
        self.router = Linear(width, len(self.experts), bias=False)
        nn.init.xavier_uniform_(self.router.weight)
        self.routing: Routing | None = None  # of the last reading, while training and until `take_balance`

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        probabilities = self.router(x).softmax(dim=-1)
        gates, chosen = probabilities.topk(self.used, dim=-1)  # (*B, used)
        if self.used > 1:
            gates = gates / gates.sum(dim=-1, keepdim=True)
        learning = self.training and torch.is_grad_enabled()
        self.routing = Routing(probabilities, chosen) if learning else None
        words = x.flatten(0, -2)
        visits = chosen.flatten().argsort(stable=True)  # sorted by expert; visit v is of word v // used
        visitors = visits // self.used
        answers = [  # an expert nobody visits answers too, with nothing: its weights get a gradient of zeros
            expert(group)
            for expert, group in zip(self.experts, self._groups(words.index_select(0, visitors), chosen), strict=True)
        ]
        weighted = torch.cat(answers) * gates.flatten().index_select(0, visits)[:, None]
        return torch.zeros_like(words).index_add(0, visitors, weighted).view_as(x)

    def _groups(self, visitors: Float[Tensor, "N D"], chosen: Int[Tensor, "*B used"]) -> tuple[Tensor, ...]:
        """Cut the vectors, sorted by expert, into one group for each expert."""
        if chosen.is_meta:  # a model without numbers, built for its shapes
            return visitors.tensor_split(len(self.experts))
        return visitors.split(chosen.flatten().bincount(minlength=len(self.experts)).tolist())

    def take_balance(self, mask: Bool[Tensor, "B T"]) -> Float[Tensor, ""] | None:
        """The balance of the last reading over words that the mask names real; None unless it was read to train. Forgets the reading."""
        routing, self.routing = self.routing, None
        if routing is None:
            return None
        real = mask.flatten()
        probabilities, chosen = (part.flatten(0, -2)[: len(real)] for part in (routing.probabilities, routing.chosen))
        return balance(probabilities, chosen, real)
