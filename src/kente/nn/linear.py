"""y = x W' + b, the product that layers are made of, by the library that is fastest at it on this processor.

torch multiplies float32 matrices with MKL. On processors that are not Intel's, MKL leaves half of AVX-512 unused; oneDNN, which comes with
torch as well, does not, and the same sums come out twice as fast. torch has a switch that sends *all* products there, but with it the
many tiny products inside its fused attention become ten times slower; so it is done here, for the products of layers alone.
"""

from __future__ import annotations

import platform
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor, nn

FEW, SOME = 64, 512
"""Below FEW rows nothing is gained. Above, oneDNN prepares itself for each number of rows anew (a millisecond, and half a megabyte that it
keeps), so it is asked for few numbers alone: multiples of 16, and of 64 from SOME on. Whoever has others fills up (`filled`)."""


@cache
def with_onednn() -> bool:
    """Whether float32 products are oneDNN's here. It follows from the processor alone, so that the same machine gives the same bits."""
    return (
        _vendor() == "AuthenticAMD"
        and torch.backends.cpu.get_cpu_capability() == "AVX512"
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


def _vendor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "vendor_id":
                return value.strip()
    return (
        platform.processor().rpartition(",")[2].strip()
    )  # Windows: "AMD64 Family 26 Model 2 Stepping 1, AuthenticAMD"


def product(x: Float[Tensor, "N K"], weight: Float[Tensor, "M K"], bias: Tensor | None = None) -> Float[Tensor, "N M"]:
    """x W' + b by oneDNN, whatever the strides of W. No gradient."""
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return found


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product(x, weight, bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        return (
            product(outer, weight.T) if of_x else None,
            outer_product(outer, x) if of_weight else None,
            outer.sum(dim=0) if of_bias else None,
        )


def outer_product(outer: Float[Tensor, "N M"], x: Float[Tensor, "N K"]) -> Float[Tensor, "M K"]:
    """sum_n outer_n x_n', the gradient of W. oneDNN copies its first factor: of long ones the narrower should be first."""
    narrower = x.shape[1] < outer.shape[1] and len(x) >= SOME
    return product(x.T, outer.T).T.contiguous() if narrower else product(outer.T, x.T)


def add_outer_product(total: Float[Tensor, "M K"], outer: Float[Tensor, "N M"], x: Float[Tensor, "N K"]) -> None:
    """total += sum_n outer_n x_n', in place. No gradient."""
    if _suits(outer):
        total += outer_product(outer, x)
    else:
        total.addmm_(outer.T, x)


def _suits(x: Tensor) -> bool:
    rows = x.numel() // max(1, x.shape[-1])
    return rows >= FEW and not _missing(rows) and x.dtype == torch.float32 and x.is_cpu and with_onednn()


def _missing(rows: int) -> int:
    return -rows % (16 if rows <= SOME else 64)


def filled(x: Shaped[Tensor, "N *X"], value: float | bool = 0) -> Shaped[Tensor, "N2 *X"]:
    """The rows, and below them as many of this value as make products fast here; often none."""
    missing = _missing(len(x))
    if not missing or len(x) < FEW or not (x.is_cpu and with_onednn()):
        return x
    return torch.cat([x, x.new_full((missing, *x.shape[1:]), value)])


def linear(x: Float[Tensor, "*B K"], weight: Float[Tensor, "M K"], bias: Tensor | None = None) -> Float[Tensor, "*B M"]:
    """x W' + b"""
    if not _suits(x):
        return F.linear(x, weight, bias)
    rows = x.reshape(-1, x.shape[-1])
    if torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad):
        found: Tensor = _Linear.apply(rows, weight, bias)
    else:
        found = product(rows, weight, bias)
    return found.view(*x.shape[:-1], len(weight))


class Linear(nn.Linear):
    """nn.Linear, faster where it can be."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)
