"""The page of a graph: whom its nodes look at. A node stands in the middle, its neighbours around it, and lines are as thick as the weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from kente.measure.graphs import LayerLook, Neighbour, Neighbourhood
from kente.show.charts import bar_chart, heatmap, table
from kente.show.downloads import download
from kente.show.page import Section, page
from kente.show.text import cut, escaped, isolated

DRAWN = 24
"""Neighbours in a picture at most; the rest are counted."""
WIDTH, HEIGHT, RADIUS = 640, 460, 165
THICKEST = 16.0
LONGEST = 22
"""Letters of a name."""
COLOURS = 8
LIKELIEST = 5
"""Classes whose probability is shown."""


def graph_page(
    title: str, nodes: Sequence[tuple[Neighbourhood, str]], layers: Sequence[LayerLook], lead: Sequence[str] = ()
) -> str:
    """A whole HTML document. Each node comes with the reason why it is shown, which may be empty."""
    colours = {name: place % COLOURS for place, name in enumerate(sorted(_classes(nodes)))}
    findings = "".join(f"<li>{escaped(look.sentence())}</li>" for look in layers)
    facts = "".join(f"<p>{isolated(line)}</p>" for line in lead)
    sections = [Section(_heading(node, reason), _node(node, colours)) for node, reason in nodes]
    record = {"nodes": [node.as_dict() for node, _ in nodes], "layers": [vars(look) for look in layers]}
    numbers = download(record, name="neighbourhoods.json", words="Download the numbers")
    sections.append(
        Section("Numbers", f"<p>Every weight on this page, of every layer and head, in one JSON file.</p>{numbers}")
    )
    return page(title, sections, lead=facts + (f'<ul class="findings">{findings}</ul>' if findings else ""))


def _classes(nodes: Sequence[tuple[Neighbourhood, str]]) -> set[str]:
    seen = {name for node, _ in nodes for name in (node.predicted, node.label) if name}
    return seen | {_class(neighbour) for node, _ in nodes for neighbour in node.neighbours}


def _class(neighbour: Neighbour) -> str:
    return neighbour.label or neighbour.predicted


def _heading(node: Neighbourhood, reason: str) -> str:
    return cut(node.name, 60) + (f": {reason}" if reason else "")


def _node(node: Neighbourhood, colours: Mapping[str, int]) -> str:
    truth = f"its label is {node.label}" if node.label else "it has no label"
    words = f"Taken for {node.predicted} with probability {node.probabilities[node.predicted]:.2f}; {truth}."
    pictures = "".join(neighbourhood_picture(node, layer, colours) for layer in range(node.layers))
    likeliest = list(node.probabilities.items())[:LIKELIEST]
    bars = bar_chart(likeliest, title="Probability of its classes", y="the likeliest of them")
    return f'<p>{isolated(words)}</p><div class="pair">{pictures}</div>{_heads(node)}{bars}{_table(node)}'


def neighbourhood_picture(node: Neighbourhood, layer: int, colours: Mapping[str, int]) -> str:
    """The node in the middle, its neighbours around it from the strongest on, clockwise; weights are means over heads."""
    others = sorted((n for n in node.neighbours if not n.itself), key=lambda n: -n.mean(layer))
    drawn = others[:DRAWN]
    own = next((n.mean(layer) for n in node.neighbours if n.itself), None)
    places = [_around(place, len(drawn)) for place in range(len(drawn))]
    lines = "".join(
        f'<path class="look" d="M0 0L{x:.1f} {y:.1f}" stroke-width="{_thickness(n.mean(layer)):.2f}"/>'
        for n, (x, y) in zip(drawn, places, strict=True)
    )
    ring = "" if own is None else f'<circle class="look" r="20" stroke-width="{_thickness(own):.2f}"/>'
    dots = "".join(_dot(n, layer, spot, colours) for n, spot in zip(drawn, places, strict=True))
    centre = f'<circle class="node s{colours[node.predicted]}" r="13"><title>{escaped(node.name)}</title></circle>'
    heads = len(node.neighbours[0].weights[layer])
    title = f"Layer {layer + 1}, mean of {heads} heads" if heads > 1 else f"Layer {layer + 1}"
    words = "; ".join(f"{n.name} {n.mean(layer):.3f}" for n in drawn[:5])
    rest = sum(n.mean(layer) for n in others[DRAWN:])
    note = "" if own is None else f"Itself {own:.3f}, the ring. "
    note += f"{len(others) - len(drawn)} more neighbours share {rest:.3f}." if len(others) > len(drawn) else ""
    label = f"{title}: {node.name} looks at {len(others)} neighbours. {words}"
    keys = {_class(n): colours[_class(n)] for n in drawn} | {node.predicted: colours[node.predicted]}
    legend = "".join(
        f'<li class="key"><svg class="sign" viewBox="-7 -7 14 14" width="14" height="14" aria-hidden="true">'
        f'<circle class="node s{colour}" r="6"/></svg>{isolated(name)}</li>'
        for name, colour in sorted(keys.items())
    )
    return (
        f'<figure class="chart"><figcaption>{escaped(title)}</figcaption><ul class="legend">{legend}</ul>'
        f'<svg class="drawing" viewBox="{-WIDTH / 2:g} {-HEIGHT / 2:g} {WIDTH} {HEIGHT}" role="img" aria-label="{escaped(label)}">'
        f"{lines}{ring}{centre}{dots}</svg>" + (f'<p class="note">{escaped(note)}</p>' if note else "") + "</figure>"
    )


def _around(place: int, count: int) -> tuple[float, float]:
    """Clockwise from the top."""
    angle = 2 * math.pi * (place + 0.5) / count - math.pi / 2
    return RADIUS * math.cos(angle), RADIUS * math.sin(angle)


def _thickness(weight: float) -> float:
    """In proportion to the weight, and never invisible."""
    return max(0.4, THICKEST * min(max(weight, 0.0), 1.0))


def _dot(neighbour: Neighbour, layer: int, spot: tuple[float, float], colours: Mapping[str, int]) -> str:
    x, y = spot
    anchor, away = ("start", 12) if x >= 0 else ("end", -12)
    words = escaped(f"{neighbour.name}, {_class(neighbour)}: {neighbour.mean(layer):.3f}")
    return (
        f'<g transform="translate({x:.1f} {y:.1f})"><circle class="node s{colours[_class(neighbour)]}" r="8"><title>{words}</title></circle>'
        f'<text x="{away}" text-anchor="{anchor}">{escaped(cut(neighbour.name, LONGEST))} {neighbour.mean(layer):.2f}</text></g>'
    )


def _heads(node: Neighbourhood) -> str:
    """Every head of every layer over the strongest neighbours."""
    shown = node.neighbours[: DRAWN + 1]
    rows = [(layer, head) for layer in range(node.layers) for head in range(len(shown[0].weights[layer]))]
    weights = [[n.weights[layer][head] for n in shown] for layer, head in rows]
    names = [f"layer {layer + 1}, head {head + 1}" for layer, head in rows]
    columns = [f"{n.name} (itself)" if n.itself else n.name for n in shown]
    drawing = heatmap(weights, names, columns, title="Every head")
    return f"<details><summary>Every head</summary>{drawing}</details>"


def _table(node: Neighbourhood) -> str:
    header = ["neighbour", "id", "label", "taken for", *(f"layer {layer + 1}" for layer in range(node.layers))]
    rows = [
        [
            f"{n.name} (itself)" if n.itself else n.name,
            n.id,
            n.label or "",
            n.predicted,
            *(f"{n.mean(layer):.3f}" for layer in range(node.layers)),
        ]
        for n in node.neighbours
    ]
    count = f"{len(rows):,} weights in numbers, means over heads"
    return f"<details><summary>{count}</summary>{table(header, rows)}</details>"
