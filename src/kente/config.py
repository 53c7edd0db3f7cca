"""Every setting, as frozen dataclasses. The text under a field is its help, on the command line and in the docs.

A run's `config.toml` holds all of them; a recipe holds the ones that differ. `configfile` reads and writes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from kente.errors import ConfigError


def _later(default: Any) -> Any:
    """A setting that came after runs existed: at its default it leaves no trace in a run's fingerprint, so older runs still load."""
    return field(default=default, metadata={"later": True})


def _require(truth: bool, message: str) -> None:
    if not truth:
        raise ConfigError(message)


def _shares(section: object, *names: str) -> None:
    for name in names:
        share = getattr(section, name)
        _require(0 <= share < 1, f"model.{name} ({share}) must be at least 0 and below 1")


@dataclass(frozen=True)
class CleaningConfig:
    """What a pair must look like to be trained on."""

    max_words: int = 200
    """Drop a pair when either side has more words, or more than 20 characters for each of them (4 in scripts without spaces)."""
    max_ratio: float = 4.0
    """Drop a pair when one side is this many times longer than usual beside the other (in characters, short lines may differ more); 0 keeps all."""
    duplicates: Literal["drop", "keep"] = "drop"
    """What to do with a pair that stands in the corpus twice."""
    identical: Literal["drop", "keep"] = "drop"
    """What to do with a pair whose two sides are the same text."""
    wrong_script: Literal["drop", "keep"] = "drop"
    """What to do with a line mostly written in another script than its side of the corpus."""

    def __post_init__(self) -> None:
        _require(self.max_words >= 1, f"cleaning.max_words ({self.max_words}) must be at least 1")
        _require(self.max_ratio >= 0, f"cleaning.max_ratio ({self.max_ratio}) must be 0 (off) or more")


@dataclass(frozen=True)
class TokenizerConfig:
    """How text becomes ids."""

    kind: Literal["unigram", "bpe", "characters", "words", "byte-level", "wordpiece", "sentencepiece"] = "unigram"
    """unigram and bpe are sentencepiece subwords; characters and words are what they say; byte-level is GPT-2's, from its files;
    wordpiece is BERT's and sentencepiece Marian's and M2M100's, of imported models."""
    vocabulary: int = 0
    """Number of pieces, special ones included; 0 chooses from the corpus."""
    joint: bool = True
    """One vocabulary for both sides (needed for shared embeddings) or one each."""
    byte_fallback: bool = True
    """Spell characters never seen in training as bytes, so that nothing is lost (subwords only)."""
    sampling: float = 0.0
    """Chance of another segmentation while training: BPE-dropout for bpe, subword sampling for unigram; 0 is off."""
    normalisation: Literal["nfc", "none"] = "nfc"
    """Unicode form text is brought to before it is cut."""
    tags: str = _later("")
    """Words, with spaces between, that are one piece each where a source line begins with them; <bt> and <st> always are."""

    def __post_init__(self) -> None:
        _require(self.vocabulary >= 0, f"tokenizer.vocabulary ({self.vocabulary}) must be 0 (choose) or more")
        _require(0 <= self.sampling < 1, f"tokenizer.sampling ({self.sampling}) must be at least 0 and below 1")


