"""Attention rollout: where a word's vector comes from once looks have been passed on from layer to layer (Abnar and Zuidema, 2020).

A layer adds what it looks at to what stood there. Counted as half of each, and heads averaged,

    R_l = (A_l + I) / 2 R_{l-1},      R_0 = I

and for a decoder, whose layers look at what was written (A) and then at the source (X) after an encoder with rollout R:

    S_l = ((A_l + I) / 2 S_{l-1} + X_l R) / 2,      S_0 = 0

The rows of S_l sum to less than one: the rest comes from what was written before.
"""

from __future__ import annotations

import numpy as np

from kente.measure.explored import Weights


def within(weights: Weights) -> Weights:
    """R_l for each layer (L, N, N), of self-attention (L, H, N, N)."""
    return np.stack(_accumulated(weights))


def from_source(decoder: Weights, cross: Weights, encoder: Weights) -> Weights:
    """S_l for each layer (L, T, S), of the weights (L, H, T, T), (L, H, T, S) and (L, H, S, S)."""
    read = _accumulated(encoder)[-1]
    flow, layers = np.zeros(cross.shape[2:], dtype=np.float32), []
    for mixed, looks in zip(_mixed(decoder), cross.mean(1), strict=True):
        flow = (mixed @ flow + looks @ read) / 2
        layers.append(flow)
    return np.stack(layers)


def _accumulated(weights: Weights) -> list[Weights]:
    total = np.eye(weights.shape[-1], dtype=np.float32)
    layers = []
    for mixed in _mixed(weights):
        total = mixed @ total
        layers.append(total)
    return layers


def _mixed(weights: Weights) -> Weights:
    """(A + I) / 2 of each layer, heads averaged."""
    return (weights.mean(1) + np.eye(weights.shape[-1], dtype=np.float32)) / 2
