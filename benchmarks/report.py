"""From samples to words: Markdown tables and charts, written between the markers of docs/benchmarks.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import decoding, quality, training
from benchmarks.corpus import Corpus
from benchmarks.fairness import disturbed, uneven_answers, uneven_batches
from benchmarks.plot import Bar, Line, bars, lines
from benchmarks.results import Figure, Results, Sample
from benchmarks.shapes import BATCH_TOKENS, SHAPES

Rows = dict[str, list[Sample]]
NONE = "-"


def rows_of(results: Results, table: str) -> Rows:
    """Samples by variant, in the order in which variants were first measured."""
    rows: Rows = {}
    for sample in results.of(table):
        rows.setdefault(sample["variant"], []).append(sample)
    return rows


def figure(samples: Iterable[Sample], value: str) -> Figure | None:
    return Figure.of(s[value] for s in samples if s.get("error") is None and s.get(value) is not None)


def failure(samples: Sequence[Sample]) -> str | None:
    """What kept a variant out of its table, if no sample of it succeeded."""
    if any(s.get("error") is None for s in samples):
        return None
    return str(samples[-1]["error"])


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines_ = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines_) + "\n"


def notes(complaints: Sequence[str]) -> str:
    return f"\nNot quite even: {'; '.join(complaints)}.\n" if complaints else ""


def versions(rows: Rows) -> str:
    told = {f"{name} {_first(samples, 'version')}" for name, samples in rows.items() if _first(samples, "version")}
    return ", ".join(sorted(told))


def _first(samples: Sequence[Sample], key: str) -> Any:
    return next((s[key] for s in samples if s.get(key) is not None), None)


def gemm_peak(rows: Rows) -> float | None:
    """Billions of operations a second: the best product of either library, over the rounds."""
    found = [max(s["gigaflops"].values()) for s in rows.get(training.GEMM, []) if s.get("gigaflops")]
    return max(found, default=None)


# --- training ---


def training_table(results: Results, shape: str, flop_per_token: float | None, batch_tokens: int) -> str:
    rows = rows_of(results, training.table_name(shape))
    if not rows:
        return ""
    peak = gemm_peak(rows)
    plain = "nn.Transformer" if SHAPES[shape].kind == "transformer" else "torch nn.GRU and nn.GRUCell"
    base = figure(rows.get(plain, []), "tokens_per_second")
    lines_ = []
    for name, samples in rows.items():
        if name != training.GEMM:
            lines_.append(_training_row(name, samples, base, peak, flop_per_token))
    header = (
        shape,
        "real tokens/s, median (lowest to highest)",
        f"x {plain}",
        "padding",
        "peak memory",
        "of GEMM peak",
    )
    told = ""
    if peak and flop_per_token:
        told = (
            f"\nGEMM peak in the same rounds: {peak:.0f} GFLOP/s on {results.about.get('threads', '?')} threads. "
            f"A real token of {shape} needs {flop_per_token / 1e6:.2f} MFLOP in training.\n"
        )
    return markdown(header, lines_) + told + notes([*uneven_batches(rows, batch_tokens), *disturbed(rows)])


def _training_row(
    name: str, samples: list[Sample], base: Figure | None, peak: float | None, flop_per_token: float | None
) -> list[str]:
    if error := failure(samples):
        return [name, error, NONE, NONE, NONE, NONE]
    speed = figure(samples, "tokens_per_second")
    assert speed is not None
    padding, memory = figure(samples, "padding"), figure(samples, "peak_megabytes")
    share = speed.median * flop_per_token / (1e9 * peak) if peak and flop_per_token else None
    return [
        name,
        speed.text(),
        f"{speed.median / base.median:.2f}" if base else NONE,
        f"{100 * padding.median:.0f} %" if padding else "?",
        f"{memory.median / 1000:.1f} GB" if memory else NONE,
        f"{100 * share:.0f} %" if share else NONE,
    ]


# --- decoding ---


def decoding_table(results: Results, name: str) -> str:
    rows = rows_of(results, f"decoding {name}")
    if not rows:
        return ""
    lines_ = []
    for variant, samples in rows.items():
        if error := failure(samples):
            lines_.append([variant, error, NONE, NONE, NONE, NONE])
            continue
        speed, memory = figure(samples, "sentences_per_second"), figure(samples, "peak_megabytes")
        assert speed is not None
        tokens, score = _first(samples, "output_tokens"), _first(samples, "bleu")
        lines_.append(
            [
                variant,
                speed.text(),
                f"{tokens:,}" if tokens else NONE,
                f"{score:.2f}" if score is not None else NONE,
                f"{memory.median / 1000:.1f} GB" if memory else NONE,
                _mode(samples),
            ]
        )
    header = (name, "sentences/s, median (lowest to highest)", "tokens written", "BLEU", "peak memory", "how")
    return markdown(header, lines_) + notes([*uneven_answers(rows, "Kente"), *disturbed(rows)])


def _mode(samples: Sequence[Sample]) -> str:
    mode = _first(samples, "mode")
    if not mode:
        return ""
    return f"{mode['workers']} workers x {mode['threads']} threads, {mode['batch']} {mode['batch_type']}"


def latency_table(results: Results) -> str:
    tables = {name: rows_of(results, f"latency {name}") for name in decoding.BEAMS}
    starts = rows_of(results, "cold start")
    if not any(tables.values()) and not starts:
        return ""
    names = list(dict.fromkeys(name for rows in (*tables.values(), starts) for name in rows))
    lines_ = []
    for name in names:
        cells = [name]
        for rows in tables.values():
            for value in ("p50", "p95"):
                found = figure(rows.get(name, []), value)
                cells.append(f"{found.median:.1f}" if found else NONE)
        started = figure(starts.get(name, []), "seconds")
        cells.append(started.text(2) if started else failure(starts[name]) or NONE if name in starts else NONE)
        lines_.append(cells)
    beams = [f"{name} {share}, ms" for name in decoding.BEAMS for share in ("p50", "p95")]
    return markdown(("one sentence at a time", *beams, "cold start to first answer, s"), lines_)


# --- quality ---


def quality_points(results: Results) -> dict[str, list[dict[str, float]]]:
    """Points by system: Kente's runs of their own are one curve."""
    curves: dict[str, list[dict[str, float]]] = {}
    for variant, samples in rows_of(results, quality.TABLE).items():
        for sample in samples:
            curves.setdefault(variant.partition(",")[0], []).extend(sample.get("points") or [])
    return {name: sorted(points, key=lambda p: p["minutes"]) for name, points in curves.items()}


