"""Pages and charts: round numbers, honest gaps, nothing fetched, and no text that can become markup."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import runpy
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kente.measure.comparison import Comparison
from kente.show.axes import Axis, axis, round_step, short, thinned, tick_labels
from kente.show.charts import COLOURS, MARKS, Series, bar_chart, heatmap, line_chart, plot, sign, table
from kente.show.comparison import comparison_page
from kente.show.downloads import finite
from kente.show.page import Section, page
from kente.show.text import breadth, cut, embedded_json, escaped, visible

MADE_UP = runpy.run_path(str(Path(__file__).parents[1] / "browser" / "made_up.py"))
HOSTILE: tuple[str, ...] = MADE_UP["HOSTILE"]
VOID = {"br", "input", "link", "meta", "path", "rect"}
finite_floats = st.floats(allow_nan=False, allow_infinity=False)


def made_up(**wishes: Any) -> Comparison:
    return MADE_UP["comparison"](**wishes)


class Reader(HTMLParser):
    """Reads markup as a browser would: every element with its attributes, all text, and whatever is closed in the wrong order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[tuple[str, str]] = []
        self.faults: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.faults += [f"{tag} is never closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> closes something else")

    def handle_data(self, data: str) -> None:
        self.words.append((self._open[-1] if self._open else "", data))

    def all(self, tag: str, kind: str = "") -> list[dict[str, str]]:
        return [a for name, a in self.elements if name == tag and (not kind or kind in a.get("class", "").split())]

    def text(self, tag: str) -> list[str]:
        return [words for owner, words in self.words if owner == tag]


def lines_of(chart: str) -> list[str]:
    """The path of each line that is drawn."""
    drawn = chart[chart.index('class="drawing"') :]
    return re.findall(r'<path class="line" d="([^"]*)"', drawn)


def marks_of(chart: str) -> int:
    drawn = chart[chart.index('class="drawing"') :]
    return drawn.count("translate(")


# ---------------------------------------------------------------- axes


@given(st.lists(finite_floats, min_size=1, max_size=8), st.booleans(), st.booleans())
def test_an_axis_holds_its_values_between_few_rising_round_ticks(values: list[float], log: bool, tight: bool) -> None:
    found = axis(values, log=log, tight=tight)
    ticks = [tick for tick, _ in found.ticks]
    assert 1 <= len(ticks) <= 12 and ticks == sorted(set(ticks))
    assert found.low < found.high
    for value in values:
        if abs(value) <= 1e300 and (not log or value >= 1e-300):
            assert -1e-6 <= found.place(value) <= 1 + 1e-6


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([0, 97], ["0", "20", "40", "60", "80", "100"]),
        ([0.0, 1.0], ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ([-3, 4], ["−4", "−2", "0", "2", "4"]),
        ([0, 2200], ["0", "500", "1,000", "1,500", "2,000", "2,500"]),
        ([0, 100_000], ["0", "20k", "40k", "60k", "80k", "100k"]),
        ([0, 4e-7], ["0", "1e-7", "2e-7", "3e-7", "4e-7"]),
        ([1000.001, 1000.004], ["1,000.001", "1,000.002", "1,000.003", "1,000.004"]),
        ([2e20, 4e20], ["2e20", "2.5e20", "3e20", "3.5e20", "4e20"]),
    ],
)
def test_ticks_are_round_and_say_no_more_digits_than_they_need(values: list[float], labels: list[str]) -> None:
    assert [label for _, label in axis(values).ticks] == labels


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([1, 1000], ["1", "10", "100", "1,000"]),
        ([20, 90], ["20", "50", "100"]),
        ([1e-9, 1e9], ["1e-9", "1e-6", "0.001", "1", "1,000", "1M", "1G"]),
        ([7], ["5", "10"]),
        ([10], ["5", "10", "20"]),
    ],
)
def test_log_ticks_are_powers_of_ten_or_one_two_five_between(values: list[float], labels: list[str]) -> None:
    found = axis(values, log=True)
    assert [label for _, label in found.ticks] == labels


