"""Recurrent models as two ONNX graphs: one reads a source sentence, the other writes one word further.

The source is read by ONNX's own RNN, LSTM and GRU, which stop at each sentence's end; a step of the decoder is its equations. The unit with
a single gate is a GRU whose reset gate always stands open and whose update gate says what is taken in instead of what is kept.
All layers' states lie side by side in one tensor `state`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kente.config import RecurrentConfig
from kente.data.tokenizer import PAD
from kente.decode.weights import Array, Weights
from kente.export.onnx_graph import Graph, Value

PARTS = {"rnn": 1, "lstm": 2, "gru": 1, "minimal": 1}
"""Tensors in the state of a cell."""
GATES = {"rnn": 1, "lstm": 4, "gru": 3, "minimal": 2}
ORDERS = {"rnn": (0,), "lstm": (0, 3, 1, 2), "gru": (1, 0, 2)}
"""Our gates in the order that ONNX has them: input, output, forget, candidate; update, reset, candidate."""
OPEN = 100.0
"""A bias that leaves a gate fully open."""
RESIDUAL_FROM = 2
"""As nn.recurrent.RESIDUAL_FROM."""

State = tuple[Value, ...]


class Cell:
    """The weights of one cell: h_t from W x_t + b and U h_{t-1}."""

    def __init__(self, left: Weights, name: str, config: RecurrentConfig) -> None:
        self.kind, self.width = config.cell, config.width
        self.input, self.bias = left.take(f"{name}.input.weight"), left.take(f"{name}.input.bias")
        self.recurrent = left.take(f"{name}.recurrent.weight")
        self.reset_bias = left.take(f"{name}.reset_bias") if config.reset_bias else None

    # --- one step, in a decoder ---

    def step(self, x: Value, state: State) -> State:
        return self.advance(x.graph.linear(x, self.input, self.bias), state)

    def advance(self, projected: Value, state: State) -> State:
        """The equations of nn.recurrent, for a step whose W x + b is `projected`."""
        h, recurrent = state[0], state[0].graph.linear(state[0], self.recurrent)
        sizes = [self.width] * GATES[self.kind]
        match self.kind:
            case "rnn":
                return ((projected + recurrent).tanh(),)
            case "lstm":
                i, f, candidate, o = (projected + recurrent).split(sizes)
                c = f.sigmoid() * state[1] + i.sigmoid() * candidate.tanh()
                return o.sigmoid() * c.tanh(), c
            case "gru":
                (r, u, new), (old_r, old_u, old) = projected.split(sizes), recurrent.split(sizes)
                r, u = (r + old_r).sigmoid(), (u + old_u).sigmoid()
                candidate = (new + r * (old if self.reset_bias is None else old + self.reset_bias)).tanh()
                return (u * h + (1 - u) * candidate,)
            case "minimal":
                gate, candidate = (projected + recurrent).split(sizes)
                g = gate.sigmoid()
                return ((1 - g) * h + g * candidate.tanh(),)

    # --- a whole sentence, in an encoder ---

    def stacked(self) -> tuple[Array, Array, Array]:
        """W, U and both biases as ONNX's operator has them."""
        second = np.zeros_like(self.bias)  # a bias beside U, which our equations have in one place only
        if self.reset_bias is not None:
            second[2 * self.width :] = self.reset_bias
        if self.kind == "minimal":
            return self._as_gru(second)
        order = ORDERS[self.kind]

        def ordered(stack: Array) -> Array:
            gates = np.split(stack, GATES[self.kind])
            return np.concatenate([gates[gate] for gate in order])

        return ordered(self.input), ordered(self.recurrent), np.concatenate([ordered(self.bias), ordered(second)])

    def _as_gru(self, second: Array) -> tuple[Array, Array, Array]:
        """z = sigmoid(-gate) keeps what 1 - sigmoid(gate) keeps; r = 1."""

        def three(stack: Array, reset: float = 0.0) -> Array:
            gate, candidate = np.split(stack, 2)
            return np.concatenate([-gate, np.full_like(gate, reset), candidate])

        biases = np.concatenate([three(self.bias, OPEN), three(second)])
        return three(self.input), three(self.recurrent), biases


