"""From settings to a network: one case for each architecture."""

from __future__ import annotations

from torch import nn

from kente.config import ConvConfig, IntraAttentionConfig, ModelConfig, RecurrentConfig, TransformerConfig
from kente.errors import ConfigError
from kente.models.conv_seq2seq import ConvSeq2Seq
from kente.models.intra_attention import IntraAttentionSeq2Seq
from kente.models.recurrent_seq2seq import AttentiveSeq2Seq, FixedContextSeq2Seq
from kente.models.transformer import Transformer


def build(config: ModelConfig, source_vocabulary: int, target_vocabulary: int, *, joint: bool = True) -> nn.Module:
    """A freshly initialised model; seed torch first to get the same one twice."""
    if config.tie == "all" and not (joint and source_vocabulary == target_vocabulary):
        raise ConfigError(
            "model.tie = all shares one matrix between source and target, which needs tokenizer.joint = true; "
            "set model.tie=target for separate vocabularies"
        )
    match config:
        case TransformerConfig():
            return Transformer(config, source_vocabulary, target_vocabulary)
        case RecurrentConfig(attention="none"):
            return FixedContextSeq2Seq(config, source_vocabulary, target_vocabulary)
        case RecurrentConfig():
            return AttentiveSeq2Seq(config, source_vocabulary, target_vocabulary)
        case IntraAttentionConfig():
            return IntraAttentionSeq2Seq(config, source_vocabulary, target_vocabulary)
        case ConvConfig():
            return ConvSeq2Seq(config, source_vocabulary, target_vocabulary)