def test_a_log_axis_gives_equal_room_to_equal_factors() -> None:
    found = axis([1, 100], log=True)
    assert found.place(10) == pytest.approx(0.5)


def test_a_tight_axis_ends_with_its_largest_value_and_has_no_tick_beyond() -> None:
    found = axis([100, 2200], tight=True)
    assert found.high == 2200 and [label for _, label in found.ticks] == ["0", "500", "1,000", "1,500", "2,000"]


@given(st.floats(min_value=1e-200, max_value=1e200))
def test_a_round_step_is_the_least_round_number_that_suffices(wanted: float) -> None:
    step = round_step(wanted)
    mantissa = step / 10.0 ** math.floor(math.log10(step) + 1e-9)
    assert step >= wanted and step <= 2.5 * wanted
    assert min(abs(mantissa - digit) for digit in (1, 2, 2.5, 5, 10)) < 1e-6


def test_labels_are_left_out_evenly_where_they_would_touch() -> None:
    ticks = [(float(place), f"label{place}") for place in range(10)]
    assert [label for _, label in thinned(ticks, 200)] == [label for _, label in ticks]
    kept = [tick for tick, label in thinned(ticks, 40) if label]
    assert kept == [0.0, 2.0, 4.0, 6.0, 8.0] and len(thinned(ticks, 40)) == 10


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0"),
        (31.2349, "31.23"),
        (-0.5, "−0.5"),
        (12345.6, "12,346"),
        (1e-9, "1e-9"),
        (math.nan, "nan"),
        (1e300, "1e300"),
    ],
)
def test_a_value_for_reading_has_four_digits(value: float, words: str) -> None:
    assert short(value) == words


def test_labels_of_huge_steps_do_not_all_look_alike() -> None:
    labels = tick_labels([1.0e18, 1.1e18, 1.2e18], 1e17)
    assert labels == ["1e18", "1.1e18", "1.2e18"]


# ---------------------------------------------------------------- text


@pytest.mark.parametrize("text", HOSTILE)
def test_escaped_text_comes_back_as_it_was_seen(text: str) -> None:
    reader = Reader(f'<p title="{escaped(text)}">{escaped(text)}</p>')
    assert reader.elements == [("p", {"title": visible(text)})]
    assert "".join(reader.text("p")) == visible(text) and reader.faults == []


def test_what_cannot_be_seen_is_made_visible() -> None:
    assert visible("a\x00b\x1b\n") == "a␀b␛␊"
    assert visible("\u0301a") == "\u25cc\u0301a"
    assert visible("\ud800") == "\ufffd"
    visible("\ud800").encode()


@given(st.text(), st.integers(min_value=2, max_value=20))
def test_cut_text_is_a_beginning_that_fits(text: str, most: int) -> None:
    short_text = cut(text, most)
    assert breadth(short_text) <= most
    assert short_text == text or (short_text.endswith("…") and text.startswith(short_text[:-1]))


def test_cutting_leaves_marks_with_their_letter_and_counts_wide_letters_twice() -> None:
    assert cut("e\u0301" * 5, 4) == "e\u0301" * 3 + "…"
    assert cut("漢字漢字", 5) == "漢字…"


