"""A gated recurrence is a weighted sum of everything it has read: attention whose weights are products of gates (lecture 000).

    h_t = u_t h_{t-1} + (1 - u_t) h~_t                                        written out, is
    h_t = (prod_{j=1..t} u_j) h_0 + sum_{i=1..t} w_ti h~_i,      w_ti = (prod_{j=i+1..t} u_j) (1 - u_i)

What step i brought in, (1 - u_i), is kept by every gate after it. The slide prints other bounds, (prod_{j=i..t-i+1} u_j)
(prod_{k=1..i-1} (1 - u_k)): there step i passes its own gate and those of steps it never met. `as_printed` shows how far off that is.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kente.lectures.finding import Finding, beside
from kente.lectures.practice import seeded
from kente.lectures.recall import LETTERS, AttentiveReader, RecurrentReader, ask, learn, share_right
from kente.nn.recurrent import MinimalGateCell
from kente.reporting import SILENT, Reporter
from kente.show.charts import heatmap, table

MARK = "*"


def unrolled_weights(gates: Tensor) -> Tensor:
    """w_ti = (prod_{j=i+1..t} u_j) (1 - u_i): gates (T, D) -> weights (T, 1 + T, D); column 0 is what is left of h_0.

    Row t sums to one: what is left of h_0 is one minus the rest.
    """
    steps, width = gates.shape
    weights = gates.new_zeros(steps, 1 + steps, width)
    weights[:, 0] = gates.cumprod(dim=0)
    for i in range(steps):
        weights[i, 1 + i] = 1 - gates[i]
        weights[i + 1 :, 1 + i] = (1 - gates[i]) * gates[i + 1 :].cumprod(dim=0)
    return weights


def as_printed(gates: Tensor) -> Tensor:
    """(prod_{j=i..t-i+1} u_j) (prod_{k=1..i-1} (1 - u_k)), the slide's bounds taken by the letter; an empty product is one."""
    steps, width = gates.shape
    weights = gates.new_zeros(steps, 1 + steps, width)
    for t in range(1, steps + 1):
        for i in range(1, t + 1):
            kept = gates[i - 1 : max(i - 1, t - i + 1)].prod(dim=0)
            weights[t - 1, i] = kept * (1 - gates[: i - 1]).prod(dim=0)
    return weights


def gated_run(gates: Tensor, candidates: Tensor, first: Tensor) -> Tensor:
    """h_t = u_t h_{t-1} + (1 - u_t) h~_t, one step after the other: (T, D)."""
    states, h = [], first
    for u, candidate in zip(gates, candidates, strict=True):
        h = u * h + (1 - u) * candidate
        states.append(h)
    return torch.stack(states)


def weighted_sum(weights: Tensor, candidates: Tensor, first: Tensor) -> Tensor:
    """h_t = sum_i w_ti h~_i, h_0 standing first: (T, D)."""
    return (weights * torch.cat([first[None], candidates])).sum(dim=1)


@torch.no_grad()
def gates_and_candidates(model: RecurrentReader, ids: Tensor) -> tuple[Tensor, Tensor]:
    """u_t = 1 - g_t and h~_t of a trained minimal gated unit along one sequence (T,)."""
    cell = model.cell
    state, gates, candidates = cell.initial(1), [], []
    for x in model.words(ids):
        projected = cell.input(x[None])
        gate, candidate = (projected + cell.recurrent(state[0])).chunk(2, dim=-1)
        gates.append(1 - gate.sigmoid()[0])
        candidates.append(candidate.tanh()[0])
        state = cell.advance(projected, state)
    return torch.stack(gates), torch.stack(candidates)


