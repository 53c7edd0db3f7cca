"""The explorer on paper: a page under a megabyte that holds every weight, pictures that stand alone, numbers, and a terminal."""

from __future__ import annotations

import csv
import io
import json
import re
import runpy
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kente import api
from kente.config import DecodeConfig, TransformerConfig
from kente.data.tokenizer import Symbols, Tokenizers
from kente.decode.torch_engine import TorchEngine
from kente.decode.translator import Translator
from kente.errors import UsageError
from kente.measure.explored import Explored, by_words
from kente.models.build import build
from kente.show import raster
from kente.show.explorer import page
from kente.show.figures import png, svg
from kente.show.packing import FULL, LETTERS, packed, record
from kente.show.plain import terminal
from kente.show.sheets import sheet
from kente.show.text import breadth, visible
from kente.show.views import View, right_to_left, shown

HERE = Path(__file__).parents[1] / "browser"
MADE_UP = runpy.run_path(str(HERE / "made_up_look.py"))
HOSTILE: tuple[str, ...] = MADE_UP["HOSTILE"]
MEGABYTE = 1_000_000
SVG = "{http://www.w3.org/2000/svg}"


def made_up(*models: str, **wishes: Any) -> Explored:
    return MADE_UP["explored"](models or ("transformer", "conv", "gru"), **wishes)


def unpacked(text: str) -> list[float]:
    """Letter by letter."""
    numbers = [LETTERS.index(letter) for letter in text]
    return [(64 * high + low) / FULL for high, low in zip(numbers[::2], numbers[1::2], strict=True)]


# ---------------------------------------------------------------- packing


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_two_letters_keep_a_weight_to_a_ten_thousandth(values: list[float]) -> None:
    assert unpacked(packed(np.array(values))) == pytest.approx(values, abs=0.5 / FULL + 1e-9)


def test_what_is_no_weight_is_packed_as_the_nearest() -> None:
    assert unpacked(packed(np.array([-1.0, 2.0, np.nan]))) == [0.0, 1.0, 0.0]


def test_the_page_holds_every_weight_of_every_model() -> None:
    explored = made_up()
    held = re.search(r'id="explored">(.*?)</script>', page(explored), re.DOTALL)
    assert held
    for reading, kept in zip(explored.readings, json.loads(held[1])["readings"], strict=True):
        assert kept["name"] == reading.name and kept["steps"][3]["piece"] == reading.steps[3].piece
        for maps, packed_maps in zip(reading.maps, kept["maps"], strict=True):
            assert (packed_maps["layers"], packed_maps["heads"]) == maps.weights.shape[:2]
            np.testing.assert_allclose(unpacked(packed_maps["weights"]), maps.weights.ravel(), atol=1.3e-4)
            if maps.rollout is not None:
                np.testing.assert_allclose(unpacked(packed_maps["rollout"]), maps.rollout.ravel(), atol=1.3e-4)


def test_a_base_model_and_forty_tokens_stay_below_a_megabyte() -> None:
    """Six and six layers of eight heads; the width, which no map shows, is small."""
    side = Symbols("words", [f"Donaudampf{n}" for n in range(200)], "nfc")
    torch.manual_seed(1)
    shape = TransformerConfig(encoder_layers=6, decoder_layers=6, width=32, feedforward=32, heads=8)
    model: Any = build(shape, side.size, side.size).eval()
    ratio = (40 - 10) / 41  # so that the answer, which does not want to end, has forty pieces
    reader = Translator(
        TorchEngine(model),
        Tokenizers(side, side, joint=True),
        DecodeConfig(beam=5, max_ratio=ratio, length_penalty=5.0),
    )
    explored = api.look({"base": reader}, " ".join(side.symbols[:40]))
    reading = explored.readings[0]
    assert len(reading.sides["source"].pieces) == 41 and len(reading.steps) >= 40
    assert sum(maps.layers * maps.heads for maps in reading.maps) == 144
    assert len(page(explored).encode()) < MEGABYTE