@given(
    st.recursive(
        st.none() | st.text() | finite_floats, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_embedded_json_is_the_same_json_and_cannot_leave_its_element(value: Any) -> None:
    text = embedded_json(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == value


def test_numbers_json_cannot_write_become_null() -> None:
    assert finite({"a": (math.nan, 1.0, [math.inf]), 3: "x"}) == {"a": [None, 1.0, [None]], "3": "x"}


# ---------------------------------------------------------------- line charts


def test_points_stand_where_the_axes_say() -> None:
    chart = line_chart([Series("a", [(0, 0), (10, 5), (20, 10)])], title="t", x="x", y="y")
    (path,) = lines_of(chart)
    (x0, y0), (x1, y1), (x2, y2) = [tuple(map(float, point.split())) for point in path.removeprefix("M").split("L")]
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.11) and y0 - y1 == pytest.approx(y1 - y2, abs=0.11)
    assert x0 < x1 and y0 > y1, "right is more, and up is more"


@pytest.mark.parametrize("hole", [None, (3, None), (3, math.nan), (math.nan, 3), (3, math.inf)])
def test_a_missing_point_leaves_a_gap_and_no_trace(hole: Any) -> None:
    chart = line_chart([Series("a", [(1, 1), (2, 2), hole, (4, 1), (5, 2)])], title="t", x="x", y="y")
    (path,) = lines_of(chart)
    assert path.count("M") == 2 and path.count("L") == 2 and marks_of(chart) == 4
    assert "nan" not in chart and "inf" not in chart


def test_a_point_between_gaps_is_still_marked() -> None:
    points: list[Any] = [(n, n) if n % 2 else None for n in range(100)]
    chart = line_chart([Series("a", points)], title="t", x="x", y="y")
    assert lines_of(chart) == [] and marks_of(chart) == 50


def test_log_scales_skip_what_is_not_positive() -> None:
    chart = line_chart(
        [Series("a", [(-1, 1), (0, 1), (1, 0), (1, -5), (10, 10), (100, 100)])],
        title="t",
        x="x",
        y="y",
        log_x=True,
        log_y=True,
    )
    (path,) = lines_of(chart)
    assert path.count("M") == 1 and path.count("L") == 1 and marks_of(chart) == 2


@pytest.mark.parametrize("points", [[(5.0, 1e-9)], [(1.0, 3.0), (1.0, 3.0)], [(0.0, 0.0)], [(1e299, -1e299)]])
@pytest.mark.parametrize("log", [False, True])
def test_one_point_or_equal_points_are_drawn_within_the_frame(points: Sequence[tuple[float, float]], log: bool) -> None:
    chart = line_chart([Series("a", points)], title="t", x="x", y="y", log_x=log, log_y=log)
    for x, y in re.findall(r"translate\(([-\d.]+) ([-\d.]+)\)", chart):
        assert 0 <= float(x) <= 640 and 0 <= float(y) <= 340
    assert Reader(chart).faults == []


@pytest.mark.parametrize("series", [[], [Series("a", [])], [Series("a", [(1, math.nan)])]])
def test_a_chart_without_values_says_so(series: list[Series]) -> None:
    assert "no values to draw" in line_chart(series, title="t", x="x", y="y")


def test_a_series_without_values_keeps_its_key() -> None:
    chart = line_chart([Series("full", [(1, 1)]), Series("empty", [])], title="t", x="x", y="y")
    assert "(no values)" in chart and chart.count('class="key"') == 2


def test_no_two_of_twenty_four_lines_look_alike() -> None:
    assert len({sign(place) for place in range(24)}) == 24
    assert len({place % COLOURS for place in range(24)}) == COLOURS and len(MARKS) == 6
    assert sign(0, dashed=True) != sign(0)


def test_a_long_line_is_marked_here_and_there_and_at_its_end() -> None:
    chart = line_chart([Series("a", [(n, n) for n in range(1000)])], title="t", x="x", y="y")
    assert marks_of(chart) < 30 and "a: 999, 999" in chart


def test_words_of_an_axis_of_names_are_told_instead_of_places() -> None:
    names = Axis(0, 2, ((0.5, "1-5"), (1.5, "6-10")), named=True)
    chart = plot([Series("gru", [(0.5, 3), (1.5, 4)])], names, axis([0, 4]), title="t", x="x", y="y")
    assert "gru: 6-10, 4" in Reader(chart).text("title")


def test_a_chart_speaks_to_those_who_cannot_see_it() -> None:
    chart = line_chart([Series("gru", [(1, 2), (3, 4)])], title="A title", x="updates", y="BLEU")
    (drawing,) = Reader(chart).all("svg", "drawing")
    assert drawing["role"] == "img"
    assert drawing["aria-label"] == "A title: BLEU over updates. gru from 2 at 1 to 4 at 3"


@pytest.mark.parametrize("text", HOSTILE)
def test_no_chart_lets_text_become_markup(text: str) -> None:
    plain = "plain"
    for draw in (
        lambda t: line_chart([Series(t, [(1, 1), (2, 2)])], title=t, x=t, y=t, note=t),
        lambda t: bar_chart([(t, 1.0), ("b", 2.0)], title=t, y=t, note=t),
        lambda t: table([t, "b"], [[t, "1"]], caption=t, note=t),
        lambda t: page(t, [Section(t, "<p>body</p>"), Section("b", "")]),
    ):
        seen, wanted = Reader(draw(text)), Reader(draw(plain))
        assert [(tag, sorted(a)) for tag, a in seen.elements] == [(tag, sorted(a)) for tag, a in wanted.elements]
        assert seen.faults == [] and visible(text) in "".join(words for _, words in seen.words)


# ---------------------------------------------------------------- bars, maps, tables


def test_bars_start_at_zero_and_are_as_long_as_their_values() -> None:
    reader = Reader(bar_chart([("a", 10), ("b", 20), ("c", -5), ("d", math.nan)], title="t", y="y"))
    ten, twenty, below = ({name: float(bar[name]) for name in ("x", "width")} for bar in reader.all("rect", "bar"))
    assert twenty["width"] == pytest.approx(2 * ten["width"], abs=0.2)
    assert twenty["x"] == ten["x"] == pytest.approx(below["x"] + below["width"], abs=0.2)
    assert "no value" in reader.text("text")


def cells_of(svg: str) -> dict[tuple[int, int], float]:
    """{(row, column): colour} as painted by the strokes of the map."""
    painted = {}
    cells = svg[svg.index('class="cells"') : svg.index('class="threads"')]
    for level, path in re.findall(r'opacity="([\d.]+)" d="([^"]*)"', cells):
        for x, y, run in re.findall(r"M(\d+) (\d+)h(\d+)", path):
            for column in range(int(x), int(x) + int(run)):
                assert (int(y), column) not in painted
                painted[int(y), column] = float(level)
    return painted


@given(st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=1, max_size=5))
def test_a_map_paints_each_cell_as_strong_as_its_weight(weights: list[list[float]]) -> None:
    svg = heatmap(weights, [f"t{n}" for n in range(len(weights))], list("abcd"), title="t")
    painted = cells_of(svg)
    for row, line in enumerate(weights):
        for column, weight in enumerate(line):
            assert painted.get((row, column), 0.0) == pytest.approx(weight, abs=0.0405)
    (drawing,) = Reader(svg).all("svg", "weights")
    told = [[int(share) / 1000 for share in row.split(",")] for row in drawing["data-weights"].split(";")]
    assert told == [pytest.approx(line, abs=0.000501) for line in weights]


def test_weights_that_are_missing_or_outside_are_drawn_as_nothing_or_as_the_nearest() -> None:
    weights: Any = [[None, math.nan, -0.5, 7.0]]
    svg = heatmap(weights, ["t"], list("abcd"), title="t")
    assert cells_of(svg) == {(0, 3): 1.0}
    assert Reader(svg).all("svg", "weights")[0]["data-weights"] == ",,0,1000"


def test_a_long_piece_is_cut_and_whole_in_its_title() -> None:
    piece = "Donaudampfschifffahrtsgesellschaft"
    reader = Reader(heatmap([[1.0, 0.0]], ["short"], [piece, "b"], title="t"))
    assert reader.text("title") == [piece] and cut(piece, 14) in reader.text("text")


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_piece_of_any_kind_is_told_as_it_is(piece: str) -> None:
    reader = Reader(heatmap([[1.0]], [piece], [piece], title="t"))
    whole = reader.text("title") or reader.text("text")
    assert whole == [visible(piece)] * 2 and reader.faults == []


def test_a_map_with_a_weight_too_few_is_refused() -> None:
    with pytest.raises(AssertionError):
        heatmap([[1.0]], ["a"], ["b", "c"], title="t")


def test_columns_of_numbers_are_right_aligned_and_columns_of_words_are_not() -> None:
    shown = table(["name", "BLEU", "mixed"], [["a", "1,234.5", "3"], ["b", "−2", "three"], ["c", "", "4"]])
    heads = [attributes.get("class", "") for attributes in Reader(shown).all("th")[:3]]
    assert heads == ["", "number", ""]


# ---------------------------------------------------------------- the page


ASKING = {"src", "srcset", "href", "xlink:href", "action", "formaction", "poster", "background", "ping"}


def outside(document: str) -> list[str]:
    """Everything in a document that would make a browser ask for something."""
    reader = Reader(document)
    given = [(name, value) for _, attributes in reader.elements for name, value in attributes.items()]
    found = [value for name, value in given if name in ASKING and not value.startswith(("#", "data:"))]
    styles = "\n".join([*reader.text("style"), *(value for name, value in given if name == "style")])
    found += re.findall(r"url\((?!['\"]?(?:data:|#))[^)]*\)|@import[^;]*", styles)
    return found + re.findall(
        r"\b(?:fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|import)\b", _scripts(document)
    )


def _scripts(document: str) -> str:
    return "\n".join(re.findall(r"<script>(.*?)</script>", document, re.DOTALL))


def test_the_search_for_outside_references_finds_them() -> None:
    for tag in (
        '<img src="a.png">',
        "<link href='https://x/y.css'>",
        '<a href="other.html">',
        "<style>@import 'x';</style>",
    ):
        assert outside(tag), tag
    assert outside("<script>fetch('x')</script>") and outside('<p style="background: url(x)">')
    assert outside("<style>p { background: url(x.png) }</style>") and not outside('<a href="#here">')


def test_a_page_is_whole_and_refers_to_nothing_outside() -> None:
    document = page(
        "Title", [Section("One", "<p>1</p>"), Section("Two", "<p>2</p>")], lead="<p>lead</p>", script="let a = 1;"
    )
    reader = Reader(document)
    assert document.startswith("<!doctype html>") and reader.faults == [] and outside(document) == []
    assert reader.all("html")[0]["lang"] == "en" and {"charset": "utf-8"} in reader.all("meta")
    assert any(meta.get("name") == "viewport" for meta in reader.all("meta"))
    assert reader.all("link")[0]["href"].startswith("data:image/svg+xml,")
    assert [a["href"] for a in reader.all("a")] == ["#one", "#two"]
    assert [section["id"] for section in reader.all("section")] == ["one", "two"]


def test_headings_that_look_alike_have_anchors_of_their_own() -> None:
    anchors = [
        s["id"]
        for s in Reader(page("t", [Section(h, "") for h in ("A b", "a-B", "שלום", "漢字", "a b 1", "A b")])).all(
            "section"
        )
    ]
    assert len(set(anchors)) == 6 and all(re.fullmatch("[a-z0-9-]+", anchor) for anchor in anchors)


def test_the_policy_lets_the_pages_own_scripts_run_and_nothing_else() -> None:
    document = page("t", [Section("a", "")], script="let own = 1;")
    policy = next(meta["content"] for meta in Reader(document).all("meta") if "http-equiv" in meta)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'" and rules["img-src"] == "data:"
    assert len(rules["script-src"].split()) == 2 and "unsafe" not in rules["script-src"]


def test_a_script_that_would_end_itself_is_refused() -> None:
    with pytest.raises(AssertionError, match="end itself"):
        page("t", [], script="'</SCRIPT>'")


# ---------------------------------------------------------------- the comparison


@pytest.mark.parametrize("systems", [1, 2, 12])
@pytest.mark.parametrize("hostile", [False, True])
def test_a_comparison_is_one_well_formed_page_without_outside_references(systems: int, hostile: bool) -> None:
    comparison = made_up(systems=systems, samples=9, hostile=hostile)
    document = comparison_page(comparison)
    reader = Reader(document)
    assert reader.faults == [] and outside(document) == []
    assert reader.all("img") == [] and len(reader.all("script")) == 2
    assert len(reader.all("article", "card")) == 9 * systems
    assert len(reader.all("svg", "weights")) == 9 * (systems - 1)
    assert not re.search(r"\b(nan|None)\b", re.sub(r"<(script|style).*?</\1>", "", document, flags=re.DOTALL))


def test_the_story_is_told_in_order() -> None:
    comparison = made_up()
    document = comparison_page(comparison)
    told = [
        comparison.title,
        comparison.corpus,
        comparison.test,
        comparison.budget,
        comparison.decoding,
        comparison.findings[0],
        'class="sortable"',
        comparison.systems[0].bleu.signature,
        "BLEU by length of the source sentence",
        "Validation BLEU",
        "Validation loss",
        comparison.samples[0].reference,
        "model.width",
        "2.13.0",
        "Download the numbers",
    ]
    places = [
        document.index(escaped(words) if words[:5] != "class" else words, document.index("<h1>")) for words in told
    ]
    assert places == sorted(places)


def test_the_table_marks_the_best_and_says_what_is_chance() -> None:
    document = comparison_page(made_up(systems=3))
    body = document[document.index('class="sortable"') : document.index("</table>")]
    rows = [re.sub(r"<[^>]*>", " ", row) for row in body.split("<tr")[2:]]
    assert "✱" not in rows[0] and "p = 0.200" in rows[0] and "✱" in rows[1] and "p &lt; 0.001" in rows[1]
    assert "best" in rows[2] and "34.0 %" in rows[2] and "layer 2 of 3" in rows[2]
    best = re.findall(r'class="number best"[^>]*>([^<]*)', body)
    assert best == ["31,200", "210.0", "612", "32.0 %", "14.0", "34.0"]


def test_one_system_is_not_marked_as_the_best_of_itself() -> None:
    assert 'class="number best"' not in comparison_page(made_up(systems=1))


def test_lengths_beyond_training_are_shaded_and_said_so() -> None:
    comparison = made_up()
    document = comparison_page(comparison)
    (shade,) = Reader(document).all("rect", "shaded")
    frame = re.search(r'class="base" d="M(\d+) \d+H(\d+)"', document)
    assert frame
    left, right = float(frame[1]), float(frame[2])
    assert float(shade["x"]) == pytest.approx(left + (right - left) * 4 / 10, abs=0.2), (
        "the first four buckets were trained on"
    )
    assert float(shade["x"]) + float(shade["width"]) == pytest.approx(right, abs=0.2)
    assert "has 20 words: shaded lengths are longer" in document
    unshaded = comparison_page(dataclasses.replace(comparison, trained_length=100, length_unit="characters"))
    assert not Reader(unshaded).all("rect", "shaded") and "100 characters; no bucket" in unshaded


def test_counts_of_test_sentences_stand_under_the_axis() -> None:
    words = Reader(comparison_page(made_up())).text("text")
    assert {"1-5", "1,204", "76-100", "88"} <= set(words)


def test_a_system_without_attention_says_why_in_place_of_each_map() -> None:
    document = comparison_page(made_up(systems=2, samples=3))
    assert document[: document.index('id="numbers')].count(MADE_UP["REASON"]) == 3


def test_what_is_missing_is_left_out() -> None:
    bare = dataclasses.replace(made_up(), buckets=(), samples=(), settings={}, environment={}, findings=())
    bare = dataclasses.replace(
        bare, systems=tuple(dataclasses.replace(s, by_length=(), curve=()) for s in bare.systems)
    )
    document = comparison_page(bare)
    assert Reader(document).faults == []
    for heading in ("Long sentences", "Learning curves", "Samples"):
        assert heading not in document
    assert "do not differ in any setting" in document


def test_the_embedded_numbers_are_the_comparison() -> None:
    comparison = made_up(hostile=True)
    record = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', comparison_page(comparison), re.DOTALL)
    assert record
    saved = Comparison.from_dict(json.loads(record[1]))
    assert saved.findings == comparison.findings and saved.best.name == comparison.best.name
    assert [s.bleu for s in saved.systems] == [s.bleu for s in comparison.systems]
    assert [s.by_length for s in saved.systems] == [s.by_length for s in comparison.systems]


def test_twelve_systems_and_nine_long_samples_stay_below_two_megabytes() -> None:
    assert len(comparison_page(made_up(systems=12, samples=9, length=30)).encode()) < 2_000_000
