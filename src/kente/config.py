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

    kind: Literal["unigram", "bpe", "characters", "words"] = "unigram"
    """unigram and bpe are sentencepiece subwords; characters and words are what they say."""
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

    def __post_init__(self) -> None:
        _require(self.vocabulary >= 0, f"tokenizer.vocabulary ({self.vocabulary}) must be 0 (choose) or more")
        _require(0 <= self.sampling < 1, f"tokenizer.sampling ({self.sampling}) must be at least 0 and below 1")


@dataclass(frozen=True)
class TransformerConfig:
    """The Transformer of "Attention is all you need" and the variants people want of it. The defaults are the paper's base model."""

    kind: Literal["transformer"] = "transformer"
    """The architecture."""
    encoder_layers: int = 6
    """Layers that read the source."""
    decoder_layers: int = 6
    """Layers that write the target."""
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
    activation: Literal["relu", "gelu", "swiglu"] = "relu"
    """Inside the feed-forward layers; swiglu adds a gate and a third matrix."""
    positions: Literal["sinusoid", "learned", "rotary", "relative", "alibi", "none"] = "sinusoid"
    """How the network knows where a word stands: a code added to the words, or distances felt inside attention."""
    relative_distance: int = _later(16)
    """relative positions only: words further apart than this are told apart no more."""
    experts: int = _later(0)
    """Feed-forward networks to choose from in each layer, a mixture of experts; 0 is one for all."""
    experts_used: int = _later(2)
    """Experts each word goes to."""
    balance: float = _later(0.01)
    """Weight of the loss that keeps experts equally busy."""
    tie: Literal["all", "target", "none"] = "all"
    """Which embeddings are one matrix: source, target and output (the paper), target and output, or none."""
    max_length: int = 1024
    """Longest sequence; only learned positions pay for it."""

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
            self.positions != "sinusoid" or self.width % 2 == 0,
            f"model.positions = sinusoid needs an even model.width, not {self.width}",
        )
        _require(
            min(self.encoder_layers, self.decoder_layers, self.feedforward, self.max_length) >= 1,
            "model.encoder_layers, decoder_layers, feedforward and max_length must be at least 1",
        )
        _require(self.relative_distance >= 1, f"model.relative_distance ({self.relative_distance}) must be at least 1")
        _require(
            self.experts == 0 or 1 <= self.experts_used <= self.experts,
            f"model.experts_used ({self.experts_used}) must be from 1 to model.experts ({self.experts})",
        )
        _require(self.balance >= 0, f"model.balance ({self.balance}) must be 0 or more")
        _shares(self, "dropout", "attention_dropout")


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


ModelConfig = TransformerConfig | RecurrentConfig | IntraAttentionConfig | ConvConfig
"""The architectures, told apart by `kind`."""


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
    seed: int = 1
    """Sampling: the same seed draws the same words."""
    batch_tokens: int = 4096
    """Source tokens (times beam) translated at once."""
    shortlist: int = _later(-1)
    """Weigh only words that training saw beside a sentence's words: so many for each (10 to 100), and the most frequent; 0 weighs all;
    -1 leaves it to the engine, which does so for files where it is faster and BLEU does not change; scores are then among those words."""
    engine: Literal["auto", "torch", "ctranslate2"] = _later("auto")
    """What searches: torch carries every model, ctranslate2 most Transformers; auto is whichever was measured fastest here."""

    def __post_init__(self) -> None:
        _require(self.beam >= 1, f"decode.beam ({self.beam}) must be at least 1")
        _require(self.temperature > 0, f"decode.temperature ({self.temperature}) must be above 0")
        _require(0 < self.top_p <= 1, f"decode.top_p ({self.top_p}) must be above 0 and at most 1")
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
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    cleaning: CleaningConfig = field(default_factory=CleaningConfig)
    batches: BatchConfig = field(default_factory=BatchConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    decode: DecodeConfig = field(default_factory=DecodeConfig)
