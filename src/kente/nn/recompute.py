"""Memory for time: ways through a stack of layers that keep less of them for the gradient.

A layer is a list of sub-layers, each a function (onto, x) -> onto + f(x). In an ordinary network both are the same stream.

    keep        everything that any layer computed
    recompute   what goes into each layer; the layer is computed once more when its gradient is due (Chen et al., 2016)
    reversible  what comes out of the last layer; what went in is computed back from it (Gomez et al., 2017; Kitaev et al., 2020)

The first two are one network. The third is another, whose streams a and b take turns:  (a, b) -> (b, a + f(b)).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from kente.nn.dropout import Moment
from kente.nn.linear import is_rounding, rounding

Sublayer = Callable[..., Tensor]
"""(onto, x, *outside) -> onto + f(x, *outside)"""


@dataclass
class LayerCall:
    """A layer about to be used: its sub-layers, its weights, and what they look at that was made outside the stack."""

    sublayers: Sequence[Sublayer]
    weights: Sequence[Tensor] = ()
    outside: Sequence[Tensor] = ()


Passage = Callable[[Sequence[LayerCall], Tensor], Tensor]


def _again() -> Callable[[], AbstractContextManager[None]]:
    """What holds now, to be entered when something is computed a second time: the same dropout, factors rounded or not."""
    moment, rounds = Moment(), is_rounding()

    @contextmanager
    def now() -> Iterator[None]:
        with moment, rounding(rounds):
            yield

    return now


def once_more(function: Callable[..., Tensor], *inputs: Any) -> Tensor:
    """function(*inputs), computed again, with the same dropout, when its gradient is due: of the first time only inputs are kept."""
    if not torch.is_grad_enabled():
        return function(*inputs)

    def contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        return nullcontext(), _again()()

    result: Tensor = checkpoint(
        function, *inputs, use_reentrant=False, preserve_rng_state=False, context_fn=contexts
    )  # _again preserves what is drawn
    return result


def _through(sublayers: Sequence[Sublayer], x: Tensor, *outside: Tensor) -> Tensor:
    for add in sublayers:
        x = add(x, x, *outside)
    return x


def keep(layers: Sequence[LayerCall], x: Tensor) -> Tensor:
    """x = x + f(x) for every sub-layer."""
    for layer in layers:
        x = _through(layer.sublayers, x, *layer.outside)
    return x


def recompute(layers: Sequence[LayerCall], x: Tensor) -> Tensor:
    """What `keep` gives."""
    for layer in layers:
        x = once_more(_through, layer.sublayers, x, *layer.outside)
    return x


def reversible(layers: Sequence[LayerCall], x: Tensor) -> Tensor:
    """(a, b) = (x, x);  (a, b) = (b, a + f(b)) for every sub-layer;  a + b."""
    if torch.is_grad_enabled():
        a, b = _Reversible.apply(
            layers, x, *(tensor for layer in layers for tensor in (*layer.weights, *layer.outside))
        )
        return a + b
    a = b = x
    for layer in layers:
        for add in layer.sublayers:
            a, b = b, add(a, b, *layer.outside)
    return a + b


class _Reversible(torch.autograd.Function):
    """Both streams behind the last layer. Weights and what is outside are arguments so that gradients find their way to them."""

    @staticmethod
    def forward(ctx: Any, layers: Sequence[LayerCall], x: Tensor, *_: Tensor) -> tuple[Tensor, Tensor]:
        ctx.layers, ctx.moments = layers, []
        a = b = x
        for layer in layers:
            for add in layer.sublayers:
                ctx.moments.append(_again())
                a, b = b, add(a, b, *layer.outside)
        ctx.save_for_backward(a, b)
        return a, b

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        a, b = ctx.saved_tensors
        a_gradient, b_gradient = outer
        moments = list(ctx.moments)
        found: list[Tensor | None] = []
        for layer in reversed(ctx.layers):
            outside = [tensor.detach().requires_grad_(tensor.requires_grad) for tensor in layer.outside]
            of_layer: list[Tensor | None] = [None] * (len(layer.weights) + len(outside))
            for add in reversed(layer.sublayers):
                with torch.enable_grad(), moments.pop()():
                    read = a.detach().requires_grad_()
                    added = add(torch.zeros_like(a), read, *outside)
                gradient, *others = _gradients(added, [read, *layer.weights, *outside], b_gradient)
                of_layer = [_plus(old, new) for old, new in zip(of_layer, others, strict=True)]
                a, b = b - added.detach(), a
                a_gradient, b_gradient = b_gradient, a_gradient + gradient
            found = of_layer + found
        return None, a_gradient + b_gradient, *found


def _gradients(result: Tensor, inputs: list[Tensor], outer: Tensor) -> list[Any]:
    """Of the result for each input; None for what asks for no gradient or has no part in the result."""
    asking = [tensor for tensor in inputs if tensor.requires_grad]
    found = iter(torch.autograd.grad(result, asking, outer, allow_unused=True))
    return [next(found) if tensor.requires_grad else None for tensor in inputs]


def _plus(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other
