"""From a folder of another program's model to all that a run of ours is made of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kente.config import BatchConfig, Config, DecodeConfig, ModelConfig, TextConfig, TokenizerConfig, TrainConfig
from kente.data.tokenizer import Tokenizers
from kente.errors import UsageError
from kente.imports.folder import read_json, read_json_list, unread
from kente.imports.layouts import Layout, layout_of
from kente.imports.links import Link, Vocabularies
from kente.imports.theirs import Settings, Tensors
from kente.imports.tokenizers import Files, Read, read_byte_level, read_m2m100, read_marian, read_wordpiece
from kente.models.build import build

GENEROUS = 4.0
"""Tokens of a translation for each of its source that are allowed: nothing is known of the corpus."""


@dataclass(frozen=True)
class Taken:
    """A model, ready to be a run."""

    layout: str
    """Its model_type."""
    config: Config
    tokenizers: Tokenizers
    weights: dict[str, Tensor]
    facts: dict[str, Any]
    """What the run remembers of where it comes from ..."""
    files: dict[str, bytes]
    """... and the small files that were there: with both, it can be given back (export.origin)."""
    notes: tuple[str, ...]
    """What was left out or left alone."""


def take(folder: Path, languages: tuple[str, str] | None = None) -> Taken:
    """Read a model; `languages` are source and target, for a model of many."""
    settings = Settings(folder)
    layout = layout_of(settings)
    tensors = Tensors(folder, layout.prefix)
    model = layout.config(settings, tensors)
    links = layout.links(model, tensors)
    read = _tokenizers(layout, folder, settings, tensors, links)
    vocabularies: Vocabularies = {"source": read.source, "target": read.target}
    config = _config(model, layout, read.tokenizers, folder, settings, languages)
    weights = {link.ours: link.read(tensors, vocabularies) for link in links}
    left = tensors.left_out(layout.of_no_use)
    _require_fit(config, read.tokenizers, weights, folder)
    spoken = read.tokenizers.speaking(config.decode.source_language, config.decode.target_language)
    heads = sorted({name.partition(".")[0] for name in left if name.split(".")[0] in HEADS})
    notes = [*unread(folder), *([f"left out: {', '.join(heads)} (kente classify trains its own)"] if heads else [])]
    pooling, said = _pooling(folder)
    return Taken(
        layout=settings.get("model_type"),
        config=config,
        tokenizers=spoken,
        weights=weights,
        facts={
            "layout": settings.get("model_type"),
            "architectures": settings.get("architectures", default=[]),
            "prefix": tensors.prefix_of(layout.prefix),
            "vocabularies": {side: vocabulary.as_dict() for side, vocabulary in vocabularies.items()},
            **pooling,
        },
        files={name: (folder / name).read_bytes() for name in SMALL if (folder / name).is_file()},
        notes=(*notes, *said),
    )


SMALL = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "source.spm",
    "target.spm",
    "target_vocab.json",
    "sentencepiece.bpe.model",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
)
"""Settings and tokenizers, by name; anything else that lies beside them is not looked at."""
HEADS = ("pooler", "classifier", "qa_outputs", "score")
"""Tensors of tasks that Kente learns anew."""


def _tokenizers(layout: Layout, folder: Path, settings: Settings, tensors: Tensors, links: list[Link]) -> Read:
    """By the layout; the model's own tables say how many words there are on each side."""
    rows = {link.words: tensors.rows(link.theirs[0]) for link in reversed(links) if link.words and link.theirs}
    both = (rows.get("source", rows["target"]), rows["target"])
    match layout.title:
        case "BERT":
            return read_wordpiece(folder, rows["target"])
        case "GPT-2":
            return read_byte_level(folder, rows["target"])
        case "Marian":
            return read_marian(folder, both, settings)
        case _:
            return read_m2m100(folder, both, settings)


