"""What is left of an error after a walk back through time (lecture 000; lecture 001: RNNs forget).

For h_t = tanh(W x_t + U h_{t-1} + b) the way back is a product with one factor for each step,

    dJ/dh_t = U' diag(tanh'(a_{t+1})) ... U' diag(tanh'(a_T)) dJ/dh_T        tanh'(a_t) = 1 - h_t^2

and a product of many factors below one vanishes. A gate puts a sum beside the product; attention makes the walk one step long.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kente.lectures.finding import Finding, beside
from kente.lectures.practice import seeded
from kente.lectures.recall import LETTERS, AttentiveReader, Question, RecurrentReader, ask, learn, share_right
from kente.nn.recurrent import GRUCell, LSTMCell, RNNCell
from kente.reporting import SILENT, Reporter
from kente.show.charts import Series, line_chart, table

WIDTH = 32
CHANCE = 1 / LETTERS


def product_of_jacobians(recurrent: Tensor, states: Tensor) -> Tensor:
    """dh_T/dh_t = prod_{k=t+1..T} diag(1 - h_k^2) U  for every t of one sequence: states (T, D) -> (T, D, D), the last one I."""
    factors = (1 - states**2)[:, :, None] * recurrent  # factor k is dh_k/dh_{k-1}
    product = torch.eye(states.shape[1], dtype=states.dtype)
    products = [product]
    for factor in factors[1:].flip(0):
        product = product @ factor
        products.append(product)
    return torch.stack(products[::-1])


def cost_of(logits: Tensor, question: Question) -> Tensor:
    """J: the logit of the right letter. Unlike a loss its slope does not fade once the answer is known."""
    return logits.gather(1, question.answer[:, None]).sum()


def recurrent_gradients(model: RecurrentReader, question: Question) -> Tensor:
    """|dJ/d state_t| for t = 1 .. T, averaged over the batch. The state of an LSTM is h and c together."""
    x = model.words(question.ids)
    state, states = model.cell.initial(len(x)), []
    for t in range(x.shape[1]):
        # copies: an LSTM's h is made of its c, and the road through h is not to be counted for both
        state = tuple(part.clone() for part in model.cell(x[:, t], state))
        states.append(state)
    cost = cost_of(model.output(state[0]), question)
    parts = len(state)
    gradients = torch.autograd.grad(cost, [part for state in states for part in state], materialize_grads=True)
    steps = [torch.cat(gradients[i : i + parts], dim=-1) for i in range(0, len(gradients), parts)]
    return torch.stack(steps).norm(dim=-1).mean(dim=1)


def attentive_gradients(model: AttentiveReader, question: Question) -> Tensor:
    """|dJ/dx_t| for t = 1 .. T, averaged over the batch: x_t is all that attention keeps of step t."""
    vectors = model.vectors(question.ids).detach().requires_grad_()
    cost = cost_of(model.answer(vectors), question)
    return torch.autograd.grad(cost, vectors)[0].norm(dim=-1).mean(dim=0)


Reader = RecurrentReader | AttentiveReader


def readers(width: int) -> dict[str, Reader]:
    """The systems to be compared, by name."""
    return {
        "RNN": RecurrentReader(RNNCell(width, width), width),
        "LSTM": RecurrentReader(LSTMCell(width, width), width),
        "GRU": RecurrentReader(GRUCell(width, width), width),
        "attention": AttentiveReader(width),
    }


def fading(model: Reader, length: int) -> list[float]:
    """Gradient norm at distance 1, 2, ... from the end, in units of that at distance 1; the mark stands anywhere."""
    question = ask(256, length, torch.Generator().manual_seed(3))
    measured = attentive_gradients if isinstance(model, AttentiveReader) else recurrent_gradients
    norms = measured(model, question).flip(0)[1:]  # type: ignore[arg-type]
    return [float(norm) for norm in norms / norms[0]]


def explore(reporter: Reporter = SILENT, *, length: int = 40, updates: int = 600, width: int = WIDTH) -> Finding:
    """Gradients over distance, before and after learning to recall; and what was learned of far letters."""
    before: dict[str, list[float]] = {}
    after: dict[str, list[float]] = {}
    right: dict[str, dict[int, float]] = {}
    distances = sorted({1, *range(0, length, max(1, length // 8))} - {0} | {length - 1})
    with seeded(1):
        for name, model in readers(width).items():
            before[name] = fading(model, length)
            learn(model, length, updates, reporter, f"gradients: {name}")
            after[name] = fading(model, length)
            right[name] = {d: share_right(model, length, length - 1 - d) for d in distances}
    far = length - 1
    note = "In units of the gradient one step before the end."
    figures = (
        beside(
            _chart(before, "Gradient over distance, before learning", note),
            _chart(after, f"Gradient over distance, after {updates:,} updates", note),
        ),
        beside(
            line_chart(
                [Series(name, list(shares.items())) for name, shares in right.items()],
                title="Marked letters recalled",
                x="steps between the mark and the question",
                y="share right",
                note=f"Guessing is right {CHANCE:.1%} of the time.",
            ),
            table(
                ["system", "gradient before", "gradient after", "letters recalled"],
                [[n, f"{before[n][-1]:.1e}", f"{after[n][-1]:.1e}", f"{right[n][far]:.0%}"] for n in before],
                caption=f"{far} steps back",
            ),
        ),
    )
    data = {"length": length, "updates": updates, "before": before, "after": after, "right": right}
    return Finding(
        "gradients",
        "Gradients through time",
        "lecture 000",
        "Going back through a plain recurrence the gradient is multiplied by U' diag(tanh') at every step, so that it vanishes; "
        "gates add a short-cut, and attention needs one step only.",
        found(before, after, {name: shares[far] for name, shares in right.items()}, far),
        figures,
        data,
    )


def found(before: dict[str, list[float]], after: dict[str, list[float]], right: dict[str, float], far: int) -> str:
    """What the numbers allow to be said."""
    left = ", ".join(f"{name} {values[-1]:.0e}" for name, values in before.items())
    recalled = ", ".join(f"{name} {share:.0%}" for name, share in right.items())
    if right["RNN"] < min(right["LSTM"], right["GRU"], right["attention"]) - 0.1:
        text = "The plain recurrence forgets what gates and attention keep"
    else:
        text = "The plain recurrence does no worse than the others here"
    text += f": {far} steps back, this share of a gradient is left ({left}), and after learning a letter there is recalled ({recalled}; guessing {CHANCE:.0%})"
    if before["GRU"][-1] < 0.01 and after["GRU"][-1] > 10 * before["GRU"][-1]:
        text += f". A gate is no short-cut until it has learned to be one: once trained, the GRU keeps {after['GRU'][-1]:.0e}"
    return text + "."


def _chart(norms: dict[str, list[float]], title: str, note: str) -> str:
    series = [Series(name, list(enumerate(values, start=1))) for name, values in norms.items()]
    return line_chart(series, title=title, x="steps back", y="gradient norm, relative", log_y=True, note=note)
