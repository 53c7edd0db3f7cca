"""From settings to the parts Transformer layers are made of: the same for translators, language models and encoders."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch import nn

from kente.config import LayersConfig, TransformerConfig
from kente.nn.attention import MultiHead, multi_head
from kente.nn.linear_attention import LinearAttention
from kente.nn.longspan import Blockwise, Segments, Span, Window, in_chunks
from kente.nn.positions import (
    Alibi,
    Learned,
    Relative,
    RelativeSinusoid,
    Rotary,
    Sinusoid,
    Unplaced,
    sinusoid_fairseq,
    sinusoid_halves,
)
from kente.nn.recompute import Passage, keep, recompute, reversible
from kente.nn.transformer import LayerParts

PASSAGES: dict[str, Passage] = {"keep": keep, "recompute": recompute, "reversible": reversible}


def layer_parts(config: LayersConfig) -> LayerParts:
    """What every layer of these settings is made of."""
    return LayerParts(
        width=config.width,
        heads=config.heads,
        feedforward=config.feedforward,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        activation=config.activation,
        norm=config.norm,
        pre=config.norm_place == "pre",
        turn=Rotary(config.width // config.heads) if config.positions == "rotary" else None,
        meet=_meeting(config),
        attention=_attention(config),
        cross_meet=in_chunks if isinstance(config, TransformerConfig) and config.cross == "chunked" else multi_head,
        passage=PASSAGES[config.activations],
        experts=config.experts if isinstance(config, TransformerConfig) else 0,
        experts_used=config.experts_used if isinstance(config, TransformerConfig) else 1,
        epsilon=config.norm_epsilon,
        biases=config.biases,
    )


def word_scale(config: LayersConfig) -> float:
    """What word vectors are multiplied by before positions are added."""
    return math.sqrt(config.width) if config.scaled else 1.0


def position_codes(config: LayersConfig) -> nn.Module:
    """What is added to words to say where they stand, if anything is."""
    match config.positions:
        case "sinusoid":
            return Sinusoid(config.width)
        case "sinusoid-halves":
            return Sinusoid(config.width, sinusoid_halves)
        case "sinusoid-fairseq":
            return Sinusoid(config.width, sinusoid_fairseq)
        case "learned":
            return Learned(config.max_length, config.width)
        case _:
            return Unplaced()


def span_of(config: LayersConfig) -> Span | None:
    """The stretch that self-attention looks at; None when it is everything."""
    match config.span:
        case "window":
            return Window(config.reach)
        case "memory":
            return Segments(config.reach, config.remembered)
        case _:
            return None


def _meeting(config: LayersConfig) -> Callable[[], MultiHead]:
    """How queries meet keys in self-attention, for one layer after the other."""
    span = span_of(config)
    inside = _meeting_inside(config)
    return inside if span is None else lambda: Blockwise(span, inside())


def _attention(config: LayersConfig) -> Callable[[], LinearAttention] | None:
    """Another self-attention than the usual one, where settings ask for it."""
    if config.span != "linear":
        return None
    return lambda: LinearAttention(config.width, config.heads, biases=config.biases)


def _meeting_inside(config: LayersConfig) -> Callable[[], MultiHead]:
    match config.positions:
        case "relative":
            return lambda: Relative(config.relative_distance, config.width // config.heads)
        case "alibi":
            return lambda: Alibi(config.heads)
        case "xl":
            return lambda: RelativeSinusoid(config.width, config.heads)
        case _:
            return lambda: multi_head
