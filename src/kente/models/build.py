"""From settings to a network: one case for each architecture."""

from __future__ import annotations

from torch import nn

from kente.config import ModelConfig, TransformerConfig
from kente.errors import ConfigError
from kente.models.transformer import Transformer


def build(config: ModelConfig, source_vocabulary: int, target_vocabulary: int, *, joint: bool = True) -> nn.Module:
    """A freshly initialised model; seed torch first to get the same one twice."""
    match config:
        case TransformerConfig():
            if config.tie == "all" and not (joint and source_vocabulary == target_vocabulary):
                raise ConfigError(
                    "model.tie = all shares one matrix between source and target, which needs tokenizer.joint = true; "
                    "set model.tie=target for separate vocabularies"
                )
            return Transformer(config, source_vocabulary, target_vocabulary)
