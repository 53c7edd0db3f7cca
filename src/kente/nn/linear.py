"""y = x W' + b, the product that layers are made of, by the library that is fastest at it on this processor.

torch multiplies float32 matrices with MKL. On processors that are not Intel's, MKL leaves half of AVX-512 unused; oneDNN, which comes with
torch as well, does not, and the same sums come out twice as fast. torch has a switch that sends *all* products there, but with it the
many tiny products inside its fused attention become ten times slower; so it is done here, for the products of layers alone.

Inside `rounding()` both factors of a product, and what comes out, are rounded to bfloat16, in the gradients too: processors with units for it
multiply such factors twice as fast or faster. Sums within a product, and everything that is not a product of a layer, stay float32.
"""

from __future__ import annotations

import platform
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor, nn

FEW, SOME = 64, 512
"""Below FEW rows nothing is gained. Above, oneDNN prepares itself for each number of rows anew (a millisecond, and half a megabyte that it
keeps), so it is asked for few numbers alone: multiples of 16, and of 64 from SOME on. Others are filled up (`filled`)."""
STEP = 256
"""Numbers of rows that the notes of a loop are filled up to: their sizes are many, too."""
NARROW = 64
"""Columns of a product up to which filling up would cost more than it gains."""


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


# --- factors that are rounded ---


