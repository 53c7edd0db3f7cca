"""How a network without recurrence knows where a word stands. Attention alone cannot tell ABC from BCA (lecture 000).

Sinusoid (in three forms) and Learned add a code to the words. Rotary, Relative, RelativeSinusoid and Alibi act inside self-attention and
know distances only.
Words stand at 0, 1, 2, ... unless `positions` are given, in any shape that fits the words.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from kente.nn.attention import FEW, Mask, as_mask, attend, dot_scores, hide
from kente.nn.linear import Linear


def sinusoid(length: int, width: int, start: int = 0) -> Float[Tensor, "T D"]:
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)),  PE(pos, 2i+1) = cos(pos / 10000^(2i/D))      (lecture 001)

    Computed in double precision and rounded once, so that a position's code does not depend on the table's length.
    """
    positions = torch.arange(start, start + length, dtype=torch.float64)[:, None]
    angles = positions / 10_000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)  # (T, D/2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).float()


def sinusoid_halves(length: int, width: int) -> Float[Tensor, "T D"]:
    """The same numbers in another order: all sines, then all cosines (Marian)."""
    code = sinusoid(length, width)
    return torch.cat([code[:, 0::2], code[:, 1::2]], dim=1)


def sinusoid_fairseq(length: int, width: int) -> Float[Tensor, "T D"]:
    """PE(pos) = sin((pos + 2) w_i), then cos((pos + 2) w_i),  with  w_i = 10000^(-i / (D/2 - 1))      (tensor2tensor, fairseq, M2M100)

    The slowest wave is 10000 radians long, where the paper's stays below it; places 0 and 1 belong to marks of fairseq's.
    """
    half = width // 2
    rates = 10_000 ** (-torch.arange(half, dtype=torch.float64) / max(1, half - 1))
    angles = torch.arange(2, 2 + length, dtype=torch.float64)[:, None] * rates  # (T, D/2)
    return torch.cat([angles.sin(), angles.cos()], dim=1).float()


class Sinusoid(nn.Module):
    """Adds a sinusoid code; knows every length, trained on or not."""

    table: Tensor

    def __init__(self, width: int, code: Callable[[int, int], Tensor] = sinusoid):
        super().__init__()
        self.width, self.code = width, code
        self.register_buffer("table", code(256, width), persistent=False)

    def forward(self, x: Float[Tensor, "B T D"], positions: Int[Tensor, "..."] | None = None) -> Float[Tensor, "B T D"]:
        end = x.shape[1] if positions is None else int(positions.max()) + 1
        if end > len(self.table):
            with torch.inference_mode(False):  # grown while translating, it must still serve training
                self.table = self.code(2 * end, self.width).to(self.table.device)
        return x + (self.table[:end] if positions is None else self.table[positions]).to(x.dtype)


class Learned(nn.Module):
    """Adds a trained vector for each position. It cannot extrapolate: positions beyond `limit` share the last vector."""

    def __init__(self, limit: int, width: int):
        super().__init__()
        self.vectors = nn.Embedding(limit, width)
        nn.init.normal_(self.vectors.weight, std=0.02)

    def forward(self, x: Float[Tensor, "B T D"], positions: Int[Tensor, "..."] | None = None) -> Float[Tensor, "B T D"]:
        if positions is None:
            positions = torch.arange(x.shape[1], device=x.device)
        return x + self.vectors(positions.clamp(max=self.vectors.num_embeddings - 1))


class Unplaced(nn.Module):
    """Adds nothing: for positions that act inside attention, and to show what happens without any."""

    def forward(self, x: Float[Tensor, "B T D"], positions: Int[Tensor, "..."] | None = None) -> Float[Tensor, "B T D"]:
        return x


