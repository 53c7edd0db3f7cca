"""How weights move: AdamW for all of them, or Muon for the matrices between layers and AdamW for the rest."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from kente.config import OptimiserConfig

FEWEST_ROWS = 16
"""Rows (and columns) of the smallest matrix worth making orthogonal."""
LANDING = ("linear", "cosine", "wsd")
"""Schedules that come down to their end with the last update."""


def rate_at(config: OptimiserConfig, step: int, progress: float, width: int) -> float:
    """The learning rate of update `step` (the first is 1); `progress` is the share of the whole run behind it.

    noam:  rate * width^-0.5 * min(step^-0.5, step * warmup^-1.5)      (the paper's equation 3)
    """
    warmup = max(config.warmup, 1)
    if config.schedule == "noam":
        return config.rate * width**-0.5 * min(step**-0.5, step * warmup**-1.5)
    rise = min(1.0, step / warmup) if config.warmup else 1.0
    match config.schedule:
        case "inverse-sqrt":
            fall = min(1.0, math.sqrt(warmup / step))
        case "linear":
            fall = 1 - (1 - config.final_rate) * progress
        case "cosine":
            fall = config.final_rate + (1 - config.final_rate) * (1 + math.cos(math.pi * progress)) / 2
        case "wsd":
            into_decay = max(0.0, progress - (1 - config.decay_share)) / config.decay_share
            fall = 1 - (1 - config.final_rate) * into_decay
        case _:
            fall = 1.0
    return config.rate * min(rise, fall)


ROUNDS = ((8.0934, -23.6204, 17.4462), (3.6366, -2.7219, 0.5365), (2.6613, -1.9772, 0.4526))
"""For each round the a s + b s^3 + c s^5 that comes closest to 1 for every s that the rounds before may leave: 0.01 to 1, 0.1 to 1.9, 0.4 to 1.6.
After the last, what was between 0.01 and 1 is between 0.73 and 1.27."""


def orthogonalise(matrices: Tensor) -> Tensor:
    """About the nearest (semi-)orthogonal matrix to each of (N, R, C), R <= C, in their own precision: singular values of about one.

    X <- a X + (b A + c A A) X  with  A = X X',  begun at  X / |A|^(1/2):  no singular value is larger than that, and few are much smaller.
    """
    matrices = of_size_one(matrices)
    gram = torch.bmm(matrices, matrices.mT)
    size = gram.norm(dim=(-2, -1), keepdim=True).clamp_min(1e-30)
    x, gram = matrices / size.sqrt(), gram / size
    for number, (a, b, c) in enumerate(ROUNDS):
        if number:
            gram = torch.bmm(x, x.mT)
        polynomial = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.baddbmm(x, polynomial, x, beta=a)
    return x


def of_size_one(matrices: Tensor) -> Tensor:
    """Each times the power of two that brings its largest value between a half and one, which changes no digit.

    Gradients of a layer that has nothing left to learn may be so small that their fourth powers, which |A| is made of, would be nothing.
    """
    largest = torch.linalg.vector_norm(matrices, math.inf, dim=(-2, -1), keepdim=True)
    _, exponent = torch.frexp(largest)
    return matrices * torch.ldexp(torch.ones_like(largest), -exponent.clamp(-126, 126))


def square_blocks(matrix: Tensor) -> list[Tensor]:
    """Views of a matrix cut into squares where one side is a multiple of the other: stacked projections are separate maps."""
    rows, columns = matrix.shape
    if rows % columns == 0:
        return list(matrix.split(columns, dim=0))
    if columns % rows == 0:
        return list(matrix.split(rows, dim=1))
    return [matrix]


class Muon:
    """Momentum, orthogonalised (Jordan et al., 2024), scaled so that one learning rate serves it and AdamW alike.

    Blocks of one shape are orthogonalised together: a few large products instead of many small ones. With `turns`, a block moves only
    every so many updates, that much further, and the others meanwhile: momentum hardly turns from one update to the next.
    """

    def __init__(self, parameters: list[nn.Parameter], momentum: float, weight_decay: float, turns: int = 1):
        self.momentum, self.weight_decay = momentum, weight_decay
        self.turns, self.turn = turns, 0
        self.groups: dict[tuple[int, int], list[nn.Parameter]] = defaultdict(list)
        for parameter in parameters:
            rows, columns = square_blocks(parameter.detach())[0].shape
            self.groups[rows, columns].append(parameter)
        self.buffers = {
            shape: torch.stack([block for p in group for block in square_blocks(torch.zeros_like(p))])
            for shape, group in self.groups.items()
        }

    @torch.no_grad()
    def step(self, rate: float) -> None:
        moving = slice(self.turn, None, self.turns)
        for shape, group in self.groups.items():
            gradients = torch.stack([block for p in group for block in square_blocks(p.grad)])  # type: ignore[arg-type]
            buffer = self.buffers[shape]
            buffer.lerp_(gradients, 1 - self.momentum)
            blocks = [block for p in group for block in square_blocks(p.data)][moving]
            if not blocks:
                continue
            ahead = gradients[moving].lerp_(buffer[moving], self.momentum)  # Nesterov: look where the momentum is going
            wide = ahead if shape[0] <= shape[1] else ahead.mT
            update = orthogonalise(wide)
            update = update if shape[0] <= shape[1] else update.mT
            further = self.turns * rate
            size = further * 0.2 * math.sqrt(max(shape))  # the root mean square of an AdamW update is about 0.2
            if self.weight_decay:
                torch._foreach_mul_(blocks, 1 - further * self.weight_decay)
            torch._foreach_add_(blocks, list(update.unbind()), alpha=-size)
        self.turn = (self.turn + 1) % self.turns


def _row_tables(model: nn.Module) -> set[int]:
    """Embeddings (and output tables): one row for each word or position, not a map between spaces."""
    return {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}


def _is_map(parameter: Tensor) -> bool:
    """A matrix between two spaces. One with a handful of rows, such as a router's or a score's, is a few vectors, not a map."""
    return parameter.ndim == 2 and min(parameter.shape) >= FEWEST_ROWS


class Optimiser:
    """All of a model's weights, moved by one call; its memory can be saved as named tensors and put back exactly."""

    def __init__(self, model: nn.Module, config: OptimiserConfig):
        self.config = config
        self.names = {id(p): name for name, p in model.named_parameters()}
        parameters = [p for p in model.parameters() if p.requires_grad]
        tables = _row_tables(model)
        maps = [p for p in parameters if id(p) not in tables and _is_map(p)] if config.kind == "muon" else []
        self.muon = Muon(maps, config.momentum, config.weight_decay, config.turns) if maps else None
        by_muon = {id(p) for p in maps}
        rest = [p for p in parameters if id(p) not in by_muon]
        self.adamw = torch.optim.AdamW(
            [
                {"params": [p for p in rest if p.ndim == 2], "weight_decay": config.weight_decay},
                {"params": [p for p in rest if p.ndim != 2], "weight_decay": 0.0},
            ],
            lr=config.rate,
            betas=config.betas,
            eps=config.epsilon,
            fused=True,
        )
        self.parameters = parameters

    def gradient_norm(self) -> Tensor:
        """The length of the whole gradient as one vector."""
        return torch.nn.utils.get_total_norm([p.grad for p in self.parameters if p.grad is not None])

    @torch.no_grad()
    def step(self, rate: float, norm: Tensor) -> None:
        """Clip by the norm already computed, then move. The caller has made sure that the norm is finite."""
        if self.config.clip and norm > self.config.clip:
            gradients = [p.grad for p in self.parameters if p.grad is not None]
            torch._foreach_mul_(gradients, self.config.clip / (norm + 1e-6))
        for group in self.adamw.param_groups:
            group["lr"] = rate
        self.adamw.step()
        if self.muon:
            self.muon.step(rate)

    def zero(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def _adamw_slots(self) -> Iterator[tuple[str, dict[str, Tensor], str, nn.Parameter]]:
        for group in self.adamw.param_groups:
            for parameter in group["params"]:
                for slot in ("exp_avg", "exp_avg_sq", "step"):
                    yield f"adamw.{slot}.{self.names[id(parameter)]}", self.adamw.state[parameter], slot, parameter

    def state(self) -> dict[str, Tensor]:
        """Everything remembered between updates, by name."""
        tensors = {name: state[slot] for name, state, slot, _ in self._adamw_slots() if slot in state}
        for shape, buffer in (self.muon.buffers if self.muon else {}).items():
            tensors[f"muon.momentum.{shape[0]}x{shape[1]}"] = buffer
        if self.muon and self.muon.turns > 1:
            tensors["muon.turn"] = torch.tensor(self.muon.turn)
        return tensors

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Put back what `state` gave."""
        for name, state, slot, parameter in self._adamw_slots():
            if name in tensors:
                # the fused kernel keeps its step count as a float on the parameter's device
                state[slot] = tensors[name].to(parameter.device).clone()
        for shape, buffer in (self.muon.buffers if self.muon else {}).items():
            buffer.copy_(tensors[f"muon.momentum.{shape[0]}x{shape[1]}"])
        if self.muon and "muon.turn" in tensors:
            self.muon.turn = int(tensors["muon.turn"])
