"""The model card a run writes about itself: what it is, what it read, how good it was, how to use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kente.config import Config
from kente.runs import Run, Score


@dataclass(frozen=True)
class About:
    """What the card of one kind of model says: sentences, and commands as Markdown."""

    what: str
    """"A transformer translator": begins the first sentence."""
    use: str
    vocabulary: str
    read: str
    measured: str
    limits: str


def card(
    run: Run,
    about: About,
    *,
    facts: dict[str, Any],
    scores: dict[str, Score],
    parameters: int,
    step: int,
    seconds: float,
) -> str:
    """Markdown for RUN/README.md."""
    config: Config = run.config
    rows = [f"| {score.name} | {score.value:.2f} | {score.signature or '-'} |" for score in scores.values()]
    choices = [f"| {c['setting']} | {c['value']} | {c['reason']} |" for c in facts.get("choices", [])]
    parts = [
        f"# {run.path.name}",
        f"{about.what} trained by [Kente](https://pypi.org/project/kente/) "
        f"{facts['environment']['versions']['kente']} in {seconds / 60:.1f} minutes and {step:,} updates.",
        "## Use",
        about.use,
        "## What it is",
        f"{parameters:,} parameters; {about.vocabulary}; seed {config.train.seed}. "
        "Every setting is in `config.toml`, every checkpoint's hash in its `MANIFEST.json`.",
        "## What it read",
        about.read,
        "## How good it is",
        f"{about.measured}\n\n| score | value | signature |\n|---|---|---|\n" + "\n".join(rows),
        "## What it is not",
        about.limits,
    ]
    if choices:
        parts += [
            "## Chosen for this corpus and machine",
            "| setting | value | why |\n|---|---|---|\n" + "\n".join(choices),
        ]
    return "\n\n".join(parts) + "\n"