class Rotary(nn.Module):
    """Turns pairs of values of queries and keys by an angle that grows with position, so that q_m . k_n depends on m - n only."""

    cosine: Tensor
    sine: Tensor

    def __init__(self, head_width: int):
        super().__init__()
        self.head_width = head_width
        self._fill(256)

    def _fill(self, length: int, device: torch.device | None = None) -> None:
        code = sinusoid(length, self.head_width).to(device)  # sin at even, cos at odd columns: the same angles
        self.register_buffer("sine", code[:, 0::2].contiguous(), persistent=False)
        self.register_buffer("cosine", code[:, 1::2].contiguous(), persistent=False)

    def forward(
        self, x: Float[Tensor, "B H T K"], positions: Int[Tensor, "..."] | None = None
    ) -> Float[Tensor, "B H T K"]:
        end = x.shape[2] if positions is None else int(positions.max()) + 1
        if end > len(self.sine):
            with torch.inference_mode(False):  # grown while translating, it must still serve training
                self._fill(2 * end, self.sine.device)
        where = slice(end) if positions is None else positions
        sine, cosine = self.sine[where].to(x.dtype), self.cosine[where].to(x.dtype)
        pairs = x.unflatten(-1, (-1, 2))
        if x.dtype == torch.float32 and x.device.type in ("cpu", "cuda"):  # as complex numbers: one pass, not six
            turned = torch.view_as_complex(pairs.contiguous()) * torch.complex(cosine, sine)
            return torch.view_as_real(turned).flatten(-2)
        even, odd = pairs.unbind(-1)
        return torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1).flatten(-2)


def distances(queries: Float[Tensor, "B H T K"], keys: Float[Tensor, "B H S K"]) -> Int[Tensor, "T S"]:
    """j - i from each query i to each key j; queries are the last positions of the sequence the keys are from."""
    places = torch.arange(keys.shape[2], device=keys.device)
    return places - places[-queries.shape[2] :, None]


class Relative(nn.Module):
    """Learned vectors for distances up to `reach` and for all beyond, shared by heads (Shaw et al., 2018, equations 3 and 4).

    score_ij = q_i . (k_j + a^K_d) / sqrt(K),   c_i = sum_j w_ij (v_j + a^V_d)   with   d = clip(j - i, -reach, reach)

    q_i meets the 2 reach + 1 vectors once and scores are picked by distance; weights are summed by distance before they meet
    the vectors again. So there is no vector for each pair of positions, and no fused kernel either: weights always exist.
    """

    def __init__(self, reach: int, head_width: int):
        super().__init__()
        self.reach = reach
        self.keys, self.values = nn.Embedding(2 * reach + 1, head_width), nn.Embedding(2 * reach + 1, head_width)
        nn.init.xavier_uniform_(self.keys.weight)
        nn.init.xavier_uniform_(self.values.weight)

    def forward(
        self,
        queries: Float[Tensor, "B H T K"],
        keys: Float[Tensor, "B H S K"],
        values: Float[Tensor, "B H S K"],
        mask: Mask,
        *,
        causal: bool = False,
        dropout: float = 0.0,
        visible: bool = False,
        apart: Int[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "B H T K"], Float[Tensor, "B H T S"] | None]:
        """Attention in every head at once; with visible weights none is dropped out."""
        apart = distances(queries, keys) if apart is None else apart[:, None]
        clipped = apart.clamp(-self.reach, self.reach) + self.reach
        row = clipped.expand(*queries.shape[:3], -1)  # (B, H, T, S): which of the vectors
        by_distance = queries @ self.keys.weight.T / math.sqrt(queries.shape[-1])  # (B, H, T, 2 reach + 1)
        scores = dot_scores(queries, keys) + by_distance.gather(-1, row)
        mask = as_mask(mask, causal, queries, keys)
        context, weights = attend(scores, values, mask, 0.0 if visible else dropout)
        summed = torch.zeros_like(by_distance).scatter_add(-1, row, weights)
        return context + summed @ self.values.weight, weights if visible else None


