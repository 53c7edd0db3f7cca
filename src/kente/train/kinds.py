"""What a run is good for: what its kind is called, what makes one and what one does with it. No torch in here."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from kente.config import Config
from kente.errors import ConfigError, RunError
from kente.runs import Run


@dataclass(frozen=True)
class Kind:
    """A kind of run; RUN in its commands stands for the folder."""

    name: str
    models: tuple[str, ...]
    """The architectures (`model.kind`) that can learn it."""
    made_by: str
    used_by: tuple[str, ...]

    def uses(self, path: Path | str) -> list[str]:
        """Commands that fit a run of this kind."""
        return [command.replace("RUN", shlex.quote(str(path))) for command in self.used_by]


READERS = ("masked", "transformer", "recurrent", "lstmn", "conv", "language", "recurrent-language", "skip-gram")
"""Architectures with an encoder that something can stand upon."""

KINDS = {
    "translation": Kind(
        "a translator",
        ("transformer", "recurrent", "lstmn", "conv"),
        "kente train --source F --target F --out RUN",
        ('kente translate RUN "..."', "kente evaluate RUN --source F --reference F"),
    ),
    "causal": Kind(
        "a language model",
        ("language", "recurrent-language"),
        "kente pretrain --text F --kind causal --out RUN",
        ('kente generate RUN --prompt "..."', "kente evaluate RUN --text F"),
    ),
    "masked": Kind(
        "a masked encoder",
        ("masked",),
        "kente pretrain --text F --kind masked --out RUN",
        (
            "kente evaluate RUN --text F",
            "kente classify train --encoder RUN --labelled F --out NEW",
            "kente embed RUN --text F --out vectors.npy",
        ),
    ),
    "words": Kind(
        "a table of word vectors",
        ("skip-gram",),
        "kente pretrain --text F --kind words --out RUN",
        ('kente match RUN "some word"', "kente embed RUN --text F --out vectors.npy"),
    ),
    "classification": Kind(
        "a text classifier",
        READERS,
        "kente classify train --labelled F --out RUN",
        ('kente classify predict RUN "..."', "kente classify report RUN --labelled F"),
    ),
    "similarity": Kind(
        "a sentence encoder",
        READERS,
        "kente contrast --encoder ENCODER --pairs F --out RUN",
        (
            "kente embed RUN --text F --out vectors.npy",
            "kente match RUN --corpus F --queries F",
            "kente cluster RUN --text F",
        ),
    ),
    "nodes": Kind(
        "a network over a graph",
        ("graph",),
        "kente graph train --nodes F --edges F --out RUN",
        ("kente graph predict RUN --nodes F --edges F", "kente graph look RUN"),
    ),
}
"""By the run's `train.task`."""


def kind_of(run: Run) -> Kind:
    """The kind of a run; of an encoder that came without a head that fills gaps, without the commands that need one."""
    kind = KINDS[run.config.train.task]
    if getattr(run.config.model, "gaps", True):
        return kind
    return replace(kind, used_by=tuple(command for command in kind.used_by if not command.startswith("kente evaluate")))


def check_model(config: Config) -> None:
    """Refuse settings whose architecture cannot learn their task."""
    kind = KINDS[config.train.task]
    if config.model.kind not in kind.models:
        raise ConfigError(
            f"model.kind = {config.model.kind} cannot become {kind.name}; set it to one of {', '.join(kind.models)}"
        )


SMOOTHED = ("translation", "causal", "classification", "nodes")
"""Tasks whose loss can spread some probability over the other answers."""
UNROUNDED = ("nodes", "words")
"""Tasks whose networks have no products that are rounded."""


def check_use(config: Config, given: Collection[str]) -> None:
    """Refuse settings that nobody reads while this task is learnt; `given` are those that were not left alone."""
    train, name = config.train, KINDS[config.train.task].name
    if train.label_smoothing and train.task not in SMOOTHED:
        raise ConfigError(
            f"train.label_smoothing = {train.label_smoothing:g} is nothing that {name} learns with; leave it out"
        )
    if train.precision != "float32" and train.task in UNROUNDED:
        raise ConfigError(f"train.precision = {train.precision}: {name} has no products that are rounded; leave it out")
    sampling = config.tokenizer.sampling
    if sampling and "tokenizer.sampling" in given and train.task != "translation":
        raise ConfigError(
            f"tokenizer.sampling = {sampling:g} is for translators; {name} reads text that is cut the same way each time; leave it out"
        )


def require(run: Run, verb: str, *tasks: str) -> Run:
    """The run itself, if it is of a kind that `verb` can use."""
    if run.config.train.task in tasks:
        return run
    is_now, wanted = kind_of(run), [KINDS[task] for task in tasks]
    raise RunError(
        f"{run.path} is {is_now.name}; {verb} needs {' or '.join(kind.name for kind in wanted)}: `{wanted[0].made_by}` makes one. "
        f"With this run: {'    '.join(is_now.uses(run.path))}"
    )
