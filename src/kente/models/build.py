"""From settings to a network: one case for each architecture."""

from __future__ import annotations

from torch import nn

from kente.config import (
    Config,
    ConvConfig,
    GraphConfig,
    IntraAttentionConfig,
    LanguageModelConfig,
    MaskedConfig,
    ModelConfig,
    RecurrentConfig,
    RecurrentLanguageConfig,
    SkipGramConfig,
    TransformerConfig,
)
from kente.errors import ConfigError
from kente.models.conv_seq2seq import ConvSeq2Seq
from kente.models.graph import GraphNetwork
from kente.models.intra_attention import IntraAttentionSeq2Seq
from kente.models.language_model import LanguageModel, RecurrentLanguageModel
from kente.models.masked_lm import MaskedLM
from kente.models.recurrent_seq2seq import AttentiveSeq2Seq, FixedContextSeq2Seq
from kente.models.skip_gram import SkipGram
from kente.models.text_reader import TextReader
from kente.models.transformer import Transformer


def build(config: ModelConfig, source_vocabulary: int, target_vocabulary: int, *, joint: bool = True) -> nn.Module:
    """A freshly initialised model; seed torch first to get the same one twice. Models of one text have the target's vocabulary.

    What a graph's nodes have for words are their features, and what they become are classes.
    """
    if isinstance(config, GraphConfig):
        return GraphNetwork(config, source_vocabulary, target_vocabulary)
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
        case LanguageModelConfig():
            return LanguageModel(config, target_vocabulary)
        case RecurrentLanguageConfig():
            return RecurrentLanguageModel(config, target_vocabulary)
        case MaskedConfig():
            return MaskedLM(config, target_vocabulary)
        case SkipGramConfig():
            return SkipGram(config, target_vocabulary)


def build_for(config: Config, source_vocabulary: int, target_vocabulary: int) -> nn.Module:
    """The network of a run: its model, or, where it has a head, that model's encoder with the head upon it."""
    model = build(config.model, source_vocabulary, target_vocabulary, joint=config.tokenizer.joint)
    return model if config.head.kind == "none" else TextReader(model, config.head)