class RelativeSinusoid(nn.Module):
    """score_ij = ((q_i + u) . k_j + (q_i + v) . W r_{i-j}) / sqrt(K),  r_d the sinusoid of distance d (Dai et al., 2019, section 3.3).

    u and v are what a head looks for in any word and at any distance, whatever the query. Every distance has a code, trained on or not.
    q_i meets the codes of all distances once and scores are picked by distance; there is no fused kernel: weights always exist.
    """

    table: Tensor

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.width, self.heads = width, heads
        self.distance = Linear(width, width, bias=False)
        self.any_word = nn.Parameter(torch.zeros(heads, 1, width // heads))
        self.any_distance = nn.Parameter(torch.zeros(heads, 1, width // heads))
        nn.init.xavier_uniform_(self.distance.weight)
        self._fill(256)

    def _fill(self, farthest: int, device: torch.device | None = None) -> None:
        codes = sinusoid(2 * farthest + 1, self.width, -farthest).flip(0).contiguous()  # from far behind to far ahead
        self.register_buffer("table", codes.to(device), persistent=False)

    def _by_distance(self, queries: Float[Tensor, "B H T K"], high: int, low: int) -> Float[Tensor, "B H T N"]:
        """q . W r_d for the distances d = high, high - 1, ..., low."""
        farthest = max(high, -low)
        if 2 * farthest >= len(self.table):
            with torch.inference_mode(False):  # grown while writing, it must still serve training
                self._fill(2 * farthest, self.table.device)
        zero = len(self.table) // 2
        codes = self.table[zero - high : zero - low + 1].to(queries.dtype)
        if queries.shape[2] <= FEW:  # cheaper to bring the queries to the codes
            return queries @ self.distance.weight.view(self.heads, -1, self.width) @ codes.T
        return queries @ self.distance(codes).view(len(codes), self.heads, -1).permute(1, 2, 0)

    def forward(
        self,
        queries: Float[Tensor, "B H T K"],
        keys: Float[Tensor, "B H S K"],
        values: Float[Tensor, "B H S K"],
        mask: Mask,
        *,
        causal: bool = False,
        dropout: float = 0.0,
        visible: bool = False,
        apart: Int[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "B H T K"], Float[Tensor, "B H T S"] | None]:
        """Attention in every head at once; with visible weights none is dropped out."""
        asking, (length, others) = queries + self.any_distance, (queries.shape[2], keys.shape[2])
        if apart is None:
            # row t wants column length - 1 - t + j for key j: read with one step less to a row, the rows move along by themselves
            every = self._by_distance(asking, others - 1, -length).flatten(-2)
            placed = every[..., length - 1 : -1].unflatten(-1, (length, -1))[..., :others]
        else:
            high, low = -int(apart.min()), -int(apart.max())
            wanted = (high + apart)[:, None].expand(*queries.shape[:3], -1)
            placed = self._by_distance(asking, high, low).gather(-1, wanted)
        scores = dot_scores(queries + self.any_word, keys) + placed / math.sqrt(queries.shape[-1])
        mask = as_mask(mask, causal, queries, keys)
        context, weights = attend(scores, values, mask, 0.0 if visible else dropout)
        return context, weights if visible else None


def alibi_slopes(heads: int) -> Float[Tensor, "{heads}"]:
    """m_h = 2^(-8 h / H), h = 1 .. H, when H is a power of two (Press et al., 2022).

    Other counts take the slopes of the power of two below and, for the heads left over, every other one of the power above:
    those lie halfway between, as in the authors' own models.
    """
    below = 2 ** (heads.bit_length() - 1)
    first = [2 ** (-8 * h / below) for h in range(1, below + 1)]
    between = [2 ** (-4 * h / below) for h in range(1, 2 * below, 2)]
    return torch.tensor((first + between)[:heads])


class Alibi(nn.Module):
    """score_ij = q_i . k_j / sqrt(K) - m_h |i - j|: what is far counts less, in each head by a slope of its own (Press et al., 2022).

    Symmetric, so that an encoder, which looks both ways, can have it too. Nothing is learned: the fused kernel takes it as a mask of numbers.
    """

    slopes: Tensor

    def __init__(self, heads: int):
        super().__init__()
        self.register_buffer("slopes", alibi_slopes(heads), persistent=False)

    def forward(
        self,
        queries: Float[Tensor, "B H T K"],
        keys: Float[Tensor, "B H S K"],
        values: Float[Tensor, "B H S K"],
        mask: Mask,
        *,
        causal: bool = False,
        dropout: float = 0.0,
        visible: bool = False,
        apart: Int[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "B H T K"], Float[Tensor, "B H T S"] | None]:
        """Attention in every head at once. The fused path returns no weights; the visible one cannot drop any out."""
        apart = distances(queries, keys)[None] if apart is None else apart
        far = -self.slopes.to(queries.dtype)[:, None, None] * apart.abs()[:, None]  # (1 or B, H, T, S)
        mask = as_mask(mask, causal, queries, keys)
        if visible or (dropout and queries.is_cpu):  # torch's fused kernel has no dropout on a CPU
            context, weights = attend(dot_scores(queries, keys) + far, values, mask, 0.0 if visible else dropout)
            return context, weights if visible else None
        return F.scaled_dot_product_attention(queries, keys, values, hide(far, mask), dropout), None
