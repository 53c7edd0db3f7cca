"""ONNX files, written without the onnx package: a graph grows by arithmetic on its values, and is then put into protocol buffers.

    graph = Graph("double")
    x = graph.input("x", "float32", ("batch", 3))
    graph.output("y", (x + x).tanh(), ("batch", 3))
    graph.to_bytes()

The file format is onnx.proto of the ONNX standard; the numbers of its fields stand in `_FIELDS`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import kente

IR_VERSION, OPERATORS = 8, 17
"""Versions of the file format and of the set of operators: ONNX 1.12 and everything since reads them."""
Kind = Literal["float32", "int32", "int64", "bool"]
KINDS = {"float32": 1, "int32": 6, "int64": 7, "bool": 9}
Shape = Sequence[int | str]
"""Sizes, or names of sizes that are known when the graph is run."""
Operand = Any
"""A Value, or what numpy can make an array of."""
FEW = 64
"""Numbers in a constant that is compared by what it holds; a larger one is the same only if it is the same array."""


class Value:
    """A tensor of a graph, known when the graph is run."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def op(self, operator: str, *others: Operand, **attributes: Any) -> Value:
        """What an operator makes of this value and others."""
        return self.graph.op(operator, self, *others, **attributes)

    def __add__(self, other: Operand) -> Value:
        return self.op("Add", other)

    def __sub__(self, other: Operand) -> Value:
        return self.op("Sub", other)

    def __rsub__(self, other: Operand) -> Value:
        return self.graph.op("Sub", np.float32(other), self)

    def __mul__(self, other: Operand) -> Value:
        return self.op("Mul", other)

    def __matmul__(self, other: Operand) -> Value:
        return self.op("MatMul", other)

    def sigmoid(self) -> Value:
        return self.op("Sigmoid")

    def tanh(self) -> Value:
        return self.op("Tanh")

    def softmax(self) -> Value:
        """Over the last axis."""
        return self.op("Softmax", axis=-1)

    def transpose(self, *axes: int) -> Value:
        return self.op("Transpose", perm=list(axes))

    def reshape(self, *sizes: int) -> Value:
        """0 leaves a size as it is, -1 is what remains."""
        return self.op("Reshape", np.array(sizes, np.int64))

    def with_axis(self, axis: int) -> Value:
        """One more axis, of size 1."""
        return self.op("Unsqueeze", np.array([axis], np.int64))

    def without_axis(self, axis: int) -> Value:
        return self.op("Squeeze", np.array([axis], np.int64))

    def cast(self, kind: Kind) -> Value:
        return self.op("Cast", to=KINDS[kind])

    def size(self, axis: int) -> Value:
        """The size of one axis, as a tensor of one whole number."""
        return self.op("Shape").op("Gather", np.array([axis], np.int64), axis=0)

    def split(self, sizes: Sequence[int], axis: int = -1) -> list[Value]:
        if len(sizes) == 1:
            return [self]
        return self.graph.ops("Split", [self, np.array(sizes, np.int64)], len(sizes), axis=axis)


