"""Transformers as two ONNX graphs: one reads a source sentence, the other writes one word further.

What a step remembers lies in two tensors, the keys and the values of all layers (B, layers, H, t, K), which grow by one place at each step.
Vectors between layers are (B, T, D) in both graphs; in a step, T is 1.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from kente.config import TransformerConfig
from kente.data.tokenizer import PAD
from kente.decode.conversion import EPSILONS, SINUSOIDS, alibi_slopes, sinusoid
from kente.decode.weights import Array, Weights
from kente.export.onnx_graph import Graph, Value

Memory = tuple[Value, Value]
"""Keys and values (B, H, T, K)."""


class Transformer:
    """models.transformer.Transformer"""

    def __init__(self, config: TransformerConfig, left: Weights, sizes: tuple[int, int]) -> None:
        self.config, self.left, self.sizes = config, left, sizes
        self.tables = left.tables(config.tie)
        self.head_width = config.width // config.heads

    # --- the two graphs ---

    def encoder(self) -> Graph:
        graph = Graph("encoder")
        source = graph.input("source", "int64", ("batch", "length"))
        mask = source.op("Equal", np.int64(PAD)).op("Not")
        places = graph.places(source.size(1))
        x, hidden = self._words(source, 0, places), _hidden(mask)
        for number in range(self.config.encoder_layers):
            name = f"encoder.layers.{number}"
            y = self._enter(x, f"{name}.attention_residual")
            y, _ = self._self_attention(y, name, places, places, hidden)
            x = self._leave(x, y, f"{name}.attention_residual")
            x = self._feedforward(x, name)
        self._output_memory(graph, self._last_norm(x, "encoder"))
        graph.output("mask", mask, ("batch", "length"), "bool")
        empty = np.array([self.config.decoder_layers, self.config.heads, 0, self.head_width], np.int64)
        nothing = graph.concat(source.size(0), empty, axis=0).op("ConstantOfShape")
        for name in ("past_keys", "past_values"):
            graph.output(name, nothing, self._shape("written"))
        return graph

    def decoder(self) -> Graph:
        graph = Graph("decoder")
        token = graph.input("token", "int64", ("batch",))
        hidden = _hidden(graph.input("mask", "bool", ("batch", "length")))
        memory, past = self._input_memory(graph, "memory", "length"), self._input_memory(graph, "past", "written")
        place = past[0][0].size(2)  # as many as are written
        places = graph.places(place + np.array([1], np.int64))
        x, longer = self._words(token.with_axis(1), 1, place), list[Memory]()
        for number in range(self.config.decoder_layers):
            name = f"decoder.layers.{number}"
            y = self._enter(x, f"{name}.attention_residual")
            y, written = self._self_attention(y, name, place, places, past=past[number])
            x = self._leave(x, y, f"{name}.attention_residual")
            y = self._enter(x, f"{name}.cross_residual")
            queries = self._heads(self._projected(y, f"{name}.cross.query"))
            y = self._attend(self._scores(queries, memory[number][0]) + hidden, memory[number][1], f"{name}.cross")
            x = self._leave(x, y, f"{name}.cross_residual")
            x = self._feedforward(x, name)
            longer.append(written)
        bias = self.left.output_bias(self.config.tie) if self.config.output_bias else None
        logits = graph.linear(self._last_norm(x, "decoder").without_axis(1), self.tables[2], bias)
        graph.output("log_probabilities", logits.op("LogSoftmax", axis=-1), ("batch", self.sizes[1]))
        for part, name in enumerate(("next_past_keys", "next_past_values")):
            layers = graph.concat(*(layer[part].with_axis(1) for layer in longer), axis=1)
            graph.output(name, layers, self._shape("written and one"))
        return graph

    # --- what is handed from one graph to the other ---

    def _shape(self, places: str) -> tuple[int | str, ...]:
        return "batch", self.config.decoder_layers, self.config.heads, places, self.head_width

    def _output_memory(self, graph: Graph, memory: Value) -> None:
        """The source's keys and values for every layer of the decoder."""
        names = (f"decoder.layers.{number}.cross.key_value" for number in range(self.config.decoder_layers))
        both = [self._projected(memory, name).split([self.config.width] * 2) for name in names]
        for part, name in enumerate(("memory_keys", "memory_values")):
            layers = graph.concat(*(self._heads(layer[part]).with_axis(1) for layer in both), axis=1)
            graph.output(name, layers, self._shape("length"))

    def _input_memory(self, graph: Graph, name: str, places: str) -> list[Memory]:
        """Two inputs that hold the keys and the values of all layers, cut into those of each layer."""
        keys, values = (
            graph.input(f"{name}_{part}", "float32", self._shape(places)).split(
                [1] * self.config.decoder_layers, axis=1
            )
            for part in ("keys", "values")
        )
        return [(key.without_axis(1), value.without_axis(1)) for key, value in zip(keys, values, strict=True)]

    # --- layers ---

    def _words(self, ids: Value, side: int, places: Value) -> Value:
        """E[words] sqrt(D) + P  with  P the codes of their places."""
        graph, config = ids.graph, self.config
        x = graph.op("Gather", self.tables[side], ids, axis=0)
        if config.scaled:
            x = x * np.float32(math.sqrt(config.width))
        match config.positions:
            case "sinusoid" | "sinusoid-halves" | "sinusoid-fairseq":
                codes = SINUSOIDS[config.positions](config.max_length, config.width)
                return x + graph.op("Gather", codes, places, axis=0)
            case "learned":
                table = self.left.take(f"{('source', 'target')[side]}_positions.vectors.weight")
                return x + graph.op("Gather", table, places, axis=0)
            case _:
                return x

    def _enter(self, x: Value, name: str) -> Value:
        """What a sub-layer is given: x, or its norm."""
        return self._norm(x, f"{name}.norm") if self.config.norm_place == "pre" else x

    def _leave(self, x: Value, y: Value, name: str) -> Value:
        """x with what the sub-layer made of it: the sum, or its norm."""
        return x + y if self.config.norm_place == "pre" else self._norm(x + y, f"{name}.norm")

    def _last_norm(self, x: Value, side: str) -> Value:
        return self._norm(x, f"{side}.norm") if self.config.norm_place == "pre" else x

    def _norm(self, x: Value, name: str) -> Value:
        weight, epsilon = self.left.take(f"{name}.weight"), self.config.norm_epsilon or EPSILONS[self.config.norm]
        if self.config.norm == "layer":
            return x.op("LayerNormalization", weight, self.left.take(f"{name}.bias"), axis=-1, epsilon=epsilon)
        mean_square = (x * x).op("ReduceMean", axes=[-1], keepdims=1)
        return x * (mean_square + np.float32(epsilon)).op("Sqrt").op("Reciprocal") * weight

    def _feedforward(self, x: Value, name: str) -> Value:
        """The last sub-layer, and what it leaves of x."""
        config, part, residual = self.config, f"{name}.feedforward", f"{name}.feedforward_residual"
        inner, outer = (self.left.take(f"{part}.{place}.weight").T for place in ("inner", "outer"))
        hidden = self._enter(x, residual) @ inner
        if config.activation == "swiglu":
            gate, let_through = hidden.split([config.feedforward] * 2)
            return self._leave(x, (gate * gate.sigmoid() * let_through) @ outer, residual)
        hidden = _activated(hidden + self.left.take(f"{part}.inner.bias"), config.activation)
        return self._leave(x, hidden @ outer + self.left.take(f"{part}.outer.bias"), residual)

    # --- attention ---

    def _self_attention(
        self,
        x: Value,
        name: str,
        places: Value,
        key_places: Value,
        hidden: Value | None = None,
        past: Memory | None = None,
    ) -> tuple[Value, Memory]:
        """(what attention makes of x at `places`, all keys and values): those of x follow the past's."""
        graph, part = x.graph, f"{name}.attention"
        stacked = self._projected(x, f"{part}.query_key_value")
        queries, keys, values = (self._heads(one) for one in stacked.split([self.config.width] * 3))
        if self.config.positions == "rotary":
            queries, keys = self._turned(queries, places), self._turned(keys, places)
        if past is not None:
            keys, values = graph.concat(past[0], keys, axis=2), graph.concat(past[1], values, axis=2)
        scores, extra = self._scores(queries, keys), None
        if self.config.positions in ("alibi", "relative"):
            apart = key_places.with_axis(0) - places.with_axis(1)  # (T, S)
            far, extra = self._by_distance(queries, apart, part)
            scores = scores + far
        return self._attend(scores if hidden is None else scores + hidden, values, part, extra), (keys, values)

    def _by_distance(self, queries: Value, apart: Value, name: str) -> tuple[Value, Value | None]:
        """(what distance adds to scores, what it adds to values (T, S, K) if anything)."""
        graph = queries.graph
        if self.config.positions == "alibi":
            slopes = -alibi_slopes(self.config.heads).astype(np.float32)[:, None, None]
            return apart.op("Abs").cast("float32") * slopes, None
        reach = np.int64(self.config.relative_distance)
        near = apart.op("Clip", -reach, reach) + reach
        keys, values = (
            graph.op("Gather", self.left.take(f"{name}.meet.{part}.weight"), near, axis=0)
            for part in ("keys", "values")
        )
        scores = (queries * self._scale).with_axis(3) @ keys.transpose(0, 2, 1)  # (B, H, T, 1, S)
        return scores.without_axis(3), values

    @property
    def _scale(self) -> np.float32:
        return np.float32(self.head_width**-0.5)

    def _scores(self, queries: Value, keys: Value) -> Value:
        """q . k / sqrt(K), (B, H, T, S)"""
        return (queries * self._scale) @ keys.transpose(0, 1, 3, 2)

    def _attend(self, scores: Value, values: Value, name: str, extra: Value | None = None) -> Value:
        """W softmax(scores) v; `extra` (T, S, K) is what distance adds to the values."""
        weights = scores.softmax()
        context = weights @ values
        if extra is not None:
            context = context + (weights.with_axis(3) @ extra).without_axis(3)
        joined = context.transpose(0, 2, 1, 3).reshape(0, 0, self.config.width)
        return self._projected(joined, f"{name}.output")

    def _projected(self, x: Value, name: str) -> Value:
        """x W' (+ b)"""
        projected = x @ self.left.take(f"{name}.weight").T
        return projected + self.left.take(f"{name}.bias") if self.config.biases else projected

    def _turned(self, x: Value, places: Value) -> Value:
        """Pairs of values, turned by angles that grow with place (nn.positions.Rotary)."""
        graph = x.graph
        sine, cosine = (graph.op("Gather", table, places, axis=0) for table in self._angles)  # (T, K / 2)
        pairs = x.reshape(0, 0, 0, self.head_width // 2, 2).split([1, 1])
        even, odd = (part.without_axis(4) for part in pairs)
        turned = (even * cosine - odd * sine).with_axis(4), (even * sine + odd * cosine).with_axis(4)
        return graph.concat(*turned).reshape(0, 0, 0, self.head_width)

    @cached_property
    def _angles(self) -> tuple[Array, Array]:
        """Sines and cosines of all angles: kept once for all layers."""
        code = sinusoid(self.config.max_length, self.head_width)
        return code[:, 0::2], code[:, 1::2]

    def _heads(self, x: Value) -> Value:
        """(B, T, D) to (B, H, T, K)."""
        return x.reshape(0, 0, self.config.heads, self.head_width).transpose(0, 2, 1, 3)


def _hidden(mask: Value) -> Value:
    """0 where one may look, -inf where not: to be added to scores (B, H, T, S)."""
    return mask.with_axis(1).with_axis(1).op("Where", np.float32(0), np.float32(-np.inf))


def _activated(x: Value, activation: str) -> Value:
    """What the feed-forward layers do to each number; a gate is their own affair."""
    match activation:
        case "relu":
            return x.op("Relu")
        case "silu":
            return x * x.sigmoid()
        case "gelu-tanh":
            cubic = (x + x * x * x * np.float32(0.044715)) * np.float32(math.sqrt(2 / math.pi))
            return x * (cubic.op("Tanh") + np.float32(1)) * np.float32(0.5)
        case _:  # gelu: x P(X <= x) for a normal X
            return x * ((x * np.float32(math.sqrt(0.5))).op("Erf") + np.float32(1)) * np.float32(0.5)
