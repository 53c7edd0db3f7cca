"""The explorer as a browser sees it: opened from disk, silent, and answering clicks and keys with the right numbers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kente.measure.explored import Explored
from kente.show.explorer import page as explorer_page
from kente.show.views import View, shown

WIDTHS = (390, 1280)
SCHEMES = ("light", "dark")
MAP = "document.querySelector('.weights')"
READOUT = "document.querySelector('.focus .readout').textContent"
CAPTION = "document.querySelector('.focus figcaption').firstChild.textContent"
THUMBS = "[...document.querySelectorAll('.reading')[0].querySelectorAll('.thumb')]"
CHOSEN = "document.querySelector('.thumb[aria-checked=\"true\"]').getAttribute('aria-label')"

Writes = Callable[[Explored], Path]


@pytest.fixture(scope="module")
def write(tmp_path_factory: pytest.TempPathFactory) -> Writes:
    def write(explored: Explored) -> Path:
        path = tmp_path_factory.mktemp("pages") / "look.html"
        path.write_text(explorer_page(explored), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="module")
def explored(made_up_look: Any) -> Explored:
    return made_up_look()


@pytest.fixture(scope="module")
def page(explored: Explored, write: Writes) -> Path:
    return write(explored)


def control(words: str) -> str:
    return f"[...document.querySelectorAll('.controls button')].find(button => button.textContent === '{words}')"


def point(tab: Any, row: int, across: int, columns: int) -> None:
    """Move the pointer over a cell as it stands on the screen."""
    tab.middle(MAP)
    x, y = tab.evaluate(
        f"(box => {{ const cell = box.width / {columns}; return [box.x + {across + 0.5} * cell, box.y + {row + 0.5} * cell] }})"
        f"({MAP}.querySelector('.ground').getBoundingClientRect())"
    )
    tab.move(1, 1)
    tab.move(x, y)


# ---------------------------------------------------------------- silence


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
@pytest.mark.parametrize(
    "wishes",
    [{}, {"hostile": True}, {"hebrew": True}, {"models": ("gru",)}, {"given": True, "models": ("transformer",)}],
    ids=str,
)
def test_a_page_is_silent_asks_for_nothing_and_stays_within_its_window(
    tab: Any, made_up_look: Any, write: Writes, wishes: dict[str, Any], width: int, scheme: str
) -> None:
    path = write(made_up_look(**wishes))
    tab.open(path, width=width, scheme=scheme)
    for key in "123456789mxrasvpck,..":
        tab.press(key)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, key
    tab.press("Escape")
    assert tab.complaints() == []
    assert [url for url in tab.requests() if url != path.as_uri() and not url.startswith("data:")] == []
    assert tab.evaluate("typeof window.broken") == "undefined" and tab.evaluate("document.images.length") == 0


def test_without_javascript_there_is_a_map_for_each_model_that_attends(tab: Any, page: Path) -> None:
    tab.open(page, script=False)
    assert tab.evaluate("document.querySelectorAll('.weights').length") == 2
    assert "nowhere to look" in tab.evaluate("document.querySelector('main').textContent")


# ---------------------------------------------------------------- heads


def test_the_grid_has_every_head_and_what_they_see_together(tab: Any, page: Path) -> None:
    tab.open(page)
    assert tab.evaluate(f"{THUMBS}.length") == 2 * (4 + 3) + 2
    assert tab.evaluate("document.querySelectorAll('.reading')[1].querySelectorAll('.thumb').length") == 3 + 2
    assert tab.evaluate("document.querySelectorAll('.reading')[2].querySelector('.heads').hidden")


def test_a_click_brings_a_head_into_focus_with_its_numbers(tab: Any, page: Path, explored: Explored) -> None:
    tab.open(page)
    tab.click(f"{THUMBS}[7 + 2]")
    assert tab.evaluate(CAPTION) == "target to source, layer 2 of 2, head 3 of 4"
    found = shown(explored.readings[0], View(layer=1, head=2))
    assert found is not None
    for row, column in ((0, 0), (3, 5), (7, 7)):
        point(tab, row, column, len(found.columns))
        words = f"{found.rows[row]} looks at {found.columns[column]}: {found.weights[row, column]:.3f}"
        assert tab.evaluate(READOUT) == words


@pytest.mark.parametrize(
    ("habit", "name"), [("entropy", "entropy"), ("distance", "distance"), ("looks back", "looks back")]
)
def test_heads_are_sorted_by_what_they_do(tab: Any, page: Path, explored: Explored, habit: str, name: str) -> None:
    tab.open(page)
    tab.click(control(name))
    cross = explored.readings[0].of("cross")
    assert cross is not None
    values = cross.habits[habit]
    places = sorted(((layer, head) for layer in range(2) for head in range(4)), key=lambda place: values[place])
    labels = tab.evaluate(f"{THUMBS}.map(thumb => thumb.textContent.split(':')[0])")
    assert labels == [f"{layer + 1}·{head + 1}" for layer, head in places]


@pytest.mark.parametrize(
    ("key", "view"),
    [
        ("m", View(layer=0)),
        ("x", View(layer=0, head="max")),
        ("r", View(layer=0, head="rollout")),
        ("a", View(layer="all")),
    ],
)
def test_keys_show_mean_maximum_rollout_and_all_layers(
    tab: Any, page: Path, explored: Explored, key: str, view: View
) -> None:
    tab.open(page)
    tab.click(f"{THUMBS}[0]")
    tab.press(key)
    found = shown(explored.readings[0], view)
    assert found is not None and tab.evaluate(CAPTION) == found.title
    point(tab, 2, 3, len(found.columns))
    assert tab.evaluate(READOUT).endswith(f": {found.weights[2, 3]:.3f}")


def test_arrow_keys_walk_over_the_heads(tab: Any, page: Path) -> None:
    tab.open(page)
    tab.click(f"{THUMBS}[0]")
    for key in ("ArrowRight", "ArrowDown"):
        tab.press(key)
    assert tab.evaluate(CHOSEN).startswith("layer 2 of 2, head 2 of 4")
    assert tab.evaluate("document.activeElement.classList.contains('thumb')")


# ---------------------------------------------------------------- the map


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_every_kind_of_map_is_there_in_pieces_too(tab: Any, page: Path, explored: Explored, kind: str) -> None:
    tab.open(page)
    tab.press({"encoder": "2", "decoder": "3"}[kind])
    tab.click(control("pieces"))
    tab.click(f"{THUMBS}[1]")
    found = shown(explored.readings[0], View(kind=kind, layer=0, head=1, joined=False))
    assert found is not None
    rows = tab.evaluate(f"[...{MAP}.querySelectorAll('.rows text')].map(text => text.textContent)")
    assert tuple(rows) == found.rows
    point(tab, 5, 4, len(found.columns))
    assert tab.evaluate(READOUT) == f"{found.rows[5]} looks at {found.columns[4]}: {found.weights[5, 4]:.3f}"
    assert "one vector for the whole sentence" in tab.evaluate("document.querySelectorAll('.stage')[2].textContent")


def test_columns_run_from_right_to_left_for_words_that_do(tab: Any, made_up_look: Any, write: Writes) -> None:
    explored = made_up_look(("conv",), hebrew=True)
    tab.open(write(explored))
    found = shown(explored.readings[0], View(layer=1))
    assert found is not None
    last = len(found.columns) - 1
    point(tab, 0, last, last + 1)
    assert tab.evaluate(READOUT) == f"{found.rows[0]} looks at {found.columns[0]}: {found.weights[0, 0]:.3f}"
    assert tab.evaluate(f"{MAP}.querySelectorAll('.cells path').length") > 0


def test_arrow_keys_walk_over_the_map(tab: Any, page: Path, explored: Explored) -> None:
    tab.open(page)
    tab.evaluate(f"{MAP}.focus()")
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        tab.press(key)
    found = shown(explored.readings[0], View())
    assert found is not None and tab.evaluate(READOUT).startswith(f"{found.rows[1]} looks at {found.columns[2]}: ")


def test_lines_are_as_many_as_weights_that_can_be_seen(tab: Any, page: Path, explored: Explored) -> None:
    tab.open(page)
    tab.click(control("hidden"))
    tab.click(control("lines"))
    found = shown(explored.readings[0], View())
    assert found is not None
    drawn = tab.evaluate("document.querySelector('.lineview').querySelectorAll('.lines path').length")
    assert abs(drawn - int((found.weights >= 0.02).sum())) <= 1  # one may lie on the edge, packed
    tab.move(*tab.middle("document.querySelector('.lineview .rows text')"))
    best = found.columns[int(found.weights[0].argmax())]
    assert tab.evaluate(READOUT).startswith(f"{found.rows[0]} looks at {best}: {found.weights[0].max():.3f}; ")


def test_known_alignments_are_drawn_and_can_be_hidden(tab: Any, page: Path) -> None:
    tab.open(page)
    rings = f"({MAP}.querySelector('.known')?.getAttribute('d').match(/z/g) ?? []).length"
    assert tab.evaluate(rings) == 8
    tab.press("k")
    assert tab.evaluate(rings) == 0


def test_colour_reaches_from_nothing_to_one_or_to_the_strongest(tab: Any, page: Path) -> None:
    tab.open(page)
    strongest = (
        f"Math.max(...[...{MAP}.querySelectorAll('.cells path')].map(path => Number(path.getAttribute('opacity'))))"
    )
    assert tab.evaluate(strongest) < 1
    tab.press("c")
    assert tab.evaluate(strongest) == 1


def test_a_model_without_attention_shows_its_vector_and_the_reason(tab: Any, page: Path) -> None:
    tab.open(page)
    stage = "document.querySelectorAll('.stage')[2]"
    assert "nowhere to look" in tab.evaluate(f"{stage}.textContent")
    assert tab.evaluate(f"{stage}.querySelector('.vector path').getAttribute('d').match(/M/g).length") == 96


def test_leaving_a_word_out_tells_what_changes(tab: Any, page: Path, explored: Explored) -> None:
    tab.open(page)
    tab.click(control("without a word"))
    tab.click(control("pieces"))
    reading = explored.readings[0]
    occlusion = reading.occlusion
    assert occlusion is not None
    point(tab, 4, 2, len(occlusion.words))
    before, after = reading.steps[4].probability, occlusion.probabilities[2, 4]
    way = "falls" if before > after else "rises"
    told = re.sub(r"\d\.\d{3}", "#", tab.evaluate(READOUT))
    assert told == f"without captain, the probability of ▁écri: # {way} to #. It would write: {occlusion.instead[2]}"
    numbers = [float(number) for number in re.findall(r"\d\.\d{3}", tab.evaluate(READOUT))]
    assert numbers == pytest.approx([before, after], abs=0.0011)  # packed, and rounded
    assert tab.evaluate("document.querySelectorAll('.weights').length") == 3, (
        "a fixed context can be tested like any other"
    )


# ---------------------------------------------------------------- steps


def test_the_slider_walks_through_the_decoding(tab: Any, page: Path, explored: Explored) -> None:
    tab.open(page)
    tab.press(".")
    tab.press(".")
    step = explored.readings[0].steps[1]
    told = "document.querySelector('.told')"
    shares = tab.evaluate(
        f"[...{told}.querySelectorAll('.candidates li')].map(li => li.querySelector('.piece').textContent)"
    )
    assert shares == [candidate.piece for candidate in step.candidates]
    assert tab.evaluate(f"{told}.querySelector('.taken .piece').textContent") == step.piece
    assert tab.evaluate(f"{told}.querySelectorAll('.beam.alive li').length") == 2
    assert tab.evaluate(f"{told}.querySelectorAll('.beam.dropped li').length") == 3
    assert tab.evaluate(f"{told}.querySelector('.beam.alive .chosen .text').textContent") == step.beginnings[0].text
    assert tab.evaluate(f"{MAP}.querySelector('.writing').getAttribute('y')") == "22"
    tab.press("Escape")
    assert tab.evaluate(f"{MAP}.querySelector('.writing')") is None


def test_a_slider_moves_its_own_model(tab: Any, page: Path) -> None:
    tab.open(page)
    tab.evaluate("document.querySelectorAll('.slide input')[1].focus()")
    tab.press("Home")
    counts = "[...document.querySelectorAll('.count')].map(count => count.textContent)"
    assert tab.evaluate(counts) == ["", "1 of 10", ""]
    tab.press("ArrowRight")
    assert tab.evaluate(counts) == ["", "2 of 10", ""]


def test_a_given_target_says_what_the_model_writes_of_itself(tab: Any, made_up_look: Any, write: Writes) -> None:
    tab.open(write(made_up_look(("transformer",), given=True)))
    tab.press(".")
    assert "no beam led to it. Of itself the model writes: another answer" in tab.evaluate(
        "document.querySelector('.told').textContent"
    )


# ---------------------------------------------------------------- taking it home


def test_picture_and_numbers_can_be_saved(tab: Any, page: Path, explored: Explored, tmp_path: Path) -> None:
    tab.open(page)
    tab.browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path), eventsEnabled=True)
    for words in ("SVG", "PNG", "CSV"):
        tab.browser.events.clear()
        tab.click(f"[...document.querySelectorAll('.tools button')].find(button => button.textContent === '{words}')")
        tab.browser.wait_for("Browser.downloadProgress", state="completed")
    saved = {path.suffix: path for path in tmp_path.iterdir()}
    found = shown(explored.readings[0], View())
    assert found is not None
    rows = list(csv.DictReader(io.StringIO(saved[".csv"].read_text(encoding="utf-8"))))
    assert [row["row_text"] for row in rows[:: len(found.columns)]] == list(found.rows)
    assert [float(row["weight"]) for row in rows] == pytest.approx(found.weights.ravel().tolist(), abs=2e-4)
    assert saved[".png"].read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    drawing = saved[".svg"].read_text(encoding="utf-8")
    assert drawing.startswith("<svg ") and "captain" in drawing and "var(" not in drawing
    tab.open(saved[".svg"])
    assert tab.evaluate("document.querySelectorAll('text').length") == len(found.rows) + len(found.columns)