class Graph:
    """A computation, written down operator by operator."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: list[bytes] = []
        self._constants: dict[tuple[Any, ...], tuple[str, NDArray[Any]]] = {}
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []
        self.outputs: list[str] = []
        """Names of what whoever runs the graph gets."""
        self._count = 0

    def input(self, name: str, kind: Kind, shape: Shape) -> Value:
        """A tensor that whoever runs the graph must give."""
        self._inputs.append(_described(name, kind, shape))
        return Value(self, name)

    def output(self, name: str, value: Value, shape: Shape, kind: Kind = "float32") -> None:
        """A tensor that whoever runs the graph gets."""
        self._nodes.append(_node("Identity", [value.name], [name], {}))
        self._outputs.append(_described(name, kind, shape))
        self.outputs.append(name)

    def constant(self, array: Any) -> Value:
        """A tensor that is part of the file: kept once, however often it is used."""
        array = np.asarray(array)
        same = array.tobytes() if array.size <= FEW else id(array)
        name, _ = self._constants.setdefault((array.dtype.str, array.shape, same), (f"c{len(self._constants)}", array))
        return Value(self, name)

    def op(self, operator: str, *operands: Operand, **attributes: Any) -> Value:
        """The one value that an operator makes."""
        return self.ops(operator, operands, 1, **attributes)[0]

    def ops(self, operator: str, operands: Sequence[Operand], results: int, **attributes: Any) -> list[Value]:
        """The values that an operator makes. An operand that is None is left out."""
        names = ["" if operand is None else self._value(operand).name for operand in operands]
        made = [Value(self, f"v{self._count + number}") for number in range(results)]
        self._count += results
        self._nodes.append(_node(operator, names, [value.name for value in made], attributes))
        return made

    def concat(self, *operands: Operand, axis: int = -1) -> Value:
        """Side by side."""
        return self.op("Concat", *operands, axis=axis) if len(operands) > 1 else self._value(operands[0])

    def places(self, count: Value) -> Value:
        """0, 1, 2, ... as many as `count`, a tensor of one whole number, says."""
        return self.op("Range", np.int64(0), count.without_axis(0), np.int64(1))

    def linear(self, x: Value, weight: NDArray[np.float32], bias: NDArray[np.float32] | None = None) -> Value:
        """x W' + b  for x (N, inputs): W as torch keeps it."""
        operands = (x, weight) if bias is None else (x, weight, bias)
        return self.op("Gemm", *operands, transB=1)

    def _value(self, operand: Operand) -> Value:
        if isinstance(operand, Value):
            assert operand.graph is self, "a value of another graph"
            return operand
        array = np.asarray(operand)
        return self.constant(array.astype(np.float32) if array.dtype == np.float64 else array)

    def to_bytes(self, metadata: Mapping[str, str] | None = None) -> bytes:
        """The file."""
        graph = _message(
            "graph",
            node=self._nodes,
            name=self.name,
            initializer=[_tensor(name, array) for name, array in self._constants.values()],
            input=self._inputs,
            output=self._outputs,
        )
        entries = [_message("entry", key=key, value=value) for key, value in (metadata or {}).items()]
        return _message(
            "model",
            ir_version=IR_VERSION,
            producer_name="kente",
            producer_version=kente.__version__,
            graph=graph,
            opset_import=_message("operators", version=OPERATORS),
            metadata_props=entries,
        )


# ---------------------------------------------------------------- protocol buffers

_FIELDS = {
    "model": {
        "ir_version": 1,
        "producer_name": 2,
        "producer_version": 3,
        "graph": 7,
        "opset_import": 8,
        "metadata_props": 14,
    },
    "operators": {"version": 2},
    "entry": {"key": 1, "value": 2},
    "graph": {"node": 1, "name": 2, "initializer": 5, "input": 11, "output": 12},
    "node": {"input": 1, "output": 2, "op_type": 4, "attribute": 5},
    "attribute": {"name": 1, "f": 2, "i": 3, "s": 4, "ints": 8, "type": 20},
    "tensor": {"dims": 1, "data_type": 2, "name": 8, "raw_data": 9},
    "value": {"name": 1, "type": 2},
    "type": {"tensor_type": 1},
    "tensor_type": {"elem_type": 1, "shape": 2},
    "shape": {"dim": 1},
    "dimension": {"dim_value": 1, "dim_param": 2},
}
_ATTRIBUTES: dict[type, tuple[str, int]] = {float: ("f", 1), int: ("i", 2), str: ("s", 3), list: ("ints", 7)}


def _message(message: str, /, **fields: Any) -> bytes:
    """A message: each field is a number, a text, bytes, or a list of such."""
    numbers = _FIELDS[message]
    return b"".join(
        encoded_field(numbers[name], item)
        for name, value in fields.items()
        for item in (value if isinstance(value, list) else [value])
    )


def encoded_field(number: int, value: int | float | str | bytes) -> bytes:
    """One field: its number and how it is written, then the value."""
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    """Seven bits in each byte, the lowest first; negative numbers are taken as 64 bits."""
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _node(operator: str, inputs: list[str], outputs: list[str], attributes: Mapping[str, Any]) -> bytes:
    settings = []
    for name, value in attributes.items():
        field, kind = _ATTRIBUTES[type(value)]
        settings.append(_message("attribute", **{"name": name, field: value, "type": kind}))
    return _message("node", input=inputs, output=outputs, op_type=operator, attribute=settings)


def _tensor(name: str, array: NDArray[Any]) -> bytes:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return _message(
        "tensor", dims=list(array.shape), data_type=KINDS[array.dtype.name], name=name, raw_data=little.tobytes()
    )


def _described(name: str, kind: Kind, shape: Shape) -> bytes:
    dimensions = [
        _message("dimension", **{"dim_value" if isinstance(size, int) else "dim_param": size}) for size in shape
    ]
    tensor = _message("tensor_type", elem_type=KINDS[kind], shape=_message("shape", dim=dimensions))
    return _message("value", name=name, type=_message("type", tensor_type=tensor))