# ---------------------------------------------------------------- the page as a document


@pytest.mark.parametrize("hostile", [False, True])
def test_no_text_of_a_model_becomes_markup_and_nothing_is_asked_for(hostile: bool) -> None:
    document = page(made_up(hostile=hostile))
    assert document.count("<script") == 3 and "<script>window" not in document
    assert "<img" not in document and not re.search(r'(?:src|href)="(?!#|data:)', document)
    scripts = "".join(re.findall(r"<script>(.*?)</script>", document, re.DOTALL))
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|import|innerHTML|eval)\b", scripts)


def test_the_page_says_what_attention_does_not_show_and_why_a_map_is_missing() -> None:
    document = page(made_up())
    assert "not why it wrote what it wrote" in document and "leaves out one word of the source" in document
    assert MADE_UP["REASON"] in document[: document.index('id="explored"')], "without JavaScript too"
    assert "Where the models look" in document and "Where the model looks" in page(made_up("conv"))


def test_a_model_without_attention_alone_still_has_a_page() -> None:
    assert list(record(made_up("gru"))["kinds"]) == ["cross"]


# ---------------------------------------------------------------- views


def test_a_view_is_one_map_of_words_or_pieces() -> None:
    reading = made_up().readings[0]
    cross = reading.of("cross")
    assert cross is not None
    pieces = shown(reading, View(layer=1, head=2, joined=False))
    words = shown(reading, View(layer=1, head=2))
    assert pieces is not None and words is not None
    np.testing.assert_allclose(pieces.weights, cross.weights[1, 2])
    np.testing.assert_allclose(
        words.weights, by_words(cross.weights[1, 2], reading.sides["written"], reading.sides["source"])
    )
    assert words.title == "target to source, layer 2 of 2, head 3 of 4"
    assert words.columns == ("The", "old", "captain", "wrote", "a", "letter", ".", "</s>")


def test_links_of_pieces_are_links_of_their_words() -> None:
    found = shown(made_up().readings[0], View())
    assert found is not None  # pieces n-n: captain is pieces 2-3 on both sides, letter 6-7, écrivit 4-5
    assert set(found.links) == {(0, 0), (1, 1), (2, 2), (3, 3), (3, 4), (4, 5), (5, 5), (6, 6)}


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (View(kind="sideways"), "no maps of kind sideways; there are cross, decoder, encoder"),
        (View(layer=7), "no layer 8 of cross attention: there are 2"),
        (View(head=4), "no head 5 of cross attention: there are 4"),
    ],
)
def test_a_view_of_what_is_not_there_is_refused(view: View, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        shown(made_up("transformer").readings[0], view)


def test_columns_of_right_to_left_words_run_from_right_to_left() -> None:
    found = shown(made_up("conv", hebrew=True).readings[0], View())
    assert found is not None and right_to_left(found.columns) and not right_to_left(("<s>", "1", "a", "א"))
    turned = found.mirrored()
    assert turned.columns == found.columns[::-1]
    np.testing.assert_allclose(turned.weights, found.weights[:, ::-1])
    assert {(row, len(found.columns) - 1 - column) for row, column in turned.links} == set(found.links)


# ---------------------------------------------------------------- pictures


def test_a_picture_stands_alone_and_has_a_panel_to_each_model() -> None:
    explored = made_up()
    root = ElementTree.fromstring(svg(explored, View()))
    words = [text.text for text in root.iter(f"{SVG}text")]
    assert root.find(f"{SVG}style") is not None and {"transformer", "conv", "gru", "captain", "écrivit"} <= set(words)
    assert " ".join(str(word) for word in words).count(MADE_UP["REASON"][:20]) == 1
    strokes = [path for path in root.iter(f"{SVG}path") if path.get("class") == "known"]
    assert len(strokes) == 2, "both models that attend show the known alignment"


@pytest.mark.parametrize("hebrew", [False, True])
def test_a_picture_of_hostile_or_hebrew_text_is_well_formed(hebrew: bool) -> None:
    explored = made_up(hostile=not hebrew, hebrew=hebrew)
    ElementTree.fromstring(svg(explored, View(kind="encoder", head="rollout", joined=False)))


@pytest.mark.skipif(not any(shutil.which(name) for name in raster.PROGRAMS), reason="no program here draws PNG")
def test_a_png_is_twice_as_large_as_its_drawing() -> None:
    explored = made_up("transformer")
    picture = png(explored, View())
    root = ElementTree.fromstring(svg(explored, View()))
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    sizes = [int.from_bytes(picture[16:20], "big"), int.from_bytes(picture[20:24], "big")]
    assert sizes == [raster.SCALE * int(root.attrib[side]) for side in ("width", "height")]


def test_without_a_program_that_draws_png_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match=r"install one of rsvg-convert, .*write SVG"):
        png(made_up("transformer"), View())