@dataclass(frozen=True)
class LayersConfig:
    """Transformer layers, whatever they are stacked into: translators, language models and encoders have these settings in common."""

    kind: str = ""
    """The architecture."""
    width: int = 512
    """Size of every vector between layers."""
    feedforward: int = 2048
    """Size inside the position-wise feed-forward layers."""
    heads: int = 8
    """Attention heads; width must be a multiple of it."""
    dropout: float = 0.1
    """Share of values silenced after each sub-layer and on the embeddings while training."""
    attention_dropout: float = 0.0
    """Dropout on attention weights; above 0 the fast attention kernel cannot be used."""
    norm_place: Literal["post", "pre"] = "post"
    """Normalise after the residual sum (the paper) or before each sub-layer (trains more easily)."""
    norm: Literal["layer", "rms"] = "layer"
    """LayerNorm (the paper) or RMSNorm."""
    activation: Literal["relu", "gelu", "gelu-tanh", "silu", "swiglu"] = "relu"
    """Inside the feed-forward layers; gelu-tanh is GPT-2's approximation, silu Marian's swish; swiglu adds a gate and a third matrix."""
    positions: Literal[
        "sinusoid", "sinusoid-halves", "sinusoid-fairseq", "learned", "rotary", "relative", "alibi", "xl", "none"
    ] = "sinusoid"
    """How the network knows where a word stands: a code added to the words, or distances felt inside attention (xl: Transformer-XL's).
    Sinusoids of imported models: sinusoid-halves is Marian's, sinusoid-fairseq M2M100's."""
    relative_distance: int = _later(16)
    """relative positions only: words further apart than this are told apart no more."""
    max_length: int = 1024
    """Longest sequence; only learned positions pay for it."""
    span: Literal["full", "window", "memory", "linear"] = _later("full")
    """What a word looks at: everything, `reach` words around it, its segment and those remembered, or sums over everything."""
    reach: int = _later(128)
    """window: words looked at on each side, itself counted; memory: words in a segment."""
    remembered: int = _later(1)
    """memory only: earlier segments a segment remembers."""
    activations: Literal["keep", "recompute", "reversible"] = _later("keep")
    """What training keeps of layers: all, each one's input (the rest is computed twice), or nothing (layers that run backwards)."""
    biases: bool = _later(False)
    """Biases in the projections of attention; imported models have them."""
    norm_epsilon: float = _later(0.0)
    """Added before a norm divides; 0 is torch's own: 1e-5 for layer, next to nothing for rms."""
    scaled: bool = _later(True)
    """Multiply word vectors by the square root of the width (the paper)."""

    def __post_init__(self) -> None:
        _require(
            self.heads >= 1 and self.width % self.heads == 0,
            f"model.width ({self.width}) must be a multiple of model.heads ({self.heads})",
        )
        _require(
            self.positions != "rotary" or (self.width // self.heads) % 2 == 0,
            f"model.positions = rotary needs an even width per head, not {self.width // self.heads}",
        )
        _require(
            not self.positions.startswith(("sinusoid", "xl")) or self.width % 2 == 0,
            f"model.positions = {self.positions} needs an even model.width, not {self.width}",
        )
        _require(
            min(self.feedforward, self.max_length) >= 1, "model.feedforward and model.max_length must be at least 1"
        )
        _require(self.relative_distance >= 1, f"model.relative_distance ({self.relative_distance}) must be at least 1")
        _require(self.norm_epsilon >= 0, f"model.norm_epsilon ({self.norm_epsilon}) must be 0 (torch's own) or more")
        _shares(self, "dropout", "attention_dropout")
        self._check_spans()

    def _check_spans(self) -> None:
        """Settings of long spans that do not go together."""
        _require(self.reach >= 1, f"model.reach ({self.reach}) must be at least 1")
        _require(self.remembered >= 1, f"model.remembered ({self.remembered}) must be at least 1")
        if self.span == "linear":
            _require(
                self.positions.startswith("sinusoid") or self.positions in ("learned", "none"),
                f"model.span = linear has no scores that could feel distances; set model.positions to sinusoid, learned or none, "
                f"not {self.positions}",
            )
            _require(
                self.attention_dropout == 0,
                f"model.span = linear has no weights to drop; set model.attention_dropout=0, not {self.attention_dropout}",
            )
        _require(
            self.activations != "reversible" or self.norm_place == "pre",
            "model.activations = reversible cannot undo a norm after the sum; set model.norm_place=pre",
        )


@dataclass(frozen=True)
class TransformerConfig(LayersConfig):
    """The Transformer of "Attention is all you need" and the variants people want of it. The defaults are the paper's base model."""

    kind: Literal["transformer"] = "transformer"
    """The architecture."""
    encoder_layers: int = 6
    """Layers that read the source."""
    decoder_layers: int = 6
    """Layers that write the target."""
    tie: Literal["all", "target", "none"] = "all"
    """Which embeddings are one matrix: source, target and output (the paper), target and output, or none."""
    cross: Literal["full", "chunked"] = _later("full")
    """How the target asks the source: all at once, or in chunks that need less memory while training with attention_dropout."""
    experts: int = _later(0)
    """Feed-forward networks to choose from in each layer, a mixture of experts; 0 is one for all."""
    experts_used: int = _later(2)
    """Experts each word goes to."""
    balance: float = _later(0.01)
    """Weight of the loss that keeps experts equally busy."""
    output_bias: bool = _later(False)
    """A bias for each word that is predicted."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(
            min(self.encoder_layers, self.decoder_layers) >= 1,
            "model.encoder_layers and model.decoder_layers must be at least 1",
        )
        _require(
            self.experts == 0 or 1 <= self.experts_used <= self.experts,
            f"model.experts_used ({self.experts_used}) must be from 1 to model.experts ({self.experts})",
        )
        _require(self.balance >= 0, f"model.balance ({self.balance}) must be 0 or more")
        _require(
            self.activations != "reversible" or not self.experts,
            "model.activations = reversible cannot balance experts; set model.activations=recompute or model.experts=0",
        )


@dataclass(frozen=True)
class RecurrentConfig:
    """An encoder and a decoder of recurrent cells, with one fixed context vector or with attention."""

    kind: Literal["recurrent"] = "recurrent"
    """The architecture."""
    cell: Literal["rnn", "lstm", "gru", "minimal"] = "gru"
    """tanh(Wx + Uh + b), LSTM, GRU, or the gated unit with a single gate."""
    attention: Literal["none", "additive", "bilinear", "dot", "projected"] = "additive"
    """none squeezes the source into one vector; the others say how a decoder state is compared with encoder states."""
    encoder_layers: int = 1
    """Layers that read the source."""
    decoder_layers: int = 1
    """Layers that write the target."""
    width: int = 256
    """Size of each cell's state."""
    embedding: int = 256
    """Size of the word vectors; 0 feeds words as they are, one value for each word of the vocabulary."""
    bidirectional: Literal["none", "first", "all"] = "all"
    """Encoder layers that also read from right to left."""
    residual: bool = False
    """Carry each layer's input around it, from the third layer on (GNMT)."""
    context_to: Literal["first", "all"] = "first"
    """Decoder layers that read the context: the first, or all of them (GNMT)."""
    repeat_context: bool = False
    """Fixed context only: the decoder reads it at every step, not only at the start."""
    reset_bias: bool = False
    """gru only: a second bias inside the reset gate's product, as torch and cuDNN have it."""
    dropout: float = 0.1
    """Share of values silenced on embeddings, between layers and before the output while training."""
    tie: Literal["all", "target", "none"] = "all"
    """Which embeddings are one matrix: source, target and output, target and output, or none."""

    def __post_init__(self) -> None:
        _require(
            min(self.encoder_layers, self.decoder_layers, self.width) >= 1,
            "model.encoder_layers, decoder_layers and width must be at least 1",
        )
        _require(self.embedding >= 0, f"model.embedding ({self.embedding}) must be 0 (none) or more")
        _require(
            self.embedding > 0 or self.tie == "none",
            f"model.embedding = 0 has no matrix to share; set model.tie=none, not {self.tie}",
        )
        _require(
            self.cell == "gru" or not self.reset_bias,
            f"model.reset_bias is a part of gru cells; {self.cell} has no such bias",
        )
        _shares(self, "dropout")


@dataclass(frozen=True)
class IntraAttentionConfig:
    """LSTM with intra-attention (Cheng et al., 2016): a memory tape in place of one memory cell, in encoder and decoder."""

    kind: Literal["lstmn"] = "lstmn"
    """The architecture."""
    width: int = 256
    """Size of each state on the tape."""
    embedding: int = 256
    """Size of the word vectors."""
    dropout: float = 0.1
    """Share of values silenced on embeddings and before the output while training."""
    tie: Literal["all", "target", "none"] = "all"
    """Which embeddings are one matrix: source, target and output, target and output, or none."""

    def __post_init__(self) -> None:
        _require(min(self.width, self.embedding) >= 1, "model.width and model.embedding must be at least 1")
        _shares(self, "dropout")


@dataclass(frozen=True)
class ConvConfig:
    """Convolutional sequence to sequence learning (Gehring et al., 2017): gated convolutions, attention in every decoder layer."""

    kind: Literal["conv"] = "conv"
    """The architecture."""
    embedding: int = 256
    """Size of the word and position vectors."""
    encoder_channels: tuple[int, ...] = (256, 256, 256, 256)
    """Size of each encoder layer, first to last."""
    encoder_kernels: tuple[int, ...] = (3, 3, 3, 3)
    """Words each encoder layer sees at once."""
    decoder_channels: tuple[int, ...] = (256, 256, 256)
    """Size of each decoder layer, first to last."""
    decoder_kernels: tuple[int, ...] = (3, 3, 3)
    """Words each decoder layer sees at once, itself and those before it."""
    dropout: float = 0.1
    """Share of values silenced on embeddings and before each convolution while training."""
    tie: Literal["all", "target", "none"] = "all"
    """Which embeddings are one matrix: source, target and output, target and output, or none."""
    max_length: int = 1024
    """Longest sequence: each position has a vector of its own."""

    @property
    def width(self) -> int:
        """The size that learning rates go by."""
        return self.encoder_channels[0]

    def __post_init__(self) -> None:
        for side in ("encoder", "decoder"):
            channels, kernels = getattr(self, f"{side}_channels"), getattr(self, f"{side}_kernels")
            _require(
                len(channels) == len(kernels) >= 1,
                f"model.{side}_channels has {len(channels)} layers but model.{side}_kernels has {len(kernels)}",
            )
            _require(
                min(*channels, *kernels) >= 1, f"model.{side}_channels and {side}_kernels must hold numbers from 1 on"
            )
        odd = all(kernel % 2 for kernel in self.encoder_kernels)
        _require(
            odd, f"model.encoder_kernels {self.encoder_kernels} must be odd: as many words on the left as on the right"
        )
        _require(min(self.embedding, self.max_length) >= 1, "model.embedding and model.max_length must be at least 1")
        _shares(self, "dropout")


@dataclass(frozen=True)
class GraphConfig:
    """A network over a graph, for node classification. The defaults are those of the GAT paper for Cora."""

    kind: Literal["graph"] = "graph"
    """The architecture."""
    layer: Literal["gat", "gatv2", "dot", "gcn"] = "gat"
    """How a node weighs its neighbours: the lecture's LeakyReLU(a.[Wh_i;Wh_j]), GATv2's a.LeakyReLU(Uh_i+Wh_j), a dot product, or by their degrees alone."""
    layers: int = 2
    """How many edges away a node can see."""
    width: int = 8
    """Size of each head's vectors between layers."""
    heads: int = 8
    """Heads of every layer but the last."""
    output_heads: int = 1
    """Heads of the last layer; their answers are averaged."""
    join: Literal["concatenate", "average"] = "concatenate"
    """What becomes of the heads between layers: all of them side by side, or their mean."""
    activation: Literal["elu", "relu"] = "elu"
    """Between layers."""
    slope: float = 0.2
    """gat and gatv2: slope of LeakyReLU below zero."""
    dropout: float = 0.6
    """Share of values silenced before each layer while training."""
    attention_dropout: float = 0.6
    """Share of edges silenced in each layer and head while training."""
    both_ways: bool = True
    """An edge lets its two nodes look at each other; false lets only the second look at the first."""
    self_loops: bool = True
    """Each node looks at itself too."""
    penalty: float = 5e-4
    """Half the squared length of all weights, times this, is added to the loss of each label."""

    def __post_init__(self) -> None:
        _require(
            min(self.layers, self.width, self.heads, self.output_heads) >= 1,
            "model.layers, width, heads and output_heads must be at least 1",
        )
        _require(self.penalty >= 0, f"model.penalty ({self.penalty}) must be 0 or more")
        _shares(self, "dropout", "attention_dropout")


@dataclass(frozen=True)
class StackConfig(LayersConfig):
    """One stack of Transformer layers over one text: what language models and encoders have in common."""

    layers: int = 6
    """Layers, one upon the other."""
    norm_place: Literal["post", "pre"] = "pre"
    activation: Literal["relu", "gelu", "gelu-tanh", "silu", "swiglu"] = "gelu"
    relative_distance: int = 16
    tie: bool = True
    """One table for the words read and the words predicted."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.layers >= 1, f"model.layers ({self.layers}) must be at least 1")


@dataclass(frozen=True)
class LanguageModelConfig(StackConfig):
    """A decoder-only Transformer (Radford et al., 2018): what comes next, from all that came before."""

    kind: Literal["language"] = "language"
    """The architecture."""
    output_bias: bool = _later(False)
    """A bias for each word that is predicted."""


@dataclass(frozen=True)
class MaskedConfig(StackConfig):
    """A Transformer encoder that fills gaps (BERT: Devlin et al., 2019): every word looks both ways."""

    kind: Literal["masked"] = "masked"
    """The architecture."""
    embedding_norm: bool = _later(False)
    """Normalise words with their positions before the first layer (BERT)."""
    segments: int = _later(1)
    """Kinds of text told apart by a vector each: what stands behind the first end mark is of the second kind (BERT); 1 tells none apart."""
    gaps: bool = _later(True)
    """A head that says which word stands in a gap; imported encoders may come without."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.segments >= 1, f"model.segments ({self.segments}) must be at least 1")
        _require(self.gaps or self.tie, "model.gaps = false has no words to predict; set model.tie=true")


@dataclass(frozen=True)
class RecurrentLanguageConfig:
    """A recurrent language model (Mikolov et al., 2010): all that came before in one state."""

    kind: Literal["recurrent-language"] = "recurrent-language"
    """The architecture."""
    cell: Literal["rnn", "lstm", "gru", "minimal"] = "lstm"
    """tanh(Wx + Uh + b), LSTM, GRU, or the gated unit with a single gate."""
    layers: int = 1
    """Layers, one upon the other."""
    width: int = 256
    """Size of each cell's state."""
    embedding: int = 256
    """Size of the word vectors."""
    residual: bool = False
    """Carry each layer's input around it, from the third layer on."""
    dropout: float = 0.1
    """Share of values silenced on embeddings, between layers and before the output while training."""
    tie: bool = True
    """One table for the words read and the words predicted."""

    def __post_init__(self) -> None:
        _require(
            min(self.layers, self.width, self.embedding) >= 1,
            "model.layers, width and embedding must be at least 1",
        )
        _shares(self, "dropout")


@dataclass(frozen=True)
class SkipGramConfig:
    """Word vectors that know no context: skip-gram with negative sampling (Mikolov et al., 2013)."""

    kind: Literal["skip-gram"] = "skip-gram"
    """The architecture."""
    width: int = 128
    """Size of the word vectors."""
    window: int = 5
    """Neighbours on either side at most; for each word a number up to it is drawn, so that nearer ones count more."""
    negatives: int = 5
    """Words drawn at random, to be told from each real neighbour."""
    subsample: float = 1e-3
    """Words with a larger share of the text than this are passed over more often the more frequent they are; 0 keeps all."""
    tie: Literal["none"] = "none"
    """A word has two vectors, as a word and as a neighbour."""

    def __post_init__(self) -> None:
        _require(
            min(self.width, self.window, self.negatives) >= 1,
            "model.width, window and negatives must be at least 1",
        )
        _require(self.subsample >= 0, f"model.subsample ({self.subsample}) must be 0 (off) or more")


ModelConfig = (
    TransformerConfig
    | RecurrentConfig
    | IntraAttentionConfig
    | ConvConfig
    | LanguageModelConfig
    | RecurrentLanguageConfig
    | MaskedConfig
    | GraphConfig
    | SkipGramConfig
)
"""The architectures, told apart by `kind`."""


@dataclass(frozen=True)
class HeadConfig:
    """What stands upon an encoder: whole texts become one vector, and perhaps one of some classes. Any model's encoder will do."""

    kind: Literal["none", "classes", "vectors"] = _later("none")
    """none is the model as it is; classes tells texts apart; vectors are texts to be compared with each other."""
    pooling: Literal["mean", "cls", "attention"] = _later("mean")
    """One vector for a text: the mean of its words', that of the mark at its beginning (or end), or a mean whose weights are learned."""
    classes: int = _later(0)
    """How many classes there are; found in the labelled texts."""
    dropout: float = _later(0.1)
    """Share of the text vector's values silenced before classes are told apart, while training."""
    begins: bool = _later(True)
    """Whether texts open with a mark, as the encoder was trained; a translator's sentences do not."""
    temperature: float = _later(0.05)
    """vectors only: similarities are divided by this before the right partner is picked among all."""

    def __post_init__(self) -> None:
        _require(self.classes >= 0, f"head.classes ({self.classes}) must be 0 (unknown) or more")
        _require(0 <= self.dropout < 1, f"head.dropout ({self.dropout}) must be at least 0 and below 1")
        _require(self.temperature > 0, f"head.temperature ({self.temperature}) must be above 0")


@dataclass(frozen=True)
class TextConfig:
    """How running text is read: what a language model or an encoder is trained on. Its blocks have `batches.max_length` tokens."""

    documents: Literal["files", "paragraphs", "lines"] = _later("files")
    """What is one document: a whole file, what stands between blank lines, or each line."""
    packed: bool = _later(True)
    """Documents follow each other in blocks that are all full; false keeps them apart: a block is of one document alone."""
    mask_share: float = _later(0.15)
    """Masked training: share of the words to be guessed."""
    whole_words: bool = _later(True)
    """Masked training: all pieces of a word are hidden together."""

    def __post_init__(self) -> None:
        _require(0 < self.mask_share < 1, f"text.mask_share ({self.mask_share}) must be above 0 and below 1")


@dataclass(frozen=True)
class BatchConfig:
    """How sentences are put together into batches."""

    tokens: int = 4096
    """Target tokens in a batch at most, padding included; the source side may hold as many."""
    max_length: int = 256
    """Longest sentence trained on, in tokens; longer pairs are counted and left out."""
    accumulation: int = 1
    """Batches read before each update."""

    def __post_init__(self) -> None:
        _require(self.max_length >= 2, f"batches.max_length ({self.max_length}) must be at least 2")
        _require(
            self.tokens >= self.max_length,
            f"batches.tokens ({self.tokens}) must be at least batches.max_length ({self.max_length})",
        )
        _require(self.accumulation >= 1, f"batches.accumulation ({self.accumulation}) must be at least 1")


@dataclass(frozen=True)
class OptimiserConfig:
    """How weights move."""

    kind: Literal["adamw", "muon"] = "adamw"
    """adamw for every weight, or muon for the matrices between layers with adamw for the rest."""
    rate: float = 1e-3
    """Peak learning rate; for the noam schedule, the factor in front of width^-0.5."""
    schedule: Literal["inverse-sqrt", "noam", "linear", "cosine", "wsd", "constant"] = "inverse-sqrt"
    """Shape of the learning rate after warm-up; linear, cosine and wsd (warm up, stay, decay) land at the last update."""
    warmup: int = 4000
    """Updates over which the rate rises to its peak."""
    decay_share: float = 0.3
    """wsd only: last share of the updates over which the rate falls."""
    final_rate: float = 0.0
    """Share of the peak rate that linear, cosine and wsd end at."""
    betas: tuple[float, float] = (0.9, 0.98)
    """Decay of the running averages of gradient and squared gradient (adamw)."""
    momentum: float = 0.95
    """Decay of the running average of gradients (muon)."""
    turns: int = _later(1)
    """Muon moves each matrix once in so many updates, that much further: cheaper, and two turns learn as much."""
    epsilon: float = 1e-9
    """Keeps adamw's division finite."""
    weight_decay: float = 0.0
    """Pull of every matrix towards zero, in shares of the learning rate."""
    clip: float = 1.0
    """Largest norm of the whole gradient; 0 does not clip."""

    def __post_init__(self) -> None:
        _require(self.rate > 0, f"optimiser.rate ({self.rate}) must be above 0")
        _require(self.warmup >= 0, f"optimiser.warmup ({self.warmup}) must be 0 or more")
        _require(0 < self.decay_share <= 1, f"optimiser.decay_share ({self.decay_share}) must be above 0 and at most 1")
        _require(all(0 <= b < 1 for b in self.betas), f"optimiser.betas {self.betas} must be at least 0 and below 1")
        _require(0 <= self.momentum < 1, f"optimiser.momentum ({self.momentum}) must be at least 0 and below 1")
        _require(self.turns >= 1, f"optimiser.turns ({self.turns}) must be at least 1")
        _require(self.clip >= 0, f"optimiser.clip ({self.clip}) must be 0 (off) or more")


@dataclass(frozen=True)
class TrainConfig:
    """How long, how carefully, how often."""

    task: Literal["translation", "causal", "masked", "nodes", "words", "classification", "similarity"] = _later(
        "translation"
    )
    """What is learnt: to translate, to say what comes next in a text, to fill gaps in it, to tell the nodes of a graph apart, which words stand
    near each other, to tell texts apart, or which texts mean the same."""
    seed: int = 1
    """Everything random follows from it."""
    updates: int = 0
    """Stop after this many updates; 0 trains to early stopping, or to `minutes`."""
    minutes: float = 0.0
    """Land the whole run, validation included, in this many minutes; 0 is no limit."""
    max_updates: int = 200_000
    """Where training ends when neither updates nor minutes are given and early stopping never comes."""
    label_smoothing: float = 0.1
    """Share of probability spread over the words that are not the answer."""
    begin: Literal["random", "associations"] = _later("random")
    """Where the vectors of words begin: anywhere, or close to those of the words they stand in the same pairs with."""
    precision: Literal["float32", "bfloat16"] = _later("float32")
    """What layers multiply while they learn: bfloat16 rounds the factors and the result of each product, which processors with units for it (AMX,
    AVX512-BF16) make at least twice as fast. Weights, sums, norms, attention, the optimiser and validation stay float32."""
    average: Literal["none", "ema", "last"] = "ema"
    """Weights to translate with: as they are, an exponential average, or the mean of the last checkpoints."""
    ema_decay: float = 0.995
    """Memory of the exponential average, per update."""
    average_last: int = 5
    """How many validated checkpoints `average = last` takes the mean of."""
    validate_every: int = 0
    """Updates between validations; 0 chooses."""
    validate_sentences: int = 1000
    """Validation sentences translated for BLEU at most; the loss is taken over all."""
    patience: int = 8
    """Validations without a better score before training stops; 0 never stops early."""
    save_every: int = 0
    """Updates between checkpoints; 0 chooses."""
    keep: int = 2
    """Latest checkpoints kept, beside the best."""
    log_every: int = 20
    """Updates between lines of metrics.jsonl."""
    divergence: bool = True
    """Stop when the loss climbs away from where it was."""

    def __post_init__(self) -> None:
        _require(
            0 <= self.label_smoothing < 1,
            f"train.label_smoothing ({self.label_smoothing}) must be at least 0 and below 1",
        )
        _require(0 <= self.ema_decay < 1, f"train.ema_decay ({self.ema_decay}) must be at least 0 and below 1")
        _require(
            min(self.updates, self.minutes, self.validate_every, self.save_every, self.patience) >= 0,
            "train.updates, minutes, validate_every, save_every and patience must be 0 or more",
        )
        _require(
            min(self.keep, self.log_every, self.average_last, self.max_updates, self.validate_sentences) >= 1,
            "train.keep, log_every, average_last, max_updates and validate_sentences must be at least 1",
        )
        _require(not (self.updates and self.minutes), "give train.updates or train.minutes, not both")


@dataclass(frozen=True)
class TransferConfig:
    """How a run that goes on from another's weights treats what that one knows."""

    freeze: str = _later("")
    """Parts that stay as they were, with commas between: words, encoder, decoder, attention, cross, feedforward, norms, or names of weights."""
    lora: int = _later(0)
    """Rank of the maps that learn beside the fixed ones (LoRA); 0 lets all weights learn."""
    replay: float = _later(0.0)
    """Share of the batches that repeat what the first run was trained on."""
    grow_vocabulary: int = _later(0)
    """Pieces of the new text added to the vocabulary at most, to each side's where there are two."""

    def __post_init__(self) -> None:
        _require(self.lora >= 0, f"transfer.lora ({self.lora}) must be 0 (off) or more")
        _require(0 <= self.replay < 1, f"transfer.replay ({self.replay}) must be at least 0 and below 1")
        _require(self.grow_vocabulary >= 0, f"transfer.grow_vocabulary ({self.grow_vocabulary}) must be 0 or more")


@dataclass(frozen=True)
class DecodeConfig:
    """How a translation is searched for."""

    beam: int = 5
    """Hypotheses kept alive; 1 is greedy."""
    length_penalty: float = 1.0
    """Scores are divided by ((5 + length) / 6) to this power; 0 favours short answers."""
    max_ratio: float = 2.0
    """Answers longer than this many times the source (plus 10 tokens) are cut; training chooses it from the corpus."""
    no_repeat: int = 0
    """Forbid repeating any run of this many tokens; 0 only guards against endless loops."""
    split_sentences: bool = True
    """Translate the sentences of a line one by one; off for models trained on lines of several sentences."""
    sample: bool = False
    """Draw words at random instead of searching for the best."""
    temperature: float = 1.0
    """Sampling: below 1 sharper, above 1 wilder."""
    top_k: int = 0
    """Sampling: only the k likeliest words; 0 is all."""
    top_p: float = 1.0
    """Sampling: only the likeliest words that together have this probability."""
    min_p: float = _later(0.0)
    """Sampling: only words at least this share as likely as the likeliest one; 0 is all."""
    seed: int = 1
    """Sampling: the same seed draws the same words."""
    batch_tokens: int = 4096
    """Source tokens (times beam) translated at once."""
    shortlist: int = _later(-1)
    """Weigh only words that training saw beside a sentence's words: so many for each (10 to 100), and the most frequent; 0 weighs all;
    -1 leaves it to the engine, which does so for files where it is faster and BLEU does not change; scores are then among those words."""
    engine: Literal["auto", "torch", "ctranslate2", "native"] = _later("auto")
    """What searches: torch carries every model, ctranslate2 most Transformers, native (our own, compiled here) the usual ones; auto is
    whichever was measured fastest here."""
    source_language: str = _later("")
    """Models of many languages: what the text is written in, as the model calls it (en)."""
    target_language: str = _later("")
    """Models of many languages: what it is translated into (fr)."""

    def __post_init__(self) -> None:
        _require(self.beam >= 1, f"decode.beam ({self.beam}) must be at least 1")
        _require(self.temperature > 0, f"decode.temperature ({self.temperature}) must be above 0")
        _require(0 < self.top_p <= 1, f"decode.top_p ({self.top_p}) must be above 0 and at most 1")
        _require(0 <= self.min_p <= 1, f"decode.min_p ({self.min_p}) must be from 0 to 1")
        _require(self.top_k >= 0, f"decode.top_k ({self.top_k}) must be 0 (off) or more")
        _require(self.no_repeat >= 0, f"decode.no_repeat ({self.no_repeat}) must be 0 (off) or more")
        _require(self.max_ratio > 0, f"decode.max_ratio ({self.max_ratio}) must be above 0")
        _require(self.batch_tokens >= 1, f"decode.batch_tokens ({self.batch_tokens}) must be at least 1")
        _require(
            self.shortlist >= -1,
            f"decode.shortlist ({self.shortlist}) must be -1 (the engine decides), 0 (off) or more",
        )


@dataclass(frozen=True)
class Config:
    """All of it."""

    model: ModelConfig = field(default_factory=TransformerConfig)
    head: HeadConfig = field(default_factory=HeadConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    cleaning: CleaningConfig = field(default_factory=CleaningConfig)
    text: TextConfig = field(default_factory=TextConfig)
    batches: BatchConfig = field(default_factory=BatchConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    transfer: TransferConfig = field(default_factory=TransferConfig)
    decode: DecodeConfig = field(default_factory=DecodeConfig)
