"""The attention explorer: a page that holds every weight of every model, and works from disk without a network.

What it shows is drawn by the scripts in assets/explorer; without JavaScript it is one map for each model.
"""

from __future__ import annotations

from kente.measure.explored import Explored, Reading
from kente.show.charts import heatmap
from kente.show.packing import record
from kente.show.page import Section, asset
from kente.show.page import page as document
from kente.show.tables import cell, table_html
from kente.show.text import embedded_json, escaped, isolated
from kente.show.views import View, shown

SCRIPTS = ("data", "drawing", "heads", "focus", "steps", "saving", "explorer")
"""Files of assets/explorer, in the order they need each other."""
HONESTY = (
    "Attention weights show where a model looked, not why it wrote what it wrote. A word can matter without being looked at, because "
    "its neighbours carry it along, and be looked at without mattering: models often rest their eyes on a full stop or an end mark.",
    "So beside attention there is a test. “Without a word” leaves out one word of the source at a time and asks how likely each piece of "
    "the same translation is then; and what the model would write instead. That shows what changes when a word is gone. It is not the "
    "whole story either: a sentence without one of its words may be one that the model never learned to read.",
    "Rollout follows weights from layer to layer, counting half of each layer as what stood there before. It is a rough account of "
    "where a vector comes from, and knows nothing of what was done with it.",
)
KEYS = (
    ("← → ↑ ↓", "among the small maps: the next head; in the large map: the next cell"),
    ("1, 2, 3, …", "what to show: the kinds of maps, then words left out"),
    ("m, x, r", "mean or maximum over the heads of the layer; rollout"),
    ("a", "all layers together, or the one layer again"),
    ("s", "sort the heads: by place, entropy, distance, looks back"),
    ("v", "map or lines"),
    ("p", "pieces or words"),
    ("c", "colour from 0 to 1, or up to the strongest weight"),
    ("k", "known alignment, where there is one"),
    (", .", "one step back or on in the decoding; Escape shows it whole again"),
)


def page(explored: Explored) -> str:
    """A whole HTML document."""
    several = len(explored.readings) > 1
    title = "Where the models look" if several else "Where the model looks"
    fallback = "".join(_still(reading) for reading in explored.readings)
    body = (
        f'<div id="explorer"></div><noscript><p class="note">Heads, steps and words left out need JavaScript.</p>{fallback}</noscript>'
        f'<script type="application/json" id="explored">{embedded_json(record(explored))}</script>'
    )
    sections = [
        Section("Attention", body),
        Section("What this shows and what it does not", "".join(f"<p>{escaped(words)}</p>" for words in HONESTY)),
        Section("Keys", table_html(("key", "what it does"), [[cell(k), cell(w)] for k, w in KEYS], (False, False))),
    ]
    scripts = "".join(asset(f"explorer/{name}.js") for name in SCRIPTS)
    script = f'"use strict";\n(() => {{\n{scripts}}})();\n'
    return document(title, sections, lead=_lead(explored), script=script, style=asset("explorer/explorer.css"))


def _lead(explored: Explored) -> str:
    facts = [("source", explored.sentence)]
    if explored.target is not None:
        facts.append(("target, given", explored.target))
    facts.append(("made", f"{explored.created}, kente {explored.version}"))
    entries = "".join(f'<div><dt>{name}</dt><dd dir="auto">{isolated(value)}</dd></div>' for name, value in facts)
    return f'<dl class="facts">{entries}</dl>'


def _still(reading: Reading) -> str:
    """One map of the model, for those without JavaScript."""
    found = shown(reading, View())
    heading = f'<h3>{isolated(reading.name)}</h3><p dir="auto">{escaped(reading.text)}</p>'
    if found is None:
        return heading + f'<p class="note">{escaped(reading.absent["cross"])}</p>'
    return heading + heatmap(found.weights.tolist(), found.rows, found.columns, title=found.title)
