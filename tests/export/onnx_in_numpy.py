"""ONNX in numpy, written after the standard's text (onnx.proto and Operators.md): the oracle for graphs where onnxruntime is not installed."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

KINDS = {1: np.float32, 6: np.int32, 7: np.int64, 9: np.bool_}


def varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[place] & 127) << shift
        place, shift = place + 1, shift + 7
        if data[place - 1] < 128:
            return value - (1 << 64) if value >= 1 << 63 else value, place


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    place = 0
    while place < len(data):
        key, place = varint(data, place)
        match key & 7:
            case 0:
                value, place = varint(data, place)
                yield key >> 3, value
            case 5:
                yield key >> 3, struct.unpack("<f", data[place : place + 4])[0]
                place += 4
            case 2:
                length, place = varint(data, place)
                yield key >> 3, data[place : place + length]
                place += length
            case other:
                raise ValueError(f"wire type {other}")


def message(data: bytes) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for number, value in fields(data):
        found.setdefault(number, []).append(value)
    return found


def tensor(data: bytes) -> tuple[str, Any]:
    parts = message(data)
    array = np.frombuffer(parts[9][0], KINDS[parts[2][0]]).reshape(parts.get(1, []))
    return parts[8][0].decode(), array


def attribute(data: bytes) -> tuple[str, Any]:
    parts = message(data)
    kind = parts[20][0]
    value = {1: lambda: parts[2][0], 2: lambda: parts[3][0], 3: lambda: parts[4][0].decode(), 7: lambda: parts[8]}
    return parts[1][0].decode(), value[kind]()


def described(data: bytes) -> tuple[str, type, list[Any]]:
    """(name, type of numbers, sizes) of an input or an output."""
    parts = message(data)
    kind = message(message(parts[2][0])[1][0])
    sizes = [message(size) for size in message(kind[2][0]).get(1, [])]
    return parts[1][0].decode(), KINDS[kind[1][0]], [s[1][0] if 1 in s else s[2][0].decode() for s in sizes]


class Model:
    """A file, ready to be run."""

    def __init__(self, data: bytes) -> None:
        model = message(data)
        graph = message(model[7][0])
        self.metadata = {m[1][0].decode(): m[2][0].decode() for m in map(message, model.get(14, []))}
        self.constants = dict(map(tensor, graph.get(5, [])))
        self.inputs, self.outputs = ([described(one) for one in graph[number]] for number in (11, 12))
        self.nodes = []
        for node in map(message, graph[1]):
            names = [[name.decode() for name in node.get(number, [])] for number in (1, 2)]
            self.nodes.append((node[4][0].decode(), *names, dict(map(attribute, node.get(5, [])))))

    def run(self, **given: Any) -> dict[str, Any]:
        values = dict(self.constants)
        for name, kind, sizes in self.inputs:
            assert given[name].dtype == kind and len(sizes) == given[name].ndim, name
            values[name] = given[name]
        assert len(given) == len(self.inputs)
        for operator, inputs, outputs, attributes in self.nodes:
            made = OPERATORS[operator](*(values[name] if name else None for name in inputs), **attributes)
            values.update(zip(outputs, made if isinstance(made, tuple) else (made,), strict=False))
        found = {}
        for name, kind, sizes in self.outputs:
            found[name] = values[name]
            assert found[name].dtype == kind and found[name].ndim == len(sizes), name
            fixed = [(size, seen) for size, seen in zip(sizes, found[name].shape, strict=True) if isinstance(size, int)]
            assert all(size == seen for size, seen in fixed), (name, sizes, found[name].shape)
        return found


# ---------------------------------------------------------------- operators


def sigmoid(x: Any) -> Any:
    return (1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float32)


def softmax(x: Any, axis: int = -1) -> Any:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def reshape(x: Any, sizes: Any) -> Any:
    return x.reshape([x.shape[axis] if size == 0 else int(size) for axis, size in enumerate(sizes)])


def layer_normalization(x: Any, scale: Any, bias: Any, axis: int = -1, epsilon: float = 1e-5) -> Any:
    x = x - x.mean(-1, keepdims=True)
    return (x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(epsilon)) * scale + bias).astype(np.float32)


def split(x: Any, sizes: Any, axis: int) -> Any:
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis=axis))


def pad(x: Any, pads: Any) -> Any:
    half = len(pads) // 2
    return np.pad(x, list(zip(pads[:half], pads[half:], strict=True)))


def slice_(x: Any, starts: Any, ends: Any, axes: Any) -> Any:
    where = [slice(None)] * x.ndim
    for start, end, axis in zip(starts, ends, axes, strict=True):
        where[axis] = slice(int(start), int(end))
    return x[tuple(where)]


def gru(x: Any, w: Any, r: Any, b: Any, h: Any, hidden: int, linear_before_reset: int = 0) -> Any:
    assert linear_before_reset == 1
    wz, wr, wh = np.split(x @ w.T + b[: 3 * hidden], 3, axis=-1)
    rz, rr, rh = np.split(h[0] @ r.T + b[3 * hidden :], 3, axis=-1)
    z = sigmoid(wz + rz)
    candidate = np.tanh(wh + sigmoid(wr + rr) * rh)
    return ((1 - z) * candidate + z * h[0],)


def lstm(x: Any, w: Any, r: Any, b: Any, state: Any, hidden: int) -> Any:
    h, c = state
    i, o, f, new = np.split(x @ w.T + h @ r.T + b[: 4 * hidden] + b[4 * hidden :], 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(new)
    return sigmoid(o) * np.tanh(c), c


def rnn(x: Any, w: Any, r: Any, b: Any, state: Any, hidden: int) -> Any:
    return (np.tanh(x @ w.T + state[0] @ r.T + b[:hidden] + b[hidden:]),)


def carried(cell: Any, parts: int) -> Any:
    """One of the three recurrent operators: a cell along sequences of several lengths, in one direction or both."""

    def run(x: Any, w: Any, r: Any, b: Any, lengths: Any, hidden_size: int, direction: str, **more: Any) -> Any:
        steps, batch, _ = x.shape
        directions = 2 if direction == "bidirectional" else 1
        every = np.zeros((steps, directions, batch, hidden_size), np.float32)
        ends = [np.zeros((directions, batch, hidden_size), np.float32) for _ in range(parts)]
        for way in range(directions):
            for row in range(batch):
                state = tuple(np.zeros((1, hidden_size), np.float32) for _ in range(parts))
                order = range(lengths[row]) if way == 0 else range(lengths[row] - 1, -1, -1)
                for step in order:
                    state = cell(x[step, row : row + 1], w[way], r[way], b[way], state, hidden_size, **more)
                    every[step, way, row] = state[0][0]
                for end, part in zip(ends, state, strict=True):
                    end[way, row] = part[0]
        return every, *ends

    return run


OPERATORS: dict[str, Any] = {
    "Abs": np.abs,
    "Add": np.add,
    "Cast": lambda x, to: x.astype(KINDS[to]),
    "Clip": np.clip,
    "Concat": lambda *x, axis: np.concatenate(x, axis),
    "ConstantOfShape": lambda shape: np.zeros(shape, np.float32),
    "Equal": np.equal,
    "Erf": lambda x: np.vectorize(math.erf, otypes=[np.float32])(x),
    "GRU": carried(gru, 1),
    "Gather": lambda x, ids, axis: np.take(x, ids, axis),
    "Gemm": lambda x, w, b=0.0, transB=0: (x @ (w.T if transB else w) + b).astype(np.float32),
    "Identity": lambda x: x,
    "LSTM": carried(lstm, 2),
    "LayerNormalization": layer_normalization,
    "LogSoftmax": lambda x, axis: np.log(softmax(x.astype(np.float64), axis)).astype(np.float32),
    "MatMul": np.matmul,
    "Max": lambda *x: np.maximum.reduce(np.broadcast_arrays(*x)),
    "Mul": np.multiply,
    "Not": np.logical_not,
    "OneHot": lambda ids, depth, values, axis: values[(np.arange(depth) == ids[..., None]).astype(int)],
    "Pad": pad,
    "RNN": carried(rnn, 1),
    "Range": lambda start, end, step: np.arange(start, end, step),
    "Reciprocal": np.reciprocal,
    "ReduceMax": lambda x, axes, keepdims: x.max(tuple(axes), keepdims=bool(keepdims)),
    "ReduceMean": lambda x, axes, keepdims: x.mean(tuple(axes), keepdims=bool(keepdims)),
    "ReduceSum": lambda x, axes, keepdims: x.sum(tuple(axes), keepdims=bool(keepdims), dtype=x.dtype),
    "Relu": lambda x: np.maximum(x, 0),
    "Reshape": reshape,
    "Shape": lambda x: np.array(x.shape),
    "Sigmoid": sigmoid,
    "Slice": slice_,
    "Softmax": softmax,
    "Split": split,
    "Sqrt": np.sqrt,
    "Squeeze": lambda x, axes: x.squeeze(tuple(axes)),
    "Sub": np.subtract,
    "Tanh": np.tanh,
    "Transpose": lambda x, perm: x.transpose(perm),
    "Unsqueeze": lambda x, axes: np.expand_dims(x, tuple(axes)),
    "Where": np.where,
}