@cache
def rounds_fast(device: str = "cpu") -> bool:
    """Whether this processor, or graphics card, has units for products of bfloat16."""
    if device == "cuda":
        return torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)
    asks = (getattr(torch.cpu, name, None) for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"))
    return device == "cpu" and torch.backends.mkldnn.is_available() and any(ask is not None and ask() for ask in asks)


@contextmanager
def rounding(on: bool = True) -> Iterator[None]:
    """Around a reading: factors of layers' products are rounded, in this thread. Their gradients are, wherever they are taken."""
    before, _here.rounding = _here.rounding, on
    try:
        yield
    finally:
        _here.rounding = before


def is_rounding() -> bool:
    """Whether this is inside `rounding()`."""
    return _here.rounding


def factor(x: Shaped[Tensor, "*X"]) -> Shaped[Tensor, "*X"]:
    """One side of a product as it will be multiplied: for what is used in several."""
    return x.bfloat16() if _here.rounding else x


# --- one product ---


def product(
    x: Shaped[Tensor, "N K"], weight: Shaped[Tensor, "M K"], bias: Tensor | None = None
) -> Float[Tensor, "N M"]:
    """x W' + b by oneDNN, whatever the strides of W; in bfloat16 where the factors are. No gradient."""
    if x.dtype == torch.bfloat16:
        exact = x.is_cpu and not rounds_fast()  # there nothing is gained, but what began elsewhere can go on
        found = F.linear(x.float(), weight.float()) if exact else F.linear(x, weight).float()
        return found if bias is None else found.add_(bias)
    found = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return found


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        x, weight = factor(x), factor(weight)
        ctx.save_for_backward(x, weight)
        return product(x, weight, bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        by_bias = outer.sum(dim=0) if of_bias else None
        outer = outer.to(x.dtype)
        return (
            product(outer, weight.T) if of_x else None,
            outer_product(outer, x) if of_weight else None,
            by_bias,
        )


# --- the same weight at every step of a loop ---


Notes = list[tuple[Tensor, Tensor]]
"""(gradient of a product, what was multiplied) for each time a weight was used."""


class _Here(threading.local):
    """What holds in this thread: whether factors are rounded, and the weights used in the loop it is in, each with its stand-in, what
    is multiplied with, and notes."""

    rounding: bool = False
    weights: dict[int, tuple[Tensor, Tensor, Tensor, Notes]] | None = None


_here = _Here()


@contextmanager
def repeated() -> Iterator[None]:
    """Around a loop: weights that are used at every step get their gradient by one large product in the end, not by a small one for each step.

    Of products without a bias, where oneDNN is used.
    """
    before, _here.weights = _here.weights, {}
    try:
        yield
    finally:
        _here.weights = before


def _noted_product(x: Tensor, weight: Tensor) -> Tensor:
    assert _here.weights is not None, "outside of a loop"
    if id(weight) not in _here.weights:
        notes: Notes = []
        _here.weights[id(weight)] = weight, _Gathered.apply(weight, notes), factor(weight.detach()), notes
    _, stand_in, multiplied, notes = _here.weights[id(weight)]
    found: Tensor = _Noted.apply(x, stand_in, multiplied, notes)
    return found


class _Gathered(torch.autograd.Function):
    """A stand-in for a weight, whose gradient is made of the notes that `_Noted` has left."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, notes: Notes) -> Tensor:
        ctx.notes = notes
        ctx.set_materialize_grads(False)
        return weight.view_as(weight)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, _: None) -> tuple[Tensor, None]:
        outers, inputs = (_one_below_the_other(parts) for parts in zip(*ctx.notes, strict=True))
        ctx.notes.clear()
        return outer_product(outers, inputs), None


def _one_below_the_other(parts: Sequence[Tensor]) -> Tensor:
    """All their rows, and zeros up to one of few numbers."""
    missing = -sum(map(len, parts)) % STEP
    return torch.cat([*parts, parts[0].new_zeros(missing, parts[0].shape[1])])


class _Noted(torch.autograd.Function):
    """x W', which notes down what the gradient of W, by its stand-in, is made of."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, stand_in: Tensor, weight: Tensor, notes: Notes) -> Tensor:
        x = factor(x)
        ctx.save_for_backward(x, weight)
        ctx.notes = notes
        return product(x, weight)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, None, None, None]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, *_ = ctx.needs_input_grad
        outer = outer.to(x.dtype)
        if of_weight:
            ctx.notes.append((outer, x))
        return product(outer, weight.T) if of_x else None, None, None, None


# --- any weight ---


def outer_product(outer: Float[Tensor, "N M"], x: Float[Tensor, "N K"]) -> Float[Tensor, "M K"]:
    """sum_n outer_n x_n', the gradient of W. oneDNN copies its first factor: of long ones the narrower should be first."""
    narrower = x.shape[1] < outer.shape[1] and len(x) >= SOME
    return product(x.T, outer.T).T.contiguous() if narrower else product(outer.T, x.T)


def add_outer_product(total: Float[Tensor, "M K"], outer: Float[Tensor, "N M"], x: Float[Tensor, "N K"]) -> None:
    """total += sum_n outer_n x_n', in place; fastest if `total` stands in memory by columns. No gradient."""
    if _suits(outer):
        total += product(factor(x).T, factor(outer).T).T
    else:
        total.addmm_(outer.T.to(total.dtype), x.to(total.dtype))


def _suits(x: Tensor) -> bool:
    """Whether a product is oneDNN's as it is."""
    return not _missing(_rows(x)) and _would_suit(x)


def _would_suit(x: Tensor) -> bool:
    """Whether it is oneDNN's once its rows are filled up, or anyone's whose factors are rounded."""
    kinds = (torch.float32, torch.bfloat16)
    return x.dtype in kinds and (x.is_cpu or _here.rounding) and many(_rows(x))


def _rows(x: Tensor) -> int:
    return x.numel() // max(1, x.shape[-1])


def many(rows: int) -> bool:
    """Whether so many rows are enough for products to be oneDNN's, or rounded."""
    return rows >= FEW and (_here.rounding or with_onednn())


def _missing(rows: int) -> int:
    return -rows % (16 if rows <= SOME else 64)


def filled(x: Shaped[Tensor, "N *X"], value: float | bool = 0) -> Shaped[Tensor, "N2 *X"]:
    """The rows, and below them as many of this value as make products fast here; often none."""
    missing = _missing(len(x))
    if not missing or not (x.is_cpu and many(len(x))):
        return x
    return torch.cat([x, x.new_full((missing, *x.shape[1:]), value)])


def linear(x: Float[Tensor, "*B K"], weight: Float[Tensor, "M K"], bias: Tensor | None = None) -> Float[Tensor, "*B M"]:
    """x W' + b"""
    if not (_suits(x) or (len(weight) > NARROW and _would_suit(x))):
        return F.linear(x, weight, bias)
    rows = x.reshape(-1, x.shape[-1])
    whole = filled(rows)
    if not (torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad)):
        found = product(factor(whole), factor(weight), bias)
    elif _here.weights is not None and bias is None:
        found = _noted_product(whole, weight)
    else:
        found = _Linear.apply(whole, weight, bias)
    if whole is not rows:
        found = found[: len(rows)]
    return found if x.dim() == 2 else found.view(*x.shape[:-1], len(weight))


class Linear(nn.Linear):
    """nn.Linear, faster where it can be."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)
