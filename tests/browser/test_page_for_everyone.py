"""The translation page with a keyboard, for those who listen, from right to left, at rest and on paper; and what its files may not hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import kente

SENTENCE = "the black cat sleeps in the garden ."


# ---------------------------------------------------------------- for everyone


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_everything_fits_the_window(visit: Any, width: int, scheme: str) -> None:
    visit.arrive(width=width, scheme=scheme)
    visit.translate(SENTENCE)
    assert visit.evaluate("document.documentElement.scrollWidth") <= width


def test_everything_that_can_be_used_has_a_name(visit: Any) -> None:
    visit.arrive()
    visit.translate(SENTENCE)
    visit.push("copy")
    visit.until("document.querySelectorAll('#history-list li').length === 1")
    visit.call("Accessibility.enable")
    nodes = visit.call("Accessibility.getFullAXTree")["nodes"]
    used = [
        node
        for node in nodes
        if not node.get("ignored")
        and any(each["name"] == "focusable" and each["value"]["value"] for each in node.get("properties", []))
        and node["role"]["value"] != "RootWebArea"
    ]
    assert len(used) > 15
    assert [node["role"] for node in used if not node.get("name", {}).get("value", "").strip()] == []


def test_the_keyboard_reaches_everything_in_reading_order(visit: Any) -> None:
    visit.arrive()
    visit.translate(SENTENCE)
    visit.evaluate("document.getElementById('from').focus()")
    reached = []
    for _ in range(12):
        reached.append(
            visit.evaluate(
                "document.activeElement.id || document.activeElement.className || document.activeElement.localName"
            )
        )
        visit.press("Tab")
    assert reached == [
        "from",
        "swap",
        "to",
        "source",
        "clear",
        "chip",
        "chip",
        "chip",
        "target",
        "copy",
        "confidence",
        "explore",
    ]


@pytest.mark.parametrize(("target", "onward"), [("fr", "ArrowRight"), ("he", "ArrowLeft")])
def test_arrow_keys_walk_from_word_to_word_in_reading_direction(visit: Any, target: str, onward: str) -> None:
    visit.arrive()
    visit.choose("to", target)
    visit.translate("one two three")
    assert visit.evaluate(f"getComputedStyle({visit.target}).direction") == ("rtl" if target == "he" else "ltr")
    visit.evaluate(f"{visit.target}.focus()")
    walked = []
    for key in (onward, onward, "End", "Home", "Escape"):
        visit.press(key)
        walked.append(visit.evaluate(visit.chosen))
    assert walked == [0, 1, 2, 0, -1]


def test_words_stay_apart_in_right_to_left_text(visit: Any) -> None:
    visit.arrive()
    visit.choose("to", "he")
    visit.translate("one two three")
    lefts = visit.evaluate(f"{visit.words}.map(span => span.getBoundingClientRect().left)")
    assert lefts == sorted(lefts, reverse=True)
    visit.click(f"{visit.words}[1]")
    assert visit.evaluate(visit.chosen) == 1


def test_what_changes_is_read_out(visit: Any) -> None:
    visit.arrive()
    visit.translate("one two")
    visit.until_says("said", "TWO ONE")
    assert visit.evaluate("['said', 'looks', 'taught'].map(id => document.getElementById(id).role)") == ["status"] * 3
    assert visit.evaluate("document.getElementById('trouble-said').role") == "alert"


def test_nothing_moves_for_those_who_ask_for_that(visit: Any, stand_in: Any) -> None:
    for motion, moving in (("reduce", False), ("no-preference", True)):
        stand_in.go_on.clear()
        visit.open(visit.site.url)
        visit.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": motion}])
        visit.until("document.getElementById('to').options.length > 0")
        visit.write("x")
        visit.until("document.querySelector('.busy')")
        assert bool(visit.evaluate("document.getAnimations().length")) == moving
        stand_in.go_on.set()
        visit.until("!document.querySelector('.busy')")


def test_on_paper_there_are_the_texts_and_nothing_to_press(visit: Any) -> None:
    visit.arrive()
    visit.translate(SENTENCE)
    visit.call("Emulation.setEmulatedMedia", media="print")
    seen = "[...document.querySelectorAll('button, a, #files, footer')].filter(each => each.checkVisibility()).length"
    assert visit.evaluate(seen) == 0
    assert visit.evaluate(f"{visit.target}.checkVisibility() && {visit.source}.checkVisibility()")
    visit.call("Emulation.setEmulatedMedia", media="")


def test_retry_after_is_a_number_or_a_date(visit: Any) -> None:
    seconds = {"7": 7, " 0 ": 0, "soon": None, "": None}
    seconds |= {"Thu, 01 Jan 1970 00:01:10 GMT": 10, "Thu, 01 Jan 1970 00:00:00 GMT": 0}
    visit.open(visit.site.url)
    read = f"{json.dumps(list(seconds))}.map(header => server.retryAfter(header, 60000))"
    assert visit.evaluate(f"import('/assets/server.js').then(server => {read})") == list(seconds.values())


def test_events_may_arrive_in_any_pieces(visit: Any) -> None:
    stream = 'event: a\r\ndata: {"x": "é"}\r\n\r\n: a comment\n\nevent: b\ndata: [1,\ndata: 2]\n\ndata: 3\n\nevent: cut\ndata: 4'
    visit.open(visit.site.url)
    for size in (1, 2, 7, 1000):
        events = visit.evaluate(
            "import('/assets/server.js').then(async server => {"
            f" const bytes = new TextEncoder().encode({json.dumps(stream)}), found = [];"
            " const body = new ReadableStream({ start(out) {"
            f"  for (let at = 0; at < bytes.length; at += {size}) out.enqueue(bytes.slice(at, at + {size})); out.close(); }} }});"
            " for await (const event of server.events(new Response(body))) found.push(event);"
            " return found; })"
        )
        assert events == [["a", {"x": "é"}], ["b", [1, 2]], ["message", 3]]


# ---------------------------------------------------------------- without a browser


def test_the_assets_make_no_markup_from_text_and_ask_nobody_else() -> None:
    folder = Path(kente.__file__).parent / "serve" / "assets"
    written = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert {"index.html", "app.css", "app.js", "icon.svg", "icons.svg"} <= written.keys()
    for name, text in written.items():
        forbidden = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "cssText",
        ]
        forbidden += ["://"] if not name.endswith(".svg") else ["<script", "onload"]
        assert [word for word in forbidden if word in text] == [], name
    page = written["index.html"]
    assert "<style" not in page and "style=" not in page and "onclick" not in page
    assert page.count("<script") == 1 and '<script type="module" src="assets/app.js"></script>' in page
