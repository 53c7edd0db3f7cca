"""The model card a run writes about itself: what it is, what it read, how good it was, how to use it."""

from __future__ import annotations

from typing import Any

from kente.config import Config
from kente.runs import Run, Score


def card(
    run: Run, *, facts: dict[str, Any], scores: dict[str, Score], parameters: int, step: int, seconds: float
) -> str:
    """Markdown for RUN/README.md."""
    config: Config = run.config
    name = run.path.name
    rows = [f"| {score.name} | {score.value:.2f} | {score.signature or '-'} |" for score in scores.values()]
    choices = [f"| {c['setting']} | {c['value']} | {c['reason']} |" for c in facts.get("choices", [])]
    dropped = ", ".join(f"{number:,} {reason}" for reason, number in facts["cleaning"]["dropped"].items()) or "none"
    parts = [
        f"# {name}",
        f"A {config.model.kind} translator trained by [Kente](https://pypi.org/project/kente/) "
        f"{facts['environment']['versions']['kente']} in {seconds / 60:.1f} minutes and {step:,} updates.",
        "## Use",
        f'```\nkente translate {name} "a sentence"\nkente evaluate {name} --source F --reference F\n```\n'
        f'```python\nimport kente\nprint(kente.load("{name}").translate(["a sentence"])[0].text)\n```',
        "## What it is",
        f"{parameters:,} parameters; {config.tokenizer.kind} vocabulary of {config.tokenizer.vocabulary:,}"
        f"{' shared by both sides' if config.tokenizer.joint else ' for each side'}; seed {config.train.seed}. "
        "Every setting is in `config.toml`, every checkpoint's hash in its `MANIFEST.json`.",
        "## What it read",
        f"{facts['cleaning']['kept']:,} training pairs (dropped: {dropped}); {facts['validation_pairs']:,} validation pairs, "
        "none of whose source sentences were trained on.",
        "## How good it is",
        "Validation, greedy search; the test set should be scored with `kente evaluate`.\n\n"
        "| score | value | signature |\n|---|---|---|\n" + "\n".join(rows),
        "## What it is not",
        "It translates text like the text it was trained on, one sentence at a time. It may leave out, add or change meaning "
        "without any sign of doubt: have important translations read by someone who knows both languages.",
    ]
    if choices:
        parts += [
            "## Chosen for this corpus and machine",
            "| setting | value | why |\n|---|---|---|\n" + "\n".join(choices),
        ]
    return "\n\n".join(parts) + "\n"
