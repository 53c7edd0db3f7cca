"""What a layer costs as sentences grow: operations, steps that must wait for each other, and the longest path between two words.

The table of "Attention is all you need", section 4 (lecture 001 sums it up: constant path length, trivial to parallelise):

    layer                       operations     sequential   longest path
    self-attention              n^2 D          1            1
    recurrent                   n D^2          n            n
    convolution, kernel k       k n D^2        1            log_k n
    self-attention within r     r n D          1            n / r

and beside it the time each takes here: the table counts operations, a processor also waits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kente.lectures.finding import Finding, beside
from kente.lectures.practice import seeded
from kente.nn.attention import SelfAttention, attend, dot_scores
from kente.nn.recurrent import Layer, RNNCell
from kente.reporting import SILENT, Reporter
from kente.show.charts import Series, line_chart, table

KERNEL = 3
REACH = 16
"""Words a restricted layer sees to either side."""


def band_attention(queries: Tensor, keys: Tensor, values: Tensor, reach: int) -> Tensor:
    """Attention of (B, n, D) where word i sees words i - r .. i + r only, n a multiple of r: r n D operations, never n^2.

    Queries are cut into blocks of r words; a block sees itself and its two neighbours, less what is out of reach.
    """
    length = queries.shape[1]
    near = [_neighbourhoods(x, reach) for x in (keys, values)]  # (B, n/r, 3r, D)
    place = torch.arange(reach)[:, None] + reach  # in the neighbourhood
    other = torch.arange(3 * reach)[None]
    absolute = other + (torch.arange(length // reach) * reach - reach)[:, None, None]
    mask = ((place - other).abs() <= reach) & (absolute >= 0) & (absolute < length)  # (n/r, r, 3r)
    blocks = queries.unflatten(1, (-1, reach))  # (B, n/r, r, D)
    context, _ = attend(dot_scores(blocks, near[0]), near[1], mask)
    return context.flatten(1, 2)


def _neighbourhoods(x: Tensor, reach: int) -> Tensor:
    """Each block of `reach` words with the blocks before and after it, zeros where there is none."""
    return F.pad(x, (0, 0, reach, reach)).unfold(1, 3 * reach, reach).transpose(-1, -2)


def window_convolution(x: Tensor, weight: Tensor) -> Tensor:
    """y_i = W [x_{i-1}; x_i; x_{i+1}] as one matrix product over all windows: (B, n, D), (D, k D) -> (B, n, D)."""
    kernel = weight.shape[1] // x.shape[-1]
    padded = F.pad(x, (0, 0, kernel // 2, kernel // 2))
    windows = padded.unfold(1, kernel, 1).transpose(-1, -2).flatten(-2)  # (B, n, k D)
    return windows @ weight.T


@dataclass(frozen=True)
class Kind:
    """A layer of the table, in numbers: operations are multiplications of its leading term."""

    name: str
    operations: Callable[[int, int], int]
    sequential: Callable[[int], int]
    path: Callable[[int], int]


KINDS = (
    Kind("self-attention", lambda n, d: n * n * d, lambda n: 1, lambda n: 1),
    Kind("recurrent", lambda n, d: n * d * d, lambda n: n, lambda n: n),
    Kind(
        f"convolution, kernel {KERNEL}",
        lambda n, d: KERNEL * n * d * d,
        lambda n: 1,
        lambda n: dilated_layers(n, KERNEL),
    ),
    Kind(
        f"self-attention within {REACH}",
        lambda n, d: (2 * REACH + 1) * n * d,
        lambda n: 1,
        lambda n: max(1, math.ceil((n - 1) / REACH)),
    ),
)


def dilated_layers(length: int, kernel: int) -> int:
    """log_k n, rounded up: the layers until a tree of kernels, each reaching k times as far, spans n words."""
    layers, reach = 1, kernel
    while reach < length:
        layers, reach = layers + 1, reach * kernel
    return layers


def layers_to_time(width: int, heads: int) -> dict[str, Callable[[Tensor], Tensor]]:
    """The four as they are run here, the projections of attention included."""
    attention, restricted = SelfAttention(width, heads), SelfAttention(width, 1)
    recurrent = Layer(lambda inputs: RNNCell(inputs, width), width)
    weight = nn.init.xavier_uniform_(torch.empty(width, KERNEL * width))

    def within(x: Tensor) -> Tensor:
        queries, keys, values = restricted.query_key_value(x).chunk(3, dim=-1)
        context = band_attention(queries, keys, values, REACH)
        projected: Tensor = restricted.output(context)
        return projected

    return {
        KINDS[0].name: lambda x: attention(x)[0],
        KINDS[1].name: lambda x: recurrent(x)[0],
        KINDS[2].name: lambda x: window_convolution(x, weight),
        KINDS[3].name: within,
    }


@torch.inference_mode()
def milliseconds(layer: Callable[[Tensor], Tensor], x: Tensor, repeats: int) -> float:
    """The fastest of `repeats` readings, after one to warm up: other programs can only make a reading slower."""
    layer(x)
    spent = []
    for _ in range(repeats):
        began = time.perf_counter()
        layer(x)
        spent.append(time.perf_counter() - began)
    return 1000 * min(spent)


def crossing(lengths: list[int], one: list[float], other: list[float]) -> float | None:
    """The length from which `one` stays slower than `other`, read between measurements on logarithmic scales; None if it never does."""
    gaps = [math.log(a / b) for a, b in zip(one, other, strict=True)]
    for place in range(len(gaps) - 1, -1, -1):
        if gaps[place] <= 0:
            if place == len(gaps) - 1:
                return None
            share = -gaps[place] / (gaps[place + 1] - gaps[place])
            return float(lengths[place] * (lengths[place + 1] / lengths[place]) ** share)
    return float(lengths[0])


def explore(
    reporter: Reporter = SILENT,
    *,
    width: int = 128,
    heads: int = 4,
    batch: int = 1,
    longest: int = 4096,
    repeats: int = 5,
) -> Finding:
    """The table in numbers, and the time measured from 16 words to `longest`."""
    lengths = [16]
    while lengths[-1] * 2 <= longest:
        lengths.append(lengths[-1] * 2)
    times: dict[str, list[float]] = {kind.name: [] for kind in KINDS}
    with seeded(1):
        layers = layers_to_time(width, heads)
        for number, length in enumerate(lengths):
            x = torch.randn(batch, length, width)
            for name, layer in layers.items():
                times[name].append(milliseconds(layer, x, repeats))
            reporter.progress("costs", number + 1, len(lengths), f"{length} words")
    reporter.finish()
    attention, recurrent, _, within = times.values()
    crossings = {
        "recurrent": crossing(lengths, attention, recurrent),
        "restricted": crossing(lengths, attention, within),
    }
    note = f"Fastest of {repeats} readings of {batch} sequence(s), {torch.get_num_threads()} thread(s). The recurrence runs in torch's own loop."
    figures = (
        _table(64, width),
        beside(
            _chart(
                {kind.name: [kind.operations(n, width) for n in lengths] for kind in KINDS},
                lengths,
                "Operations, in multiplications",
            ),
            _chart(times, lengths, "Time, in milliseconds", note),
        ),
    )
    return Finding(
        "costs",
        "What layers cost",
        "lecture 001",
        "Self-attention joins any two words in one step and runs in parallel, where a recurrence needs a step for each word; "
        "its operations grow with the square of the length.",
        found(lengths, times, crossings, width),
        figures,
        {"lengths": lengths, "milliseconds": times, "crossings": crossings, "width": width},
    )


def found(lengths: list[int], times: dict[str, list[float]], crossings: dict[str, float | None], width: int) -> str:
    """What the numbers allow to be said."""
    attention, recurrent, _, within = times.values()
    place = min(range(len(lengths)), key=lambda i: abs(lengths[i] - 64))
    ratio = recurrent[place] / attention[place]
    compared = f"{ratio:.1f} times as fast as" if ratio > 1 else f"{1 / ratio:.1f} times as slow as"
    meeting, near = crossings["recurrent"], crossings["restricted"]
    behind = f"has not up to {lengths[-1]:,}" if meeting is None else f"does at about {meeting:,.0f}"
    faster = "at none of these lengths" if near is None else f"from about {near:,.0f} words on"
    return (
        f"At {lengths[place]} words self-attention is {compared} a recurrence. By operations it should fall behind at n = D = {width} words, by the "
        f"clock it {behind}; from {lengths[-2]:,} to {lengths[-1]:,} words its time grows {attention[-1] / attention[-2]:.1f}-fold. Kept to {REACH} words "
        f"on either side it is faster {faster} ({within[-1]:.3g} ms against {attention[-1]:.3g} at {lengths[-1]:,})."
    )


def _chart(lines: Mapping[str, Sequence[float]], lengths: list[int], title: str, note: str = "") -> str:
    series = [Series(name, list(zip(lengths, values, strict=True))) for name, values in lines.items()]
    return line_chart(series, title=title, x="words", y=title.split(", in ")[1], log_x=True, log_y=True, note=note)


def _table(length: int, width: int) -> str:
    formulas = {
        "self-attention": ("n² D", "1", "1"),
        "recurrent": ("n D²", "n", "n"),
        "convolution": ("k n D²", "1", "log_k n"),
    }
    rows = []
    for kind in KINDS:
        restricted = "within" in kind.name
        formula = ("r n D", "1", "n / r") if restricted else formulas[kind.name.split(",")[0]]
        values = kind.operations(length, width), kind.sequential(length), kind.path(length)
        rows.append([kind.name, *(f"{f} = {v:,}" if f != "1" else "1" for f, v in zip(formula, values, strict=True))])
    return table(
        ["layer", "operations", "sequential steps", "longest path"],
        rows,
        caption=f"For n = {length} words of width D = {width}",
        note=f"k = {KERNEL}; r counts the {2 * REACH + 1} words seen, of which {REACH} on either side make a step of a path. "
        "The path of convolutions is for kernels that reach k times as far in each layer.",
    )
