"""Kente's trained weights under plain names, for peers that can carry them: arrays in one .npz file.

embedding (V, D), positions (N, D), encoder.0.self.query_key_value (3D, D), decoder.0.cross.key_value (2D, D), ...
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.peers.plain_models import MOST_POSITIONS
from kente.config import TransformerConfig
from kente.errors import UsageError
from kente.nn.positions import sinusoid
from kente.runs import Run

SUBLAYERS = {"self": "attention", "cross": "cross", "feedforward": "feedforward"}
"""Our word for a sub-layer, and the module's; its norm stands in `<module>_residual`."""


def export(run: Path, file: Path) -> None:
    """Write the weights a run translates with. Only what all peers can carry: pre-norm, LayerNorm, ReLU, sinusoids, one table of words."""
    model = Run.open(run).model()
    config = Run.open(run).config.model
    carried = isinstance(config, TransformerConfig) and (
        (config.norm_place, config.norm, config.activation, config.positions, config.tie, config.experts)
        == ("pre", "layer", "relu", "sinusoid", "all", 0)
    )
    if not carried:
        raise UsageError(f"{run} is not the pre-norm Transformer with sinusoids that the other engines can carry")
    state = {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}
    arrays = {
        "embedding": state["source_embedding.weight"],
        "positions": sinusoid(MOST_POSITIONS, config.width).numpy(),
    }
    for side, sublayers in (("encoder", ("self", "feedforward")), ("decoder", tuple(SUBLAYERS))):
        for kind in ("weight", "bias"):
            arrays[f"{side}.norm.{kind}"] = state[f"{side}.norm.{kind}"]
        for layer in range(getattr(config, f"{side}_layers")):
            for sublayer in sublayers:
                arrays |= _sublayer(state, side, layer, sublayer)
    np.savez(file, allow_pickle=False, **arrays)


def _sublayer(state: dict[str, np.ndarray], side: str, layer: int, sublayer: str) -> dict[str, np.ndarray]:
    ours, theirs = f"{side}.{layer}.{sublayer}", f"{side}.layers.{layer}.{SUBLAYERS[sublayer]}"
    matrices = {
        "self": ("query_key_value", "output"),
        "cross": ("query", "key_value", "output"),
        "feedforward": ("inner", "outer"),
    }[sublayer]
    arrays = {f"{ours}.norm.{kind}": state[f"{theirs}_residual.norm.{kind}"] for kind in ("weight", "bias")}
    for matrix in matrices:
        if sublayer == "feedforward":
            arrays |= {f"{ours}.{matrix}.{kind}": state[f"{theirs}.{matrix}.{kind}"] for kind in ("weight", "bias")}
        else:
            arrays[f"{ours}.{matrix}"] = state[f"{theirs}.{matrix}.weight"]
    return arrays