def quality_table(results: Results) -> str:
    curves = quality_points(results)
    minutes = sorted({point["minutes"] for points in curves.values() for point in points})
    if not curves:
        return ""
    lines_ = []
    for name, points in curves.items():
        by_minutes = {point["minutes"]: point for point in points}
        cells = [by_minutes.get(mark) for mark in minutes]
        lines_.append([name, *(_quality_cell(point) for point in cells)])
    return markdown(("validation BLEU, greedy", *(f"{mark:g} min" for mark in minutes)), lines_)


def _quality_cell(point: dict[str, float] | None) -> str:
    if point is None:
        return NONE
    test = f"; test_2016, beam 5: {point['test_bleu']:.1f}" if "test_bleu" in point else ""
    return f"{point['bleu']:.1f} ({point['updates']:,.0f} updates{test})"


# --- growth ---


def growth_series(results: Results, table: str) -> dict[str, list[tuple[str, Figure, Figure]]]:
    """By system: (what it grew to, tokens a second, peak memory)."""
    series: dict[str, list[tuple[str, Figure, Figure]]] = {}
    for variant, samples in rows_of(results, table).items():
        speed, memory = figure(samples, "tokens_per_second"), figure(samples, "peak_megabytes")
        if speed and memory:
            system, _, grown = variant.partition(", ")
            series.setdefault(system, []).append((grown, speed, memory))
    return series


def growth_table(results: Results, corpus: Corpus | None) -> str:
    parts = []
    peak = gemm_peak(rows_of(results, "growth size"))
    heads = {
        "growth length": "tokens in a sentence",
        "growth corpus": "corpus",
        "growth size": "model",
    }
    for table, head in heads.items():
        lines_ = [
            [f"{system}, {grown}", speed.text(), f"{1e6 / speed.median:.0f}", f"{memory.median / 1000:.2f} GB"]
            for system, points in growth_series(results, table).items()
            for grown, speed, memory in points
        ]
        header = [head, "real tokens/s, median (lowest to highest)", "microseconds a token", "peak memory"]
        if table == "growth size" and peak and corpus:
            header.append("of GEMM peak")
            for line, (grown, speed, _) in zip(lines_, growth_series(results, table)["Kente"], strict=True):
                share = speed.median * corpus.flop_per_token(SHAPES[grown]) / (1e9 * peak)
                line.append(f"{100 * share:.0f} %")
        if lines_:
            parts.append(markdown(header, lines_))
    return "\n".join(parts)


# --- charts ---