class Layer:
    """A cell carried along a sentence, or two of them that read from both ends."""

    def __init__(self, left: Weights, name: str, config: RecurrentConfig, *, both_ways: bool = False) -> None:
        directions = ("forwards", "backwards") if both_ways else ("forwards",)
        self.cells = [Cell(left, f"{name}.{direction}", config) for direction in directions]
        self.kind, self.cell_width = config.cell, config.width
        self.width = config.width * len(directions)

    def read(self, x: Value, lengths: Value) -> tuple[Value, State]:
        """(every h_t (S, B, D), the last state) of x (S, B, inputs); what lies beyond a sentence's end is zero."""
        operator = {"rnn": "RNN", "lstm": "LSTM"}.get(self.kind, "GRU")
        stacks = [np.stack(matrices) for matrices in zip(*(cell.stacked() for cell in self.cells), strict=True)]
        settings: dict[str, Any] = {
            "hidden_size": self.cell_width,
            "direction": "bidirectional" if len(self.cells) > 1 else "forward",
        }
        if operator == "GRU":
            settings["linear_before_reset"] = 1
        every, *ends = x.graph.ops(operator, [x, *stacks, lengths], 1 + PARTS[self.kind], **settings)
        outputs = every.transpose(0, 2, 1, 3).reshape(0, 0, self.width)
        return outputs, tuple(end.transpose(1, 0, 2).reshape(0, self.width) for end in ends)


class Recurrent:
    """The parts that both kinds of recurrent model have."""

    def __init__(self, config: RecurrentConfig, left: Weights, sizes: tuple[int, int]) -> None:
        self.config, self.left, self.sizes = config, left, sizes
        self.parts = PARTS[config.cell]
        self.state_width = config.decoder_layers * self.parts * config.width
        self.layers: list[Layer] = []
        for index in range(config.encoder_layers):
            both_ways = config.bidirectional == "all" or (config.bidirectional == "first" and index == 0)
            self.layers.append(Layer(left, f"encoder.layers.{index}", config, both_ways=both_ways))
        self.memory = self.layers[-1].width
        self.tables: tuple[Array, ...] = ()

    def read(self, source: Value) -> tuple[Value, Value, list[State]]:
        """(the last layer's h_t (B, S, D), the mask (B, S), each layer's last state)."""
        mask = source.op("Equal", np.int64(PAD)).op("Not")
        lengths = mask.cast("int32").op("ReduceSum", np.array([1], np.int64), keepdims=0)
        x, ends = self.words(source, 0).transpose(1, 0, 2), []
        width = self.config.embedding or self.sizes[0]
        for index, layer in enumerate(self.layers):
            leaving, end = layer.read(x, lengths)
            carried = self.config.residual and index >= RESIDUAL_FROM and layer.width == width
            x, width = (leaving + x if carried else leaving), layer.width
            ends.append(end)
        return x.transpose(1, 0, 2), mask, ends

    def words(self, ids: Value, side: int) -> Value:
        """The vectors of words; without a table, 1 in a word's own place."""
        if self.config.embedding:
            return ids.graph.op("Gather", self.tables[side], ids, axis=0)
        return ids.op("OneHot", np.int64(self.sizes[side]), np.array([0, 1], np.float32), axis=-1)

    def bridged(self, last: Value) -> Value:
        """The decoder's first states, side by side."""
        weight, bias = self.left.take("bridge.map.weight"), self.left.take("bridge.map.bias")
        return last.graph.linear(last, weight, bias).tanh()

    def states(self, state: Value) -> list[State]:
        """One tensor as each layer's state."""
        flat = state.split([self.config.width] * (self.config.decoder_layers * self.parts))
        return [tuple(flat[begin : begin + self.parts]) for begin in range(0, len(flat), self.parts)]

    def begin_step(self) -> tuple[Graph, Value, Value]:
        """(the decoder's graph, the vectors of the words read (B, E), the states)."""
        graph = Graph("decoder")
        token = graph.input("token", "int64", ("batch",))
        return graph, self.words(token, 1), graph.input("state", "float32", ("batch", self.state_width))

    def end_step(self, graph: Graph, logits: Value, ends: list[State]) -> None:
        graph.output("log_probabilities", logits.op("LogSoftmax", axis=-1), ("batch", self.sizes[1]))
        state = graph.concat(*(part for end in ends for part in end))
        graph.output("next_state", state, ("batch", self.state_width))


