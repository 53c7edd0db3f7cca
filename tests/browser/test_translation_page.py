"""The translation page in detail: typing, languages, wordings, history, files and corrections."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

SENTENCE = "the black cat sleeps in the garden ."


# ---------------------------------------------------------------- typing


@pytest.mark.parametrize("width", [360, 1280])
def test_letters_lie_upon_letters(visit: Any, width: int) -> None:
    line = "A rather long line of many words that must be broken somewhere, wherever that may be."
    visit.arrive(width=width)
    visit.translate(f"{line}\n{line}\n\niii WWW.")
    heights = f"[{visit.source}, {visit.target}].map(area => area.scrollHeight - area.clientHeight)"
    assert visit.evaluate(heights) == [0, 0]
    for area, spans in ((visit.source, visit.source_words), (visit.target, visit.words)):
        shown, at = visit.evaluate(f"{area}.value"), 0
        for number, word in enumerate(visit.evaluate(f"{spans}.map(span => span.textContent)")):
            start = shown.index(word, at)
            at = start + len(word)
            if number % 5 == 0 or number > 30:
                visit.click(f"{spans}[{number}]")
                assert start <= visit.evaluate(f"{area}.selectionStart") <= at, word


def test_offsets_count_code_points(visit: Any) -> None:
    text = "𝒳 marks 🐈‍⬛ the 𠮷 spot"
    visit.arrive()
    visit.translate(text)
    assert visit.evaluate(f"{visit.source_words}.map(span => span.textContent)") == text.split()
    visit.click(f"{visit.words}[3]")
    looked = visit.evaluate(
        f"{visit.source_words}.filter(span => span.classList.contains('looked')).map(span => span.textContent)"
    )
    assert looked == ["🐈‍⬛", "the"]


def test_typing_on_calls_off_the_question_under_way(visit: Any, stand_in: Any) -> None:
    stand_in.go_on.clear()
    visit.arrive()
    visit.write("the first")
    visit.until("document.querySelector('.busy')")
    stand_in.was_asked("/v1/translate")
    visit.write(" and more")
    visit.browser.wait_for("Network.loadingFailed", visit.session, canceled=True)
    stand_in.go_on.set()
    visit.until_translated("MORE AND FIRST THE")
    assert [body["q"] for body in stand_in.bodies("/v1/translate")] == ["the first", "the first and more"]


def test_letters_that_are_still_being_composed_are_not_sent(visit: Any, stand_in: Any) -> None:
    visit.arrive()
    visit.write("one ")
    visit.until_translated("ONE")
    visit.call("Input.imeSetComposition", text="ni", selectionStart=2, selectionEnd=2)
    time.sleep(0.3)  # longer than the pause after which a text is sent
    visit.call("Input.insertText", text="你")
    visit.until_translated("你 ONE")
    assert [body["q"] for body in stand_in.bodies("/v1/translate")] == ["one ", "one 你"]


def test_a_long_text_is_shown_sentence_by_sentence(visit: Any, stand_in: Any) -> None:
    stand_in.go_on.clear()
    text = "\n".join(f"This is sentence number {number} of many." for number in range(20))
    visit.arrive()
    visit.write(text)
    visit.until_translated("MANY. OF 0 NUMBER SENTENCE IS THIS")
    assert visit.says("engine") == "Translating… 1 of 20"
    stand_in.go_on.set()
    visit.until(f"{visit.words}.length === 140")
    assert visit.evaluate(f"{visit.target}.value") == visit.site.answer(text, "fr")["text"]


def test_a_text_beyond_the_limit_is_not_sent_and_the_reader_is_told(visit: Any, stand_in: Any) -> None:
    stand_in.settings["charLimit"] = 10
    visit.arrive()
    visit.write("𝒳 is eleven")
    visit.until("!document.getElementById('trouble').hidden")
    assert visit.says("trouble-said") == "This text has 11 characters; the server takes 10."
    assert stand_in.bodies("/v1/translate") == []
    visit.press("Backspace")
    visit.until(f"{visit.words}.length === 3")
    assert visit.hidden("trouble")


# ---------------------------------------------------------------- languages, alternatives, warnings, copies


def test_a_detected_language_is_named_and_can_be_swapped(visit: Any) -> None:
    visit.arrive()
    visit.choose("from", "auto")
    visit.choose("to", "en")
    visit.translate("une idée")
    assert visit.evaluate("document.getElementById('from').selectedOptions[0].textContent") == "Detected: French"
    visit.push("swap")
    visit.until_translated("UNE IDÉE")
    assert visit.evaluate(f"[{visit.part('from')}, {visit.part('to')}, {visit.source}].map(field => field.value)") == [
        "en",
        "fr",
        "IDÉE UNE",
    ]


def test_only_pairs_the_server_can_translate_are_offered(visit: Any) -> None:
    visit.arrive()
    assert visit.codes("from") == ["auto", "en", "fr"]
    assert visit.codes("to") == ["fr", "he"]
    visit.choose("to", "he")
    assert (
        visit.evaluate(f"{visit.part('swap')}.disabled && {visit.part('swap')}.title")
        == "No model here translates Hebrew to English"
    )
    visit.choose("from", "fr")
    assert visit.codes("to") == ["en"]


def test_an_alternative_takes_the_translations_place_and_gives_it_back(visit: Any) -> None:
    visit.arrive()
    shown = visit.translate(SENTENCE)
    lines = "document.querySelectorAll('#alternatives-list button')"
    visit.click(f"{lines}[1]")
    assert visit.evaluate(f"{visit.target}.value") == shown.lower()
    assert visit.evaluate(f"{visit.words}.length") == 0, "the weights are those of another wording"
    visit.click(f"{lines}[0]")
    assert visit.evaluate(f"{visit.target}.value") == shown and visit.evaluate(f"{visit.words}.length") == 8


def test_alternatives_nobody_looks_at_are_not_asked_for(visit: Any, stand_in: Any) -> None:
    visit.arrive()
    visit.translate("one")
    visit.click("document.querySelector('#alternatives summary')")
    visit.write(" two")
    visit.until_translated("TWO ONE")
    assert [body["alternatives"] for body in stand_in.bodies("/v1/translate")] == [3, 0]
    visit.click("document.querySelector('#alternatives summary')")
    visit.until("document.querySelectorAll('#alternatives-list button').length === 3")


def test_warnings_are_shown_and_go(visit: Any) -> None:
    visit.arrive()
    visit.translate("see http://a.b")
    assert visit.texts("#warnings li") == ["A link was left as it is."]
    visit.push("clear")
    assert visit.hidden("warnings") and visit.evaluate(f"{visit.target}.value") == ""


def test_confidence_is_shaded_unless_switched_off(visit: Any) -> None:
    visit.arrive()
    visit.translate("one two three")
    colour = f"{visit.words}.map(span => getComputedStyle(span).backgroundColor)"
    sure, unsure, doubtful = visit.evaluate(colour)
    assert len({sure, unsure, doubtful}) == 3
    assert visit.evaluate(f"{visit.words}.map(span => getComputedStyle(span).textDecorationStyle)") == [
        "solid",
        "solid",
        "dotted",
    ]
    visit.push("confidence")
    visit.until(f"new Set({colour}).size === 1")
    visit.call("Page.reload")
    visit.until(f"{visit.words}.length === 3")
    assert visit.evaluate(f"new Set({colour}).size") == 1, "the choice is remembered"


@pytest.mark.parametrize("newer", [True, False])
def test_the_translation_is_copied(visit: Any, newer: bool) -> None:
    permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"]
    visit.browser.call("Browser.grantPermissions", permissions=permissions, origin=visit.site.url, **visit.context)
    visit.arrive()
    visit.call("Page.bringToFront")
    shown = visit.translate(SENTENCE)
    if not newer:
        visit.evaluate("navigator.clipboard.writeText = () => Promise.reject(new Error('refused'))")
    visit.push("copy")
    visit.until_says("copy", "Copied")
    assert visit.evaluate("navigator.clipboard.readText()") == shown


def test_an_example_is_translated_at_a_click(visit: Any, stand_in: Any) -> None:
    visit.arrive()
    visit.click("document.querySelectorAll('#examples button')[2]")
    visit.until_translated("LETTRE. UNE ÉCRIVIT CAPITAINE VIEUX LE")
    assert visit.evaluate("[...document.querySelectorAll('select')].map(list => list.value)") == ["fr", "en"]
    assert visit.evaluate("document.activeElement.id") == "source"


def test_examples_of_the_languages_in_view_come_first(visit: Any, stand_in: Any) -> None:
    shorter = [f"example {number}" for number in range(9)]
    stand_in.settings["examples"] = [
        {"source": "en", "target": "he" if number == 7 else "fr", "q": text} for number, text in enumerate(shorter)
    ]
    visit.arrive()
    assert visit.texts("#examples button") == shorter[:4]
    visit.choose("to", "he")
    assert visit.texts("#examples button") == [shorter[7], *shorter[:3]]


def test_an_address_may_bring_a_text(visit: Any) -> None:
    visit.arrive("?source=fr&target=en&q=bon%20jour")
    visit.until_translated("JOUR BON")


# ---------------------------------------------------------------- history


def test_history_is_kept_restored_and_cleared(visit: Any) -> None:
    kept = "#history-list .line:not(.soft)"
    visit.arrive()
    for text in ("one", "two three", "four"):
        visit.translate(text)
        visit.push("clear")
    assert visit.texts(kept) == ["four", "two three", "one"]
    visit.arrive()
    visit.click("document.querySelectorAll('#history-list .again')[1]")
    visit.until_translated("THREE TWO")
    visit.click("document.querySelector('#history-list .small')")
    assert visit.texts(kept) == ["two three", "one"]
    visit.push("history-clear")
    assert visit.texts(kept) == [] and visit.evaluate("localStorage.getItem('kente.history')") == "[]"


def test_history_holds_a_text_once_and_not_its_beginnings(visit: Any) -> None:
    visit.arrive()
    visit.translate("one")
    visit.push("copy")
    visit.write(" two")
    visit.until_translated("TWO ONE")
    visit.push("copy")
    visit.until("document.querySelector('#history-list').textContent.includes('one two')")
    assert visit.texts("#history-list .line:not(.soft)") == ["one two"]


def test_history_can_be_switched_off(visit: Any) -> None:
    visit.arrive()
    visit.push("history-keep")
    visit.translate("a secret")
    visit.push("clear")
    assert visit.evaluate("document.querySelectorAll('#history-list li').length") == 0
    assert visit.evaluate("localStorage.getItem('kente.history')") is None


@pytest.mark.parametrize("rubbish", ["{", "7", '[1, null, {"q": "<b>"}]', '"text"'])
def test_rubbish_in_the_browsers_memory_does_no_harm(visit: Any, rubbish: str) -> None:
    names = ("history", "history.on", "languages", "confidence", "alternatives", "key")
    visit.open(visit.site.url + "assets/icon.svg")
    for name in names:
        visit.evaluate(f"localStorage.setItem('kente.{name}', {json.dumps(rubbish)})")
    visit.evaluate(f"sessionStorage.setItem('kente.now', {json.dumps(rubbish)})")
    visit.arrive()
    assert visit.translate("one two") == "TWO ONE"


# ---------------------------------------------------------------- files and corrections


def test_files_wait_their_turn_and_can_be_cancelled(visit: Any, stand_in: Any, tmp_path: Path) -> None:
    stand_in.go_on.clear()
    for name in ("a.txt", "b.txt", "c.exe"):
        (tmp_path / name).write_text("one two\nthree\n")
    visit.arrive()
    visit.choose_files(visit.part("file-field"), *(tmp_path / name for name in ("a.txt", "b.txt", "c.exe")))
    rows = "[...document.querySelectorAll('#file-list li')]"
    visit.until(f"{rows}[0].textContent.includes('0 of 2')")
    assert visit.evaluate(f"{rows}.map(row => row.lastElementChild.textContent)") == ["0 of 2", "Waiting", "Waiting"]
    visit.click(f"{rows}[0].querySelector('button')")
    visit.until(f"{rows}[0].lastElementChild.textContent === 'Cancelled'")
    stand_in.go_on.set()
    visit.until(f"{rows}[1].querySelector('a')")
    visit.until(f"{rows}[2].lastElementChild.textContent.startsWith('Files of this kind cannot be translated')")
    assert [body["file"][0] for body in stand_in.bodies("/v1/file")] == ["a.txt", "b.txt"]


def test_a_file_may_be_dropped_anywhere(visit: Any, tmp_path: Path) -> None:
    given = tmp_path / "dropped.srt"
    given.write_text("one two\n")
    visit.arrive()
    x, y = visit.middle(visit.target)
    for kind in ("dragEnter", "dragOver", "drop"):
        data = {"items": [], "files": [str(given)], "dragOperationsMask": 1}
        visit.call("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)
    visit.until("document.querySelector('#file-list a')")
    assert visit.texts("#file-list a") == ["Save dropped.fr.srt"]


def test_a_correction_waits_until_it_is_welcome(visit: Any, stand_in: Any) -> None:
    visit.in_trouble = True
    visit.arrive()
    visit.translate("one two")
    visit.push("correct")
    visit.type("!")
    stand_in.refusals = [(429, {"Retry-After": "1"}, "slow down")]
    visit.push("teach")
    visit.until_says("taught", "Trying again in 1 s")
    visit.until_says("taught", "Kept for the next training")
    assert len(visit.site.taught()) == 2, "the refused one was asked for too"


def test_no_correction_is_offered_where_none_is_wanted(visit: Any, stand_in: Any) -> None:
    stand_in.settings["suggestions"] = False
    visit.arrive()
    visit.translate(SENTENCE)
    assert visit.evaluate(f"{visit.part('correct')}.hidden && {visit.part('teach')}.hidden && {visit.target}.readOnly")


def test_only_the_sentence_that_was_changed_is_taught(visit: Any) -> None:
    visit.arrive()
    visit.translate("One two. 𝒳 four. Five six.")
    for click, keys in ((1, "!"), (0, "?")):
        visit.push("correct")
        where = visit.evaluate(f"{visit.target}.value").index(("TWO. ONE", "FOUR. 𝒳")[click]) + 4
        visit.evaluate(f"{visit.target}.setSelectionRange({where}, {where})")
        visit.type(keys)
        visit.push("teach")
        visit.until(f"document.getElementById('taught').textContent.startsWith('Kept') && {visit.target}.readOnly")
        if click:
            visit.evaluate(f"{visit.source}.dispatchEvent(new Event('input'))")
            visit.until(f"{visit.words}.length === 6")
    assert visit.site.taught() == [("𝒳 four.", "FOUR!. 𝒳"), ("One two.", "TWO.? ONE")]


def test_a_correction_can_be_given_up(visit: Any) -> None:
    visit.arrive()
    shown = visit.translate(SENTENCE)
    visit.push("correct")
    visit.type("rubbish")
    visit.press("Escape")
    assert visit.evaluate(f"{visit.target}.value") == shown and visit.site.taught() == []
    assert visit.evaluate(f"{visit.words}.length") == 8, "its words can be chosen again"