def charts(results: Results) -> dict[str, str]:
    """File name -> SVG, for every table that has samples."""
    drawn = {}
    for shape in ("tiny", "small", "gru"):
        name = training.table_name(shape)
        if rows := _bar_rows(rows_of(results, name), "tokens_per_second"):
            drawn[f"bench-training-{shape}.svg"] = bars(f"Training, {shape}", "real tokens a second", rows)
    for name in decoding.BEAMS:
        if rows := _bar_rows(rows_of(results, f"decoding {name}"), "sentences_per_second"):
            file = f"bench-decoding-{name.replace(' ', '')}.svg"
            drawn[file] = bars(f"Decoding, {name}", "sentences a second", rows)
    curves = quality_points(results)
    if any(curves.values()):
        series = [Line(name, [(p["minutes"], p["bleu"]) for p in points]) for name, points in curves.items()]
        drawn["bench-quality.svg"] = lines("Quality against minutes", "minutes", "validation BLEU, greedy", series)
    lengths = growth_series(results, "growth length")
    if any(len(points) > 1 for points in lengths.values()):
        series = [
            Line(name, [(float(grown), 1e6 / speed.median) for grown, speed, _ in points])
            for name, points in lengths.items()
        ]
        title = "Cost of a token against the length of its sentence"
        drawn["bench-length.svg"] = lines(title, "tokens in a sentence", "microseconds a token", series, log=True)
    return drawn


def _bar_rows(rows: Rows, value: str) -> list[Bar]:
    found = [(name, figure(samples, value)) for name, samples in rows.items()]
    made = [Bar(name, f.median, f.low, f.high, name.startswith("Kente")) for name, f in found if f is not None]
    return sorted(made, key=lambda bar: -bar.value)


# --- the page ---


def machine(results: Results) -> str:
    about = results.about
    if not about:
        return ""
    told = [
        f"Measured on {about['processor']}, {about['cores']} cores, {about['memory_gb']} GB, {about['platform']}.",
        f"Python {about['python']}, torch {about['torch']}; {about['threads']} threads; float32 unless a row says otherwise; {about['rounds']} rounds.",
        f"Kente {about['kente']}.",
    ]
    peers: dict[str, str] = {}
    for sample in results.samples:
        if sample.get("version") and sample["peer"] not in ("kente", "plain"):
            peers[sample["peer"]] = sample["version"]
    told.append(
        "Peers: " + ", ".join(f"{name} {version}" for name, version in sorted(peers.items())) + "." if peers else ""
    )
    parts: dict[tuple[str, ...], list[str]] = {}
    for part, when in about.get("parts", {}).items():
        parts.setdefault((when["command"], when["date"], when["commit"]), []).append(part)
    commands = [
        f"{command}    # {', '.join(p)}: {date}, commit {commit}" for (command, date, commit), p in parts.items()
    ]
    return " ".join(filter(None, told)) + "\n\n```\n" + "\n".join(commands) + "\n```\n"


def sections(results: Results, corpus: Corpus | None) -> dict[str, str]:
    """Marker -> Markdown."""
    flop = {name: corpus.flop_per_token(SHAPES[name]) if corpus else None for name in ("tiny", "small", "gru")}
    tokens = results.about.get("batch_tokens", BATCH_TOKENS)
    return {
        "machine": machine(results),
        "training": "\n".join(filter(None, (training_table(results, name, flop[name], tokens) for name in flop))),
        "decoding": "\n".join(
            filter(None, (decoding_table(results, name) for name in (*decoding.BEAMS, decoding.ONE_RULE)))
        ),
        "latency": latency_table(results),
        "quality": quality_table(results),
        "growth": growth_table(results, corpus),
    }


def write(page: Path, results: Results, corpus: Corpus | None) -> None:
    """Put tables and charts into the page; what is outside its markers stays, and so does a section without samples."""
    text = page.read_text(encoding="utf-8")
    drawn = charts(results)
    for name, content in sections(results, corpus).items():
        if content:
            pictures = [
                file
                for file in drawn
                if file.startswith(f"bench-{name}") or (name, file) == ("growth", "bench-length.svg")
            ]
            images = "".join(f"\n![{_alt(drawn[file])}](images/{file})\n" for file in pictures)
            text = between(text, name, content + images)
    page.write_text(text, encoding="utf-8")
    (page.parent / "images").mkdir(exist_ok=True)
    for file, svg in drawn.items():
        (page.parent / "images" / file).write_text(svg, encoding="utf-8")


def _alt(svg: str) -> str:
    found = re.search(r'aria-label="([^"]*)"', svg)
    return found[1].replace("[", "(").replace("]", ")") if found else ""


def between(text: str, name: str, content: str) -> str:
    """The text with what stands between the markers of `name` replaced."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    if begin not in text or end not in text:
        raise ValueError(f"the page has no markers {begin} and {end}")
    before, rest = text.split(begin, 1)
    after = rest.split(end, 1)[1]
    return f"{before}{begin}\n{content.rstrip()}\n{end}{after}"


def plain_text(results: Results, corpus: Corpus | None) -> str:
    """All sections one after the other, for the terminal."""
    return "\n\n".join(content.strip() for content in sections(results, corpus).values() if content)