class FixedContext(Recurrent):
    """models.recurrent_seq2seq.FixedContextSeq2Seq"""

    def __init__(self, config: RecurrentConfig, left: Weights, sizes: tuple[int, int]) -> None:
        super().__init__(config, left, sizes)
        if config.embedding:
            source = left.take("source_embedding.weight")
            self.tables = source, source if config.tie == "all" else left.take("target_embedding.weight")
        untied = config.tie == "none"
        self.output = left.take("output.weight") if untied else self.tables[1]
        self.output_bias = left.take("output.bias") if untied else None
        self.context = self.memory if config.repeat_context else 0

    def encoder(self) -> Graph:
        graph = Graph("encoder")
        _, _, ends = self.read(graph.input("source", "int64", ("batch", "length")))
        last = ends[-1][0]
        handed_over = self.config.bidirectional == "none" and self.config.encoder_layers == self.config.decoder_layers
        state = graph.concat(*(part for end in ends for part in end)) if handed_over else self.bridged(last)
        graph.output("state", state, ("batch", self.state_width))
        if self.context:
            graph.output("context", last, ("batch", self.context))
        return graph

    def decoder(self) -> Graph:
        graph, x, state = self.begin_step()
        context = graph.input("context", "float32", ("batch", self.context)) if self.context else None
        if context is not None:
            x = graph.concat(x, context)
        ends: list[State] = []
        for index, before in enumerate(self.states(state)):
            ends.append(Cell(self.left, f"decoder.layers.{index}.forwards", self.config).step(x, before))
            x = ends[-1][0] + x if self.config.residual and index >= RESIDUAL_FROM else ends[-1][0]
        hidden = x if context is None else graph.concat(x, context)
        if self.config.tie != "none":
            weight, bias = self.left.take("readout.0.weight"), self.left.take("readout.0.bias")
            hidden = graph.linear(hidden, weight, bias).tanh()
        self.end_step(graph, graph.linear(hidden, self.output, self.output_bias), ends)
        return graph


class Attentive(Recurrent):
    """models.recurrent_seq2seq.AttentiveSeq2Seq"""

    def __init__(self, config: RecurrentConfig, left: Weights, sizes: tuple[int, int]) -> None:
        super().__init__(config, left, sizes)
        source, target, self.output = left.tables(config.tie)
        self.tables = source, target
        kind = config.attention
        self.context = config.width if kind == "projected" else self.memory
        self.key = None if kind == "dot" else left.take("attention.key.weight")
        self.key_bias = left.take("attention.key.bias") if kind == "additive" else None
        self.value = left.take("attention.value.weight") if kind == "projected" else None
        self.query = left.take("attention.query.weight") if kind in ("additive", "projected") else None
        self.energy = left.take("attention.energy.weight") if kind == "additive" else None
        self.keys_width = self.memory if self.key is None else len(self.key)

    def encoder(self) -> Graph:
        graph = Graph("encoder")
        memory, mask, ends = self.read(graph.input("source", "int64", ("batch", "length")))
        keys = memory if self.key is None else memory @ self.key.T
        if self.key_bias is not None:
            keys = keys + self.key_bias
        graph.output("state", self.bridged(ends[-1][0]), ("batch", self.state_width))
        graph.output("keys", keys, ("batch", "length", self.keys_width))
        values = memory if self.value is None else memory @ self.value.T
        graph.output("values", values, ("batch", "length", self.context))
        graph.output("mask", mask, ("batch", "length"), "bool")
        return graph

    def decoder(self) -> Graph:
        graph, y, state = self.begin_step()
        keys = graph.input("keys", "float32", ("batch", "length", self.keys_width))
        values = graph.input("values", "float32", ("batch", "length", self.context))
        first, *above = self.states(state)
        weights = self._weights(first[0], keys, graph.input("mask", "bool", ("batch", "length")))
        context = (weights.with_axis(1) @ values).without_axis(1)
        cell = Cell(self.left, "cell", self.config)
        projected = graph.linear(y, cell.input, cell.bias)
        ends = [cell.advance(projected + graph.linear(context, self.left.take("context.weight")), first)]
        x = ends[0][0]
        for index, before in enumerate(above, start=1):
            entering = graph.concat(x, context) if self.config.context_to == "all" else x
            ends.append(Cell(self.left, f"layers.{index - 1}.forwards", self.config).step(entering, before))
            x = ends[-1][0] + x if self.config.residual and index >= RESIDUAL_FROM else ends[-1][0]
        weight, bias = self.left.take("readout.weight"), self.left.take("readout.bias")
        hidden = graph.linear(graph.concat(x, context, y), weight, bias).tanh()
        self.end_step(graph, graph.linear(hidden, self.output), ends)
        graph.output("attention", weights, ("batch", "length"))
        return graph

    def _weights(self, query: Value, keys: Value, mask: Value) -> Value:
        """a_j = softmax_j(e_j), (B, S); the scores e are those of nn.scores."""
        asked = query if self.query is None else query.graph.linear(query, self.query)
        if self.energy is not None:
            scores = ((asked.with_axis(1) + keys).tanh() @ self.energy.T).without_axis(2)
        else:
            scores = (keys @ asked.with_axis(2)).without_axis(2)
        return mask.op("Where", scores, np.float32(-np.inf)).softmax()