def explore(reporter: Reporter = SILENT, *, length: int = 16, updates: int = 500, width: int = 32) -> Finding:
    """A gated unit and attention learn the same memory task; where each of them looks in the end."""
    with seeded(1):
        gated = RecurrentReader(MinimalGateCell(width, width), width)
        attentive = AttentiveReader(width)
    learn(gated, length, updates, reporter, "unrolled: gates")
    learn(attentive, length, updates, reporter, "unrolled: attention")
    right = {
        name: sum(share_right(model, length, place, 50) for place in range(length)) / length
        for name, model in (("gates", gated), ("attention", attentive))
    }
    question = ask(100, length, torch.Generator().manual_seed(4))
    looked = attentive.weights(question.ids).detach()
    runs = [gates_and_candidates(gated, ids) for ids in question.ids]
    products = torch.stack([unrolled_weights(gates)[-1, 1:].mean(dim=-1) for gates, _ in runs])
    rows = torch.arange(len(question.ids))
    on_mark = {
        "gates": float(products[rows, question.place].mean()),
        "attention": float(looked[rows, question.place].mean()),
    }
    error, missing, printed = (max(values) for values in zip(*(_errors(*run) for run in runs), strict=True))
    shown = int((question.place - length // 3).abs().argmin())  # a mark well before the end
    letters = _spell(question.ids[shown])
    gates, _ = runs[shown]
    last = unrolled_weights(gates)[-1, 1:]  # (T, D)
    keeper = last[:, int(last[question.place[shown]].argmax())]
    figures = (
        beside(
            heatmap(
                unrolled_weights(gates).mean(dim=-1).tolist(),
                letters,
                ["h₀", *letters],
                title="Gates, unrolled",
                note="Row t is the state after reading t letters, as a sum over what each letter brought in (mean over all values).",
            ),
            heatmap(
                [products[shown].tolist(), keeper.tolist(), looked[shown].tolist()],
                ["gates", "one value", "attention"],
                letters,
                title="The last state, and the last word's attention",
                note=f"{MARK} is the mark to be remembered. Gates: mean of all values; one value: the one of {width} that keeps most of it.",
            ),
        ),
        table(
            ["system", "right", "weight on the marked letter"],
            [[name, f"{right[name]:.0%}", f"{on_mark[name]:.2f}"] for name in right],
            caption=f"{len(rows)} sequences of {length} letters; even weights would be {1 / length:.2f}",
        ),
    )
    data = {"right": right, "on_mark": on_mark, "error": error, "row_error": missing, "printed_error": printed}
    return Finding(
        "unrolled",
        "Gates, unrolled, are attention",
        "lecture 000",
        "Unrolled, a gated recurrence is a weighted combination of all earlier candidates, and attention frees those weights.",
        found(error, missing, printed, on_mark, length),
        figures,
        data,
    )


def _errors(gates: Tensor, candidates: Tensor) -> tuple[float, float, float]:
    """Largest differences: sum and recurrence, rows and one, the printed formula and the recurrence."""
    first = torch.zeros_like(candidates[0])
    states, weights = gated_run(gates, candidates, first), unrolled_weights(gates)
    return (
        float((weighted_sum(weights, candidates, first) - states).abs().max()),
        float((weights.sum(dim=1) - 1).abs().max()),
        float((weighted_sum(as_printed(gates), candidates, first) - states).abs().max()),
    )


def found(error: float, missing: float, printed: float, on_mark: dict[str, float], length: int) -> str:
    """What the numbers allow to be said."""
    equal = "is" if error < 1e-5 else "is not"
    even = 1 / length
    both = "both put weight on it" if min(on_mark.values()) > 2 * even else "not both put weight on it"
    return (
        f"The recurrence {equal} the weighted sum: they differ by {error:.0e} at most, and rows sum to one within {missing:.0e} "
        f"(with the bounds printed on the slide they differ by {printed:.2f}). Trained to remember a marked letter, {both}: "
        f"{on_mark['gates']:.2f} by gates, {on_mark['attention']:.2f} by attention, where even weights would be {even:.2f}."
    )


def _spell(ids: Tensor) -> list[str]:
    return [chr(ord("a") + i % LETTERS) + MARK * (i >= LETTERS) for i in ids.tolist()]
