"""adapt: from a translator and other text to a translator that knows both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from kente.api.corpora import Data
from kente.api.descent import require_old_text
from kente.api.inputs import require_elsewhere
from kente.api.lifecycle import TrainResult, launch
from kente.api.loading import require_languages
from kente.config import Config, TransferConfig
from kente.configfile import override
from kente.data.growth import require_growable
from kente.errors import UsageError
from kente.models.build import build
from kente.runs import Run
from kente.train.budget import automatic
from kente.train.kinds import require
from kente.train.transfer import restrict

FREE = ("model.dropout", "model.attention_dropout", "tokenizer.sampling", "tokenizer.tags")
"""Settings of model and tokenizer that may change while weights and words stay what they are."""


def adapt(
    run: Path | str,
    data: Data,
    out: Path | str,
    *,
    validation: Data | None = None,
    also: Sequence[Data] = (),
    old: Data | None = None,
    freeze: str = "",
    lora: int = 0,
    replay: float = 0.0,
    grow_vocabulary: int = 0,
    settings: Sequence[str] = (),
    **how: Any,
) -> TrainResult:
    """Go on from the weights of a translator with other text: another domain, or another language. The run itself stays as it is.

    `freeze` names parts that do not learn, `lora` is the rank of maps that learn in place of the fixed ones, `replay` the share of batches
    that repeat what the run was trained on (kept in its folder, or `old`), `grow_vocabulary` how many pieces of the new text are added.
    Old and new text are scored before and after; with replay the best weights are those best on both. `how` as for `train`.
    """
    parent = require(Run.open(run), "kente adapt", "translation")
    if how.pop("recipe", None):
        raise UsageError("adapting keeps the architecture and settings of the run; leave out --recipe")
    require_elsewhere(out, "to adapt, which stays as it is", parent.path)
    for setting in (assignment.partition("=")[0].strip() for assignment in settings):
        if setting.startswith(("model.", "tokenizer.")) and setting not in FREE:
            raise UsageError(
                f"{setting} cannot change while adapting: the weights of {run} were trained with it. Of [model] and [tokenizer] "
                f"{', '.join(FREE)} may"
            )
    for given in filter(None, (data, validation, old, *also)):
        next(iter(given.corpus()), None)  # a file that cannot be read is said before a folder is made
    request = {
        "parent": str(parent.path.resolve()),
        "data": data.as_dict(),
        "validation": validation.as_dict() if validation else None,
        "also": [more.as_dict() for more in also],
        "old": old.as_dict() if old else None,
    }
    asked = {"freeze": freeze, "lora": lora, "replay": replay, "grow_vocabulary": grow_vocabulary}
    given_settings = [*settings, *(f"transfer.{name}={value}" for name, value in asked.items() if value)]
    base = _base(parent.config)
    _require_possible(parent, old, override(base, given_settings))
    return launch(base, out, request, settings=given_settings, **how)


def _require_possible(parent: Run, old: Data | None, config: Config) -> None:
    """Whatever can be known to fail is said before a folder is made, or one that is there replaced."""
    tokenizers = parent.tokenizers(parent.chosen())
    decode, transfer = config.decode, config.transfer
    require_languages(parent, tokenizers.speaking(decode.source_language, decode.target_language))
    require_old_text(parent, old, config)
    if transfer.grow_vocabulary:
        require_growable(tokenizers)
    with torch.device("meta"):
        sizes = tokenizers.source.size, tokenizers.target.size
        restrict(build(config.model, *sizes, joint=tokenizers.joint), transfer)


OF_A_NEW_RUN = ("seed", "updates", "minutes", "validate_every", "save_every", "patience", "average", "precision")


def _base(config: Config) -> Config:
    """The settings of the run, but those of how long and how fast it learns as for a new one."""
    fresh = automatic()
    train = replace(
        config.train,
        **{name: getattr(fresh.train, name) for name in OF_A_NEW_RUN},
        begin="random",
    )
    batches = replace(config.batches, tokens=max(fresh.batches.tokens, config.batches.max_length), accumulation=1)
    return replace(config, optimiser=fresh.optimiser, train=train, batches=batches, transfer=TransferConfig())
