"""An imported model as a run: the same folder that training leaves behind, at update 0."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from kente.durable import replace_file
from kente.imports.taking import Taken
from kente.models.summary import describe
from kente.reporting import SILENT, Reporter
from kente.runs import Run, environment
from kente.train.health import Health
from kente.train.kinds import kind_of
from kente.train.plan import Plan
from kente.train.trainer import Progress

ORIGIN, FACTS = "origin", "import.json"
"""Where a run keeps the small files of the model it was, and what it must know besides to become that again."""

CARD = """# {name}

{kind}, imported into [Kente](https://pypi.org/project/kente/) {version} from a {layout} model in Hugging Face's layout.

## Use

```
{use}
```

## What it is

{what}; {parameters:,} parameters; {tokenizer} vocabulary of {vocabulary:,}. Every setting is in `config.toml`.

## What it read

Kente cannot know: see what was published with the model, and under which licence.

## What it is not

It was not trained or measured here.{measured_by}
"""


def write_run(taken: Taken, out: Path | str, name: str, *, force: bool = False, reporter: Reporter = SILENT) -> Run:
    """Write a run folder; `name` is what the model was called by whoever asked for it."""
    run = Run.create(out, taken.config, force=force)
    run.write_json("request.json", {"imported": name, "data": None, "by_hand": [], "recipe": None})
    run.write_json("environment.json", environment())
    with run.lock():
        taken.tokenizers.save(run.path / "tokenizer")
        for file, content in taken.files.items():
            (run.path / ORIGIN / file).parent.mkdir(parents=True, exist_ok=True)
            replace_file(run.path / ORIGIN / file, content)
        run.write_json(f"{ORIGIN}/{FACTS}", taken.facts)
        plan = Plan(0)
        run.append("plan", plan.as_record(0))
        state = {"progress": asdict(Progress()), "health": Health().as_dict(), "plan": asdict(plan), "score": None}
        run.save(0, {"model": taken.weights}, state, keep=1, reporter=reporter)
        run.write_json("prepared.json", {"choices": [], "imported": name, "environment": environment()})
        run.write_text("README.md", _card(run, taken))
    return run


def stated_pooling(run: Run) -> str | None:
    """How an imported encoder made vectors of texts where it comes from, if it said so."""
    path = run.path / ORIGIN / FACTS
    return json.loads(path.read_bytes()).get("pooling") if path.is_file() else None


def _card(run: Run, taken: Taken) -> str:
    kind, facts = kind_of(run), environment()
    use = "\n".join(kind.uses(run.path.name))
    return CARD.format(
        name=run.path.name,
        kind=kind.name.capitalize(),
        version=facts["versions"]["kente"],
        layout=taken.layout,
        use=use,
        measured_by=" `kente evaluate` measures it on text of yours." if "kente evaluate" in use else "",
        what=describe(run.config.model),
        parameters=sum(tensor.numel() for tensor in taken.weights.values()),
        tokenizer=run.config.tokenizer.kind,
        vocabulary=run.config.tokenizer.vocabulary,
    )
