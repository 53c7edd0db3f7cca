"""The page of a comparison: what was compared, what was found, and everything one needs to doubt it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kente.measure.comparison import Comparison
from kente.show.charts import table
from kente.show.downloads import download
from kente.show.page import Section, page
from kente.show.pictures import by_length, learning_curves
from kente.show.samples import sample_sentences
from kente.show.systems import systems_table
from kente.show.text import escaped, isolated

DIGITS = 3
"""Of attention weights: enough to see, and a third of the bytes."""


def comparison_page(comparison: Comparison) -> str:
    """A whole HTML document that needs nothing beside it."""
    sections = [Section("Systems", systems_table(comparison))]
    if comparison.buckets:
        sections.append(Section("Long sentences", by_length(comparison)))
    if any(system.curve for system in comparison.systems):
        sections.append(Section("Learning curves", learning_curves(comparison)))
    if comparison.samples:
        sections.append(Section("Samples", sample_sentences(comparison)))
    sections.append(Section("Settings that differ", _settings(comparison)))
    sections.append(Section("Environment", _environment(comparison.environment)))
    sections.append(Section("Numbers", _numbers(comparison)))
    return page(comparison.title, sections, lead=_lead(comparison))


def _lead(comparison: Comparison) -> str:
    """What was compared, and the findings as sentences."""
    facts = (
        ("corpus", comparison.corpus),
        ("test", comparison.test),
        ("budget", comparison.budget),
        ("decoding", comparison.decoding),
        ("made", comparison.created[:16].replace("T", " ")),
    )
    entries = "".join(f"<div><dt>{name}</dt><dd>{isolated(value)}</dd></div>" for name, value in facts if value)
    findings = "".join(f"<li>{isolated(finding)}</li>" for finding in comparison.findings)
    return f'<dl class="facts">{entries}</dl>' + (f'<ul class="findings">{findings}</ul>' if findings else "")


def _settings(comparison: Comparison) -> str:
    names = [system.name for system in comparison.systems]
    rows = [["run", *(system.run for system in comparison.systems)]]
    for setting, values in comparison.settings.items():
        rows.append([setting, *(_value(values[name]) if name in values else "–" for name in names)])
    note = "" if comparison.settings else "The systems do not differ in any setting."
    return table(["setting", *names], rows, note=note)


def _environment(environment: Mapping[str, Any]) -> str:
    rows = [[name, _value(value)] for name, value in environment.items()]
    return table(["what", "value"], rows)


def _value(value: Any) -> str:
    """A setting as its file would write it."""
    match value:
        case str():
            return value
        case float():
            return f"{value:.12g}"  # 0.3, and not what is left of it after an addition
    return json.dumps(value, ensure_ascii=False, default=str)


def _numbers(comparison: Comparison) -> str:
    record = comparison.as_dict()
    for sample in record["samples"]:
        for answer in sample["answers"]:
            if answer["attention"]:
                weights = answer["attention"]["weights"]
                answer["attention"]["weights"] = [[round(weight, DIGITS) for weight in row] for row in weights]
    words = f"Everything on this page is in one JSON file; attention weights are rounded to {DIGITS} digits."
    return f"<p>{escaped(words)}</p>{download(record, name='comparison.json', words='Download the numbers')}"