# ---------------------------------------------------------------- numbers


def test_a_sheet_has_a_line_for_every_weight() -> None:
    explored = made_up(hostile=True)
    rows = list(csv.DictReader(io.StringIO(sheet(explored, View(joined=False)))))
    expected = [shown(reading, View(joined=False)) for reading in explored.readings]
    assert len(rows) == sum(found.weights.size for found in expected if found)
    first = expected[0]
    assert first is not None
    for row in rows[: first.weights.size]:
        i, j = int(row["row"]) - 1, int(row["column"]) - 1
        assert (row["row_text"], row["column_text"]) == (first.rows[i], first.columns[j])
        assert float(row["weight"]) == pytest.approx(first.weights[i, j], abs=1e-6)


# ---------------------------------------------------------------- the terminal


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("wish", ["plain", "hostile", "hebrew"])
def test_a_terminal_shows_each_row_with_what_it_looks_at_most(width: int, wish: str) -> None:
    explored = made_up("transformer", hostile=wish == "hostile", hebrew=wish == "hebrew")
    lines = terminal(explored, View(), width)
    found = shown(explored.readings[0], View())
    assert found is not None
    most = [found.columns[int(row.argmax())] for row in found.weights]
    tail = [line for line in lines if re.search(r" [01]\.\d\d$", line)]
    assert len(tail) == len(found.rows)
    for line, word, row in zip(tail, most, found.weights, strict=True):
        assert visible(word)[:8] in line and line.endswith(f" {row.max():.2f}")
    assert all(line == visible(line) for line in lines), "no escape sequence of a model reaches the terminal"
    assert max(map(breadth, tail)) <= width


def test_stronger_weights_have_darker_shades() -> None:
    explored = made_up("transformer")
    found = shown(explored.readings[0], View())
    assert found is not None
    lines = [line for line in terminal(explored, View(), 120) if re.search(r" [01]\.\d\d$", line)]
    for line, row in zip(lines, found.weights, strict=True):
        drawn = line[line.index(" ", len(line) - len(line.lstrip())) + 1 :]
        shades = [" ░▒▓█".index(drawn[2 * place + 1]) for place in range(len(row))]
        assert shades == [min(4, max(0, int(np.ceil(4 * weight - 0.04)))) for weight in row]


def test_a_terminal_says_why_there_is_no_map_and_shows_the_vector() -> None:
    lines = terminal(made_up("gru"), View(), 100)
    assert f"  {MADE_UP['REASON']}" in lines and any("its 96 values" in line for line in lines)


def test_every_form_can_be_drawn() -> None:
    explored = made_up("conv", given=True)
    assert api.draw(explored, "html").startswith(b"<!doctype html>")
    assert api.draw(explored, "svg").startswith(b"<svg ")
    assert api.draw(explored, "csv").startswith(b"model,map,row,")
    assert json.loads(api.draw(explored, "json"))["target"] == explored.target
    assert b"of itself it writes: another answer" in api.draw(explored, "text", View(), 90)
