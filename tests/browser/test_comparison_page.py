"""The comparison page as a browser sees it: silent, within its window, and answering clicks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kente.measure.comparison import Comparison
from kente.show.comparison import comparison_page

WIDTHS = (390, 1280)
SCHEMES = ("light", "dark")
ROWS = "[...document.querySelectorAll('table.sortable tbody tr')]"
HIDDEN = (
    "[...document.querySelectorAll('.drawing [data-series]')].filter(line => getComputedStyle(line).display === 'none')"
)
MAP = "document.querySelector('.weights')"
READOUT = f"{MAP}.closest('figure').querySelector('.readout').textContent"


@pytest.fixture(scope="module")
def comparison(made_up: Any) -> Comparison:
    return made_up()


@pytest.fixture(scope="module")
def page(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "comparison.html"
    path.write_text(comparison_page(comparison), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def hostile(made_up: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "hostile.html"
    path.write_text(comparison_page(made_up(systems=12, samples=9, hostile=True)), encoding="utf-8")
    return path


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["page", "hostile"])
def test_a_page_is_silent_and_stays_within_its_window(
    tab: Any, request: pytest.FixtureRequest, name: str, width: int, scheme: str
) -> None:
    path = request.getfixturevalue(name)
    tab.open(path, width=width, scheme=scheme)
    tab.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true })")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.complaints() == []
    assert [url for url in tab.requests() if url != path.as_uri() and not url.startswith("data:")] == []


def test_a_page_that_misbehaves_would_be_caught(tab: Any, tmp_path: Path) -> None:
    path = tmp_path / "bad.html"
    path.write_text(
        "<!doctype html><meta http-equiv='Content-Security-Policy' content=\"img-src 'none'\"><img src='missing.png'>"
        "<link rel='stylesheet' href='missing.css'><div style='width: 5000px'>wide</div>"
        "<script>console.warn('a warning'); throw new Error('an exception')</script>"
    )
    tab.open(path, width=390)
    complaints = "\n".join(tab.complaints())
    assert "a warning" in complaints and "an exception" in complaints and "Content Security Policy" in complaints
    assert (tmp_path / "missing.css").as_uri() in tab.requests()
    assert tab.evaluate("document.documentElement.scrollWidth") > 390


def test_hostile_text_is_shown_and_never_run(tab: Any, hostile: Path, made_up: Any) -> None:
    tab.open(hostile)
    assert tab.evaluate("typeof window.broken") == "undefined"
    assert tab.evaluate("document.querySelector('h1').textContent") == made_up(hostile=True).title
    assert tab.evaluate("document.images.length") == 0


def test_dark_and_light_differ_in_paper_and_ink(tab: Any, page: Path) -> None:
    seen = {}
    for scheme in SCHEMES:
        tab.open(page, scheme=scheme)
        paper = "getComputedStyle(document.documentElement).backgroundColor"
        seen[scheme] = tab.evaluate(f"[{paper}, getComputedStyle(document.body).color]")
    assert seen["light"][0] != seen["dark"][0] and seen["light"][1] != seen["dark"][1]


@pytest.mark.parametrize("width", WIDTHS)
def test_words_in_drawings_are_large_enough_to_read_and_do_not_overlap(tab: Any, page: Path, width: int) -> None:
    tab.open(page, width=width)
    smallest = tab.evaluate(
        "Math.min(...[...document.querySelectorAll('.drawing text, .weights text')].filter(text => text.getClientRects().length)"
        ".map(text => parseFloat(getComputedStyle(text).fontSize) * Math.hypot(text.getScreenCTM().a, text.getScreenCTM().b)))"
    )
    assert smallest >= 9
    overlaps = tab.evaluate("""[...document.querySelectorAll('.drawing')].flatMap(drawing => {
        const boxes = [...drawing.querySelectorAll('text')].map(text => text.getBoundingClientRect()).filter(box => box.width);
        return boxes.flatMap((a, i) => boxes.slice(i + 1).filter(b =>
            a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3).map(b => [a.x, a.y, b.x, b.y]));
    })""")
    assert overlaps == []


def test_a_click_on_a_head_sorts_and_another_turns_the_order(tab: Any, page: Path, comparison: Comparison) -> None:
    tab.open(page)
    names = f"{ROWS}.map(row => row.cells[0].textContent.trim())"
    heads = tab.evaluate("[...document.querySelectorAll('table.sortable thead th')].map(head => head.textContent)")
    head = f"document.querySelectorAll('table.sortable .sort')[{heads.index('BLEU')}]"
    ascending = [system.name for system in sorted(comparison.systems, key=lambda system: system.bleu.value)]
    tab.click(head)
    assert tab.evaluate(names) == ascending[::-1]
    tab.click(head)
    assert tab.evaluate(names) == ascending


def test_what_has_no_value_is_sorted_last_either_way(tab: Any, page: Path, comparison: Comparison) -> None:
    tab.open(page)
    head = "[...document.querySelectorAll('table.sortable .sort')].at(-1)"
    without = next(system.name for system in comparison.systems if system.alignment is None)
    for _ in range(2):
        tab.click(head)
        assert tab.evaluate(f"{ROWS}.at(-1).cells[0].textContent.trim()") == without


def test_a_click_on_a_key_hides_its_line_in_its_own_chart_and_another_shows_it(tab: Any, page: Path) -> None:
    tab.open(page)
    key = "document.querySelector('.key[data-series=\"2\"]')"
    assert tab.evaluate(f"{HIDDEN}.length") == 0
    tab.click(key)
    assert tab.evaluate(f"{HIDDEN}.map(line => line.dataset.series)") == ["2"]
    assert tab.evaluate(f"{HIDDEN}[0].closest('figure') === {key}.closest('figure')")
    assert tab.evaluate(f"{key}.getAttribute('aria-pressed')") == "false"
    tab.click(key)
    assert tab.evaluate(f"{HIDDEN}.length") == 0


def test_pointing_at_a_cell_tells_the_pieces_and_the_weight(tab: Any, page: Path, comparison: Comparison) -> None:
    attention = next(answer.attention for answer in comparison.samples[0].answers if answer.attention)
    row, column = 3, 5
    tab.open(page)
    tab.middle(MAP)
    x, y = tab.evaluate(
        f"(corner => {{ const cell = corner.width / {len(attention.source_pieces)};"
        f" return [corner.x + {column + 0.5} * cell, corner.y + {row + 0.5} * cell] }})"
        f"({MAP}.querySelector('.ground').getBoundingClientRect())"
    )
    rest = tab.evaluate(READOUT)
    tab.move(x, y)
    words = f"{attention.target_pieces[row]} looks at {attention.source_pieces[column]}: {attention.weights[row][column]:.3f}"
    assert tab.evaluate(READOUT) == words
    tab.move(1, 1)
    assert tab.evaluate(READOUT) == rest


def test_arrow_keys_walk_over_a_map(tab: Any, page: Path, comparison: Comparison) -> None:
    attention = next(answer.attention for answer in comparison.samples[0].answers if answer.attention)
    tab.open(page)
    tab.evaluate(f"{MAP}.focus()")
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        tab.press(key)
    assert tab.evaluate(READOUT).startswith(f"{attention.target_pieces[1]} looks at {attention.source_pieces[2]}: ")


def test_without_javascript_everything_is_there_and_the_curves_still_switch(
    tab: Any, page: Path, comparison: Comparison
) -> None:
    tab.open(page, script=False)
    assert tab.evaluate(f"{ROWS}.length") == len(comparison.systems)
    assert tab.evaluate("document.querySelectorAll('.weights .cells path').length") > 0
    panels = "[...document.querySelectorAll('.panel')].map(panel => getComputedStyle(panel).display)"
    assert tab.evaluate(panels) == ["block", "none"]
    tab.click("document.querySelectorAll('.tabs > label')[1]")
    assert tab.evaluate(panels) == ["none", "block"]


def test_the_numbers_can_be_saved_and_are_the_comparison(
    tab: Any, page: Path, comparison: Comparison, tmp_path: Path
) -> None:
    tab.open(page)
    folder = str(tmp_path)
    tab.browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder, eventsEnabled=True)
    tab.click("document.querySelector('a[download]')")
    tab.browser.wait_for("Browser.downloadProgress", state="completed")
    saved = Comparison.from_dict(json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8")))
    assert saved.systems[0].by_length == comparison.systems[0].by_length
    assert saved.settings == comparison.settings and saved.findings == comparison.findings
    kept, given = (c.samples[0].answers[1].attention for c in (saved, comparison))
    assert kept and given
    assert kept.weights == tuple(tuple(round(weight, 3) for weight in row) for row in given.weights)