def _config(
    model: ModelConfig,
    layout: Layout,
    tokenizers: Tokenizers,
    folder: Path,
    settings: Settings,
    languages: tuple[str, str] | None,
) -> Config:
    """Every setting of the run: what the files say, and what can be known without a corpus."""
    longest = _longest(folder, model)
    kind: Any = tokenizers.source.kind
    return Config(
        model=model,
        tokenizer=TokenizerConfig(
            kind=kind,
            vocabulary=tokenizers.target.size,
            joint=tokenizers.joint,
            byte_fallback=False,
            normalisation="none",
        ),
        text=TextConfig(documents="paragraphs" if layout.task == "masked" else "files"),
        batches=BatchConfig(max_length=longest, tokens=max(BatchConfig.tokens, longest)),
        train=TrainConfig(task=layout.task, average="none"),  # type: ignore[arg-type]
        decode=_decode(layout, folder, settings, languages),
    )


def _longest(folder: Path, model: ModelConfig) -> int:
    """Tokens the model was used to; sentence encoders were trained on fewer than they have places for."""
    places: int = getattr(model, "max_length")  # noqa: B009 (all four layouts have it)
    stated = read_json(folder / "sentence_bert_config.json").get("max_seq_length")
    return min(places, stated) if isinstance(stated, int) and stated >= 2 else places


def _decode(layout: Layout, folder: Path, settings: Settings, languages: tuple[str, str] | None) -> DecodeConfig:
    if layout.task != "translation":
        if languages:
            raise UsageError(f"{layout.title} does not translate; leave the languages out")
        return DecodeConfig()
    stated = read_json(folder / "generation_config.json")
    beams = stated.get("num_beams") or settings.get("num_beams", default=DecodeConfig.beam)
    beam = beams if isinstance(beams, int) and beams >= 1 else DecodeConfig.beam
    if languages is None and layout.title == "M2M100":
        said = Files(folder).config
        languages = said.get("src_lang") or "", said.get("tgt_lang") or ""
    source, target = languages or ("", "")
    return DecodeConfig(beam=beam, max_ratio=GENEROUS, source_language=source, target_language=target)


POOLINGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
"""Settings of sentence-transformers, and what Kente calls them."""


KNOWN_MODULES = ("Transformer", "Pooling", "Normalize")
"""Parts of a sentence encoder that do here what they did there."""


def _left_out(folder: Path) -> list[str]:
    """Notes about parts of a sentence encoder that Kente has not."""
    modules = read_json_list(folder / "modules.json")
    parts = [str(module.get("type", "")).rpartition(".")[2] for module in modules if isinstance(module, dict)]
    strange = [part for part in parts if part not in KNOWN_MODULES]
    return (
        [f"its vectors of texts also went through {', '.join(strange)}, left out here: they will be others"]
        if strange
        else []
    )


def _pooling(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """How a sentence encoder makes one vector of many, where its files say so, and notes where it is not how Kente can."""
    left_out = _left_out(folder)
    found = read_json(folder / "1_Pooling" / "config.json")
    chosen = sorted(setting for setting, on in found.items() if setting.startswith("pooling_mode_") and on)
    if len(chosen) == 1 and chosen[0] in POOLINGS:
        return {"pooling": POOLINGS[chosen[0]]}, left_out
    names = ", ".join(setting.removeprefix("pooling_mode_") for setting in chosen)
    if chosen:
        left_out.append(f"its vectors of texts were made by {names}, which is not known here: they will be means")
    return {}, left_out


def _require_fit(config: Config, tokenizers: Tokenizers, weights: dict[str, Tensor], folder: Path) -> None:
    """Every tensor of the network once, in its shape, and nothing besides."""
    with torch.device("meta"):
        sizes = (tokenizers.source.size, tokenizers.target.size)
        network = build(config.model, *sizes, joint=tokenizers.joint)
    wanted = {name: tuple(parameter.shape) for name, parameter in network.named_parameters()}
    found = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            raise UsageError(
                f"the weights in {folder} do not fit its config.json: {name} should have the shape {wanted.get(name)}, "
                f"not {found.get(name)}"
            )
